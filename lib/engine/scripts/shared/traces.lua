-- What a job may have left beside its body. Reading the lengths first checks the types before anything is written, and
-- spares the deletes where nothing is there, which one command mostly tells.
local trace_keys = {}
if redis.call('EXISTS', key_attempts, key_stalls, key_failures, key_progress, key_logs, key_priorities, key_cancels) > 0 then
  for _, key in ipairs({ key_attempts, key_stalls, key_failures, key_progress, key_logs, key_priorities, key_cancels }) do
    if redis.call('HLEN', key) > 0 then trace_keys[#trace_keys + 1] = key end
  end
end
local has_cancels = trace_keys[#trace_keys] == key_cancels
