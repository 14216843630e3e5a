--@needs types, clock, bodies, body-lines, traces, line, ending, event, bell, workers, unique
-- Ends jobs as cancelled, now or when their runs end. A job that has ended already does not change. An empty answer means that the
-- caller must ask again for this job: one call does not search for long, and reads few large bodies.
check_bodies()
local now = clock()
local traces = read_traces()
check_types(key_meta, key_wait, key_grouped, key_suspects, key_prioritized, key_delayed, key_stats, key_completed, key_results, key_doorbell, key_unique, key_priorities, key_dead)
local workers = leased_workers()
if #workers ~= more_last - more_first + 1 or table.concat(workers, '\n') ~= arg_workers then return 'again' end
local ids, answers, keep_of, digest_by, waiting, bytes = { unpack(ARGV, ids_first, ids_last) }, {}, {}, {}, {}, 0
local active = active_among(ids)
for i, id in ipairs(ids) do
  answers[i] = ''
  if bytes < arg_bytes then
    local body = body_of(id) or nil
    bytes = bytes + #(body or '') + (body and log_cost(id, traces) or 0)
    answers[i] = 'not-found'
    if body and active[id] then
      answers[i] = 'signalled'
      mark_cancelled(id, arg_reason, kept_when_cancelled(body, arg_keep))
    elseif body and not keep_of[id] then
      waiting[#waiting + 1], keep_of[id] = id, kept_when_cancelled(body, arg_keep)
      answers[i], digest_by[id] = 'cancelled', unique_digest_of(body)
    end
  end
end
local left, later = leave_some(waiting)
local cancelled, digests, events = { ids = {}, reasons = {}, keeps = {} }, {}, { count = 0 }
for i, id in ipairs(ids) do
  if answers[i] == 'cancelled' and not left[id] then answers[i] = later[id] and '' or 'not-found' end
  if answers[i] == 'cancelled' then
    local at = #cancelled.ids + 1
    cancelled.ids[at], cancelled.reasons[at], cancelled.keeps[at] = id, arg_reason, keep_of[id]
    digests[#digests + 1] = digest_by[id]
  end
end
finish_cancelled(cancelled, 0, events, traces, now)
if free_keys(digests, now) or traces.has_freed then ring() end
write_events(events, now)
return answers
