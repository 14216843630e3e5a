-- One sign of life for all the jobs a worker holds. A worker that holds nothing needs no lease.
local seq = redis.call('HGET', key_worker, 'seq')
local held = redis.call('SCARD', key_active)
if not seq then return { 'unknown-worker' } end
if held > 0 then redis.call('ZADD', key_workers, now + arg_leaseMs, arg_worker) end
redis.call('PEXPIRE', key_worker, arg_recordMs)
return { 'alive', held, tonumber(seq) }
