--@needs clock, kept, stored, workers
-- Everything about one job. The caller declares the active sets of `workers`. If a new worker has a lease, the caller must ask
-- again.
local now = clock()
local body = redis.call('HGET', key_bodies, arg_id)
if not body then return { 'none' } end
local workers = leased_workers()
if #workers ~= more_last - more_first + 1 or table.concat(workers, '\n') ~= arg_workers then return { 'again' } end

local state, at, worker = 'waiting', '', ''
local kept_until = redis.call('ZSCORE', key_completed, arg_id)
local kept = kept_until and kept_state(kept_until, now)
if kept_until and not kept then return { 'none' } end
local due = redis.call('ZSCORE', key_delayed, arg_id)
local died = redis.call('ZSCORE', key_dead, arg_id)
if due then
  state, at = 'delayed', string.format('%.0f', math.floor(tonumber(due)))
elseif died then
  state, at = 'dead', string.format('%.0f', tonumber(died))
elseif kept then
  state = kept
else
  for i = more_first, more_last do
    if redis.call('SISMEMBER', KEYS[i], arg_id) == 1 then
      state, worker = 'active', workers[i - more_first + 1]
    end
  end
end
return { 'job', unpack(stored(arg_id, body, state, at, worker, arg_brief == 1)) }
