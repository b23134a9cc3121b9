-- regatta: which reign it is: a time in which no message is lost that hubs have heard. Other scripts begin with it.
if redis.replicate_commands then redis.replicate_commands() end
local function info(section, name)
  return string.match(redis.call('INFO', section), name .. ':(%w+)') or ''
end
-- Whether the user of the hub may do this. Redis before 7.0 does not say.
local function may(...)
  return not redis.acl_check_cmd or redis.acl_check_cmd(...)
end
-- What is known of the history of a room: epoch, reign, top, kept, ttl. Nothing, if no script of a hub has written it.
local function read(key)
  local known = redis.call('HMGET', key, 'epoch', 'reign', 'top', 'kept', 'ttl')
  local is_ours = known[1] and #known[1] == 16 and not string.find(known[1], '%X')
  for at = 3, 5 do
    is_ours = is_ours and known[at] and #known[at] < 16 and string.find(known[at], '^%d+$')
  end
  return is_ours and known or {}
end
-- The reign ends if the server is another process, or was a replica: it may lack messages. It also ends if a hub has heard
-- messages at another server, the last one `age` ms ago, and the reign is older. `next`: a name for a new one.
local function reign(key, next, its_run, age)
  local known = redis.call('HMGET', key, 'reign', 'run', 'before', 'began')
  local run, before = info('server', 'run_id'), info('replication', 'master_replid2')
  -- Without it, another process would not be noticed.
  if run == '' then error('INFO has no run_id') end
  -- Without a replica for an hour, a server forgets that it was one.
  local is_same = known[1] and run == known[2] and (before == known[3] or not string.find(before, '[^0]'))
  if is_same and (not age or its_run == run) then return known[1], run end
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if is_same then
    local began = tonumber(known[4]) or 0
    if began <= now and began > now - age then return known[1], run end
  end
  redis.call('HSET', key, 'reign', next, 'run', run, 'before', before, 'began', string.format('%.0f', now))
  redis.call('EXPIRE', key, 100000)
  return next, run
end
