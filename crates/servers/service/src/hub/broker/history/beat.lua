-- A heartbeat of a hub: which reign it is, and whether the hub may do what the other scripts do. KEYS: the reign, a key to
-- try it with. ARGV: a name for a new reign; the run of the server at which the hub has heard its last message, and how long
-- ago that was (ms; empty: none); whether the hub keeps histories (1).
local name, run = '', ''
local is_done, why = pcall(function()
  run = info('server', 'run_id')
  -- Also if the server refuses to write, unless the reign must end.
  name = reign(KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]))
  if not may('EXPIRE', KEYS[1], '1') then error({err = 'NOPERM keys must expire'}) end
  if ARGV[4] == '1' then redis.call('EXPIRE', KEYS[1], 100000) end
  redis.call('HSET', KEYS[1], 'tried', redis.call('TIME')[1])
  redis.call('DEL', KEYS[2])
  redis.call('XADD', KEYS[2], 'MAXLEN', 1, '1-0', 'm', '')
  redis.call('XRANGE', KEYS[2], '1', '1', 'COUNT', 1)
  redis.call('XREVRANGE', KEYS[2], '1', '1', 'COUNT', 1)
  redis.call('DEL', KEYS[2])
end)
if is_done then return {name, run, ''} end
return {name, run, type(why) == 'table' and why.err or tostring(why)}
