--@needs types, clock, bodies, tally, hold, ending, bell, event, unreadable
-- Compares the jobs that a worker holds here with the jobs that it knows, because the two may differ. Jobs with unreadable ids
-- become dead as corrupt, under readable ids.
local now = clock()
check_bodies()
check_types(key_meta, key_attempts, key_stalls, key_failures, key_logs, key_dead, key_slots, key_doorbell, key_stats)
local known = {}
local lost, unknown, unreadable = {}, {}, {}
for i = known_first, known_last do
  known[ARGV[i]] = true
  if redis.call('SISMEMBER', key_active, ARGV[i]) == 0 then lost[#lost + 1] = ARGV[i] end
end
for _, id in ipairs(redis.call('SMEMBERS', key_active)) do
  if not known[id] then
    local list = is_readable(id) and unknown or unreadable
    list[#list + 1] = id
  end
end

local buried = {}
for i, id in ipairs(unreadable) do
  buried[i] = finish_corrupt(id, body_of(id) or '', rule_unreadableRecord, now)
  finish_completed({ id }, { key_attempts, key_stalls, key_logs })
end
if #buried > 0 then
  let_go(unreadable)
  -- Such a job may have had the slot for which others wait.
  ring()
  tally('dead:', #buried)
  local events = { count = 0 }
  say(events, 'dead', #buried, table.concat(buried, '\n'), 'reason', 'corrupt')
  write_events(events, now)
end
return { lost, buried, unknown }
