--@needs types, clock, logs, event, large-values
-- Stores progress and log lines of running jobs. Returns for each whether the worker still has the job; if not, nothing of it is
-- stored.
check_types(key_meta, key_progress, key_logs)
local longest, ids = 0, {}
for i = notes_first, notes_last, 5 do
  ids[#ids + 1] = ARGV[i]
  longest = math.max(longest, #ARGV[i + 3])
end
if longest > rule_largeEvent then
  check_types(key_large)
end
-- Only a few values this large fit the limit, so they can be counted at once.
local large = math.max(rule_largeProgress, arg_progressMaxBytes / 16384)
if longest > large then
  check_types(key_largeProgress)
end
local now = clock()
local held = redis.call('SMISMEMBER', key_active, unpack(ids))

local events, large_bytes = { count = 0 }, 0
local of, names, attempts, values = {}, {}, {}, {}
for n, id in ipairs(ids) do
  local name, attempt, progress, log = unpack(ARGV, notes_first + n * 5 - 4, notes_first + n * 5 - 1)
  if held[n] == 1 and log ~= '' then add_to_log(id, log, attempt, arg_logsMax) end
  if held[n] == 1 and progress ~= '' then
    redis.call('HSET', key_progress, id, progress)
    if #progress > large then bound_progress(id, #progress) end
    if #progress > rule_largeEvent then large_bytes = large_bytes + #progress end
    local k = #of + 1
    of[k], names[k], attempts[k], values[k] = id, name, attempt, progress
  end
end
if #of > 0 then
  local function lines(list) return table.concat(list, '\n') end
  say(events, 'progress', #of, lines(of), 'name', lines(names), 'attempt', lines(attempts), 'progress', lines(values))
  write_events(events, now)
  if arg_maxEvents > 0 and large_bytes > 0 then trim_large(large_bytes) end
end
return held
