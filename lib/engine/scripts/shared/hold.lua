--@needs count
-- The jobs that a worker holds. Membership in its set is the lease on a job. The lease of the worker applies to all of them.

local function hold(ids) return redis.call('SADD', key_active, unpack(ids)) end

-- Removes jobs from the worker. Returns how many of them it held.
local function let_go(ids) return redis.call('SREM', key_active, unpack(ids)) end

-- Removes some jobs from the worker, at most `limit`, and returns them.
local function let_go_some(limit) return redis.call('SPOP', key_active, limit) end

local function held() return redis.call('SCARD', key_active) end

-- Whether this worker holds all of these jobs. Then one command can settle all of them.
local function are_held(ids)
  if #ids == 0 then return false end
  local member = redis.call('SMISMEMBER', key_active, unpack(ids))
  for i = 1, #ids do if member[i] == 0 then return false end end
  return true
end

-- Only the worker that holds a job may settle it.
local function let_go_or_lost(id, lost)
  if redis.call('SREM', key_active, id) == 1 then return true end
  lost[#lost + 1] = id
  return false
end

local function lease_until(ends, worker) redis.call('ZADD', key_workers, string.format('%.0f', ends), worker) end

local function end_lease(worker) redis.call('ZREM', key_workers, worker) end

-- The lease length of a worker, from its record. If the record has no valid length, that of the caller.
local function lease_of(text)
  local ms = count_in(text)
  return ms >= rule_leaseMinMs and ms <= rule_leaseMaxMs and ms or arg_leaseMs
end
