-- A hub keeps histories. KEYS: the reign. ARGV: a name for a new reign, the reign, the run and the last message that the
-- hub has heard of, how long this is known (s).
local name, run, clock = reign(KEYS[1], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]))
redis.call('HSET', KEYS[1], 'seen', redis.call('TIME')[1])
redis.call('EXPIRE', KEYS[1], ARGV[5])
return {name, run, clock}
