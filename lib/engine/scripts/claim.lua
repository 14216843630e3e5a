--@needs clock, bodies, gate, claimed, bell, event
-- Claims for an idle worker that waits at the doorbell. It is an exchange that settles and promotes nothing, with few keys and
-- arguments, because these are most of the cost of a call for one job. If there is more to do, it changes nothing, and the worker
-- exchanges.
local last_seq = tonumber(redis.call('HGET', key_worker, 'seq'))
if not last_seq or last_seq >= tonumber(arg_seq) then return 0 end
-- The time only says why no job may start, which the worker learns from an exchange.
local want = open_gate(math.min(arg_want, rule_claimMax), 0)
if want < 1 then return 0 end

local prioritized, has_traces = 0, false
if redis.call('EXISTS', key_suspects, key_prioritized, key_attempts, key_stalls) > 0 then
  if redis.call('LLEN', key_suspects) > 0 then return 0 end
  prioritized = redis.call('ZCARD', key_prioritized)
  has_traces = redis.call('HLEN', key_attempts) + redis.call('HLEN', key_stalls) > 0
end

-- A check first would cost as much as the writes. So the script writes, and takes back what is not possible.
local ids = redis.call('LPOP', key_wait, want) or {}
local plain = #ids
if prioritized > 0 and plain < want then
  for _, id in ipairs(redis.call('ZRANGE', key_prioritized, 0, want - plain - 1)) do ids[#ids + 1] = id end
end
local now = clock()
if #ids == 0 then
  local held = redis.call('SCARD', key_active)
  redis.call('PEXPIRE', key_worker, rule_workerRecordMs)
  return { now, '', '', held, {}, {}, 0 }
end
local bodies, name, missing = bodies_and_name(ids, arg_maxBytes)
local is_cut = not bodies.err and #bodies < #ids
local is_more = is_cut or #ids == want
if is_cut then
  for at = plain, #bodies + 1, -1 do redis.call('LPUSH', key_wait, ids[at]) end
  for at = #ids, #bodies + 1, -1 do ids[at] = nil end
  plain = math.min(plain, #ids)
end
local rung = is_more and redis.pcall('ZCARD', key_doorbell) or 0
local can = not bodies.err and not missing and type(rung) == 'number'
local active = can and redis.pcall('SADD', key_active, unpack(ids))
local leased = type(active) == 'number' and redis.pcall('ZADD', key_workers, string.format('%d', now + arg_leaseMs), arg_worker)
if type(leased) ~= 'number' then
  if type(active) == 'number' then redis.call('SREM', key_active, unpack(ids)) end
  for at = plain, 1, -1 do redis.call('LPUSH', key_wait, ids[at]) end
  for _, answer in ipairs({ bodies, rung, active, leased }) do
    if type(answer) == 'table' and answer.err then return answer end
  end
  return 0
end
if plain < #ids then redis.call('ZREM', key_prioritized, unpack(ids, plain + 1)) end
local claimed_ids = table.concat(ids, '\n')
redis.call('HSET', key_worker, 'seq', arg_seq, 'gave', claimed_ids, 'lost', '', 'lease', arg_leaseMs)
-- The ring that woke this worker may have been the only one.
if is_more and redis.call('EXISTS', key_wait, key_prioritized) > 0 then
  ring()
end

local failed, stalled = {}, {}
if has_traces then
  failed = redis.call('HMGET', key_attempts, unpack(ids))
  stalled = redis.call('HMGET', key_stalls, unpack(ids))
end
if arg_maxEvents > 0 then
  local events = { count = 0 }
  say_active(events, ids, claimed_ids, name, bodies, failed)
  write_events(events, now)
end
return { now, claimed_ids, bodies_in(bodies), -1, failed, stalled, is_cut and 1 or 0 }
