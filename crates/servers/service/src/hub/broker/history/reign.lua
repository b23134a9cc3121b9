-- regatta: which reign it is: the time in which the server has lost nothing that hubs have heard. Other scripts begin with it.
if redis.replicate_commands then redis.replicate_commands() end
local function info(section, name)
  return string.match(redis.call('INFO', section), name .. ':(%S+)')
end
-- `next`: a name for a new reign. A hub claims what it has heard: in which reign and run of the server, and the number of
-- the last message.
local function reign(key, next, claim, its_run, heard)
  local known = redis.call('HMGET', key, 'reign', 'replid', 'run', 'clock', 'start', 'before', 'seen')
  local clock, replid = tonumber(known[4] or 0), info('replication', 'master_replid') or ''
  local is_claimed = claim == '' or claim == known[1] and its_run == known[3] and heard <= clock
  if known[1] and replid == known[2] and is_claimed then return known[1], known[3], known[4] end
  local now, run = tonumber(redis.call('TIME')[1]), info('server', 'run_id')
  local is_same, start, before = known[1], tonumber(known[5] or 0), known[6] or ''
  if is_same and run ~= known[3] then
    -- Another process: the same server after a restart, or one that was a replica and ran already. After a restart, a hub
    -- must have heard exactly what is there.
    local has_restarted = tonumber(info('server', 'uptime_in_seconds')) <= now - tonumber(known[7]) + 1
    is_same = has_restarted and claim == known[1] and heard == clock
    start, before = clock, known[3]
  elseif is_same and replid ~= known[2] then
    -- A first replica is attached, or the last one has been gone for a while; or it was a replica meanwhile.
    is_same = info('replication', 'second_repl_offset') == '-1' and now - tonumber(known[7]) <= 10
  end
  if is_same and claim == known[1] then
    is_same = its_run == run and heard <= clock or its_run == before and heard <= start
  end
  if not is_same then known[1], clock, start, before = next, 0, 0, '' end
  redis.call('HSET', key, 'reign', known[1], 'replid', replid, 'run', run, 'clock', clock, 'start', start, 'before', before, 'seen', now)
  return known[1], run, string.format('%.0f', clock)
end
