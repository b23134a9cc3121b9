-- Publishes a message of a room, and keeps it if the room has a history. KEYS: the reign, what is known of the history, its
-- messages. ARGV: channel, number of messages kept (0: no history), how long they are kept (s), a name for a new epoch or
-- reign, the message.
local known = read(KEYS[2])
local kept, ttl = tonumber(ARGV[2]), tonumber(ARGV[3])
if kept == 0 then
  if not known[1] then
    return redis.call(publish, ARGV[1], string.char(2) .. '0 0000000000000000 0 0 ' .. ARGV[5])
  end
  kept, ttl = tonumber(known[4]), tonumber(known[5])
end
-- Nothing is undone after an error, so what may fail is checked before anything is written.
if not (may(publish, ARGV[1], '') and may('XADD', KEYS[3], '1-0', 'm', '') and may('HSET', KEYS[2], 'top', '1')
    and may('DEL', KEYS[3]) and may('EXPIRE', KEYS[2], '1')) then
  return redis.error_reply('NOPERM a command of the script that publishes')
end
redis.call('XRANGE', KEYS[3], '1', '1', 'COUNT', 1)
local now = reign(KEYS[1], ARGV[4])
local epoch, top = known[1], tonumber(known[3] or 0)
if not epoch then
  epoch, top = ARGV[4], 0
  redis.call('DEL', KEYS[3])
elseif known[2] ~= now then
  epoch = ARGV[4]
end
local offset = string.format('%.0f', top + 1)
-- First, so that no offset is given twice.
redis.call('HSET', KEYS[2], 'epoch', epoch, 'reign', now, 'top', offset, 'kept', kept, 'ttl', ttl)
-- A hub that keeps no history does not prolong that of others.
if ARGV[2] ~= '0' or top == 0 then redis.call('EXPIRE', KEYS[2], ttl + 7200) end
redis.call('XADD', KEYS[3], 'MAXLEN', kept, offset .. '-0', 'm', ARGV[5])
redis.call('EXPIRE', KEYS[3], ttl)
local header = table.concat({string.char(2) .. offset, epoch, kept, ttl, ARGV[5]}, ' ')
local receivers = redis.pcall(publish, ARGV[1], header)
if type(receivers) == 'table' then return redis.error_reply('UNKNOWN it is kept, and not published') end
return receivers
