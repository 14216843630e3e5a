--@needs types, clock, logs, event, large-values
-- Stores the progress or a log line of a running job. A run that has lost its job is ignored.
check_types(key_meta, key_progress, key_logs)
if #arg_progress > rule_largeEvent then
  check_types(key_large)
end
-- Only a few values this large fit the limit, so they can be counted at once.
local is_large = #arg_progress > math.max(rule_largeProgress, arg_progressMaxBytes / 16384)
if is_large then
  check_types(key_largeProgress)
end
local now = clock()
if redis.call('SISMEMBER', key_active, arg_id) == 0 then return 0 end
if arg_log ~= '' then add_to_log(arg_id, arg_log, arg_attempt, arg_logsMax) end
if arg_progress ~= '' then
  redis.call('HSET', key_progress, arg_id, arg_progress)
  if is_large then bound_progress(arg_id, #arg_progress) end
  local events = { count = 0 }
  say(events, 'progress', 1, arg_id, 'name', arg_name, 'attempt', arg_attempt, 'progress', arg_progress)
  write_events(events, now)
  if arg_maxEvents > 0 then trim_large(#arg_progress) end
end
return 1
