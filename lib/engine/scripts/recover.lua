--@needs types, clock, bodies, names, traces, by-name, hold, line, ending, bell, event, unique
-- Moves the jobs of a worker whose lease is over back to the line, a limited number per call. Each of them gets a stall, and no
-- attempt is counted: after a crash nobody knows which job caused it.
check_bodies()
local now = clock()
local traces = read_traces()
local day = read_day()
local lease = tonumber(redis.call('ZSCORE', key_workers, arg_worker))
local record = redis.call('HMGET', key_worker, 'doubt', 'lease')
local doubt = record[1]
check_types(key_meta, key_wait, key_suspects, key_dead, key_doorbell, key_completed, key_results,
  key_unique, key_prioritized, key_delayed, key_priorities)
if lease == nil then return { 'alive' } end

-- The lease ends later than any lease of this worker can, so the clock of Redis was set back.
local longest = lease_of(record[2])
if lease > now + longest then
  lease_until(now + longest, arg_worker)
  return { 'alive' }
end
if lease > now + arg_beatMs then return { 'alive' } end

-- If Redis was not running or its clock was set forward, all leases look over at once. So a lease is over only if Redis has
-- answered for one heartbeat interval since it was first in doubt, and the worker has not renewed it in that time. A much older
-- mark comes from before such an event, or from a process that did not continue.
local mark, since = string.match(doubt or '', '^([^ ]+) (.+)$')
local lease_text = string.format('%.0f', lease)
since = mark == lease_text and tonumber(since) or nil
if since == nil or since > now or now - since > 2 * longest then
  redis.call('HSET', key_worker, 'doubt', lease_text .. ' ' .. string.format('%.0f', now))
  redis.call('PEXPIRE', key_worker, rule_workerRecordMs)
  return { 'doubted', math.max(arg_beatMs, lease - now) }
end
local wait_ms = math.max(lease - now, since + arg_beatMs - now)
if wait_ms > 0 then return { 'doubted', wait_ms } end

local taken = let_go_some(arg_limit)
-- Without its number the worker is unknown, so it can no longer settle or claim under this name.
redis.call('HDEL', key_worker, 'seq', 'gave', 'lost', 'seq2', 'gave2', 'lost2',
  'limitedSeq', 'limited', 'limitedSeq2', 'limited2')
local more = held() > 0
if not more then
  end_lease(arg_worker)
  redis.call('DEL', key_worker)
end
if #taken == 0 then return { 'recovered', {}, {}, {}, {}, 0 } end

-- Generated ids sort by age.
table.sort(taken)
local ids, waiting, suspects, dead = {}, {}, {}, {}
local cancelled = { ids = {}, reasons = {}, keeps = {} }
for i = 1, #taken do
  if not is_cancelled(taken[i], traces, cancelled) then ids[#ids + 1] = taken[i] end
end
local events, digests, has_keys = { count = 0 }, {}, redis.call('EXISTS', key_unique) == 1
-- Another job may wait for the end of a job with a key. Must be called before that end, which may delete the body.
local function note_key(id) if has_keys then digests[#digests + 1] = unique_digest_of(body_of(id) or '') end end
for _, id in ipairs(cancelled.ids) do note_key(id) end
finish_cancelled(cancelled, 1, events, traces, now)
if #ids > 0 then
  say(events, 'stalled', #ids, table.concat(ids, '\n'), 'name', names_of(ids))
end
for i = 1, #ids do
  local stalls = add_stall(ids[i])
  local line = stalls > arg_maxStalls and dead or stalls >= rule_suspectAfter and suspects or waiting
  line[#line + 1] = ids[i]
  if line == dead then note_key(ids[i]) end
end
free_slots(waiting, traces, 'moved')
free_slots(suspects, traces, 'moved')
free_slots(dead, traces, 'dead')
push_to_head(waiting)
to_suspects(suspects)
for i = 1, #dead do finish_dead(dead[i], with_attempts(dead[i], rule_stalledRecord, now), now) end
if #dead > 0 then
  tally_names_of('dead', dead, day)
  say(events, 'dead', #dead, table.concat(dead, '\n'), 'name', names_of(dead), 'reason', 'stalled')
  if select(2, trim_dead(events, now)) then traces.has_freed = true end
end
if free_keys(digests, now) or #waiting + #suspects > 0 or traces.has_freed then ring() end
write_events(events, now)
return { 'recovered', waiting, suspects, dead, cancelled.ids, more and 1 or 0 }
