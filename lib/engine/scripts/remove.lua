--@needs types, clock, bodies, names, traces, line, ending, event, bell, workers, unique
-- Removes jobs in any state except active: a job is not removed while its handler runs. An empty answer means that the caller must
-- ask again for this job: one call does not search for long, and reads few large bodies.
check_bodies()
local now = clock()
local traces = read_traces()
check_types(key_meta, key_results, key_doorbell, key_unique, key_priorities)
local workers = leased_workers()
if #workers ~= more_last - more_first + 1 or table.concat(workers, '\n') ~= arg_workers then return 'again' end
check_types(key_wait, key_grouped, key_suspects, key_prioritized, key_delayed, key_dead, key_completed)
local ids, answers, name_by, digest_by, waiting, bytes = { unpack(ARGV, ids_first, ids_last) }, {}, {}, {}, {}, 0
local active = active_among(ids)
for i, id in ipairs(ids) do
  answers[i] = ''
  if bytes < arg_bytes then
    local body = body_of(id) or nil
    bytes = bytes + #(body or '') + (body and log_cost(id, traces) or 0)
    -- A job whose retention is over counts as gone.
    if not body or name_by[id] or is_retired(id, now) then
      answers[i] = 'not-found'
    elseif active[id] then
      answers[i] = 'active'
    else
      answers[i], name_by[id], digest_by[id] = 'removed', name_of(body), unique_digest_of(body)
      if leave_dead({ id }) + leave_completed({ id }) == 0 then waiting[#waiting + 1] = id end
    end
  end
end
local _, later = leave_some(waiting)
local removed, names, digests, events = {}, {}, {}, { count = 0 }
for i, id in ipairs(ids) do
  if later[id] then answers[i] = '' end
  if answers[i] == 'removed' then removed[#removed + 1], names[#names + 1], digests[#digests + 1] = id, name_by[id], digest_by[id] end
end
if #removed > 0 then finish_removed(removed, names, 'asked', events, traces) end
if free_keys(digests, now) or traces.has_freed then ring() end
write_events(events, now)
return answers
