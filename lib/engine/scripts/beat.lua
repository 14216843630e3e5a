--@needs clock, count, hold
-- Renews the lease of a worker that holds jobs. Answers which of its jobs were cancelled: if there are many, some with each call.
local now = clock()
local record = redis.call('HMGET', key_worker, 'seq', 'seq2')
local exchanges = count_in(record[1]) + count_in(record[2])
local held_now = held()
local marks = redis.call('HLEN', key_toCancel)
if not record[1] then return { 'unknown-worker' } end
if held_now > 0 then lease_until(now + arg_leaseMs, arg_worker) end
redis.call('PEXPIRE', key_worker, rule_workerRecordMs)
local cancels = {}
if marks > 0 and held_now > 0 then
  local ids = marks <= 1000 and redis.call('HKEYS', key_toCancel) or redis.call('SRANDMEMBER', key_active, 1000)
  local is_mine = redis.call('SMISMEMBER', key_active, unpack(ids))
  local reasons = redis.call('HMGET', key_toCancel, unpack(ids))
  for i = 1, #ids do
    if is_mine[i] == 1 and reasons[i] then
      cancels[#cancels + 1] = ids[i]
      cancels[#cancels + 1] = string.match(reasons[i], '^[^\n]*')
    end
  end
end
return { 'alive', held_now, exchanges, cancels }
