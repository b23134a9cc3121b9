-- What is known of the history of a room, and some of its messages, by their order: at most 128, and no more once they have
-- 256 KiB. KEYS: as of the script that publishes. ARGV: a name for a new epoch or reign, number of messages kept, how long
-- (s), whether the epoch ends (1), direction (+, - or none), the first message and the last.
local known, now = read(KEYS[2]), reign(KEYS[1], ARGV[1])
local epoch, top = known[1], known[3]
if not epoch then
  -- It must not stay for ever.
  if not may('EXPIRE', KEYS[2], '1') then return redis.error_reply('NOPERM it must expire') end
  epoch, top = ARGV[1], '0'
  redis.call('DEL', KEYS[3])
  redis.call('HSET', KEYS[2], 'epoch', epoch, 'reign', now, 'top', top, 'kept', ARGV[2], 'ttl', ARGV[3])
elseif known[2] ~= now or ARGV[4] == '1' then
  epoch = ARGV[1]
  redis.call('HSET', KEYS[2], 'epoch', epoch, 'reign', now)
end
-- Without a message it is soon forgotten. A server that refuses to write may still be read.
local expires = redis.pcall('EXPIRE', KEYS[2], top == '0' and 300 or ARGV[3] + 7200)
if not known[1] and type(expires) == 'table' then
  redis.call('DEL', KEYS[2])
  return expires
end
local found = {epoch, top, 1}
local at, bytes, step = tonumber(ARGV[6]), 0, ARGV[5] == '-' and -1 or 1
local command = step == 1 and 'XRANGE' or 'XREVRANGE'
while ARGV[5] ~= '' do
  if #found >= 259 or bytes >= 262144 then
    found[3] = 0
    break
  end
  local one = redis.call(command, KEYS[3], string.format('%.0f', at), ARGV[7], 'COUNT', 1)[1]
  if not one then break end
  local offset = string.match(one[1], '^%d+')
  found[#found + 1] = offset
  found[#found + 1] = one[2][2]
  bytes = bytes + #one[2][2]
  at = tonumber(offset) + step
  if at < 1 then break end
end
return found
