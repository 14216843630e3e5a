--@needs steps, bodies, logs
-- What jobs may have left beside their bodies: the keys that have anything of it, which spares the deletes where nothing is
-- there, and `has_cancels`. It checks the types, so it is read before anything is written. One command mostly tells.
local function read_traces()
  local traces = { has_cancels = false }
  if redis.call('EXISTS', key_attempts, key_stalls, key_failures, key_progress, key_logs, key_priorities, key_cancels) == 0 then
    return traces
  end
  for _, key in ipairs({ key_attempts, key_stalls, key_failures, key_progress, key_logs, key_priorities, key_cancels }) do
    if redis.call('HLEN', key) > 0 then traces[#traces + 1] = key end
  end
  traces.has_cancels = traces[#traces] == key_cancels
  return traces
end

local function forget_traces(ids, traces)
  if #traces == 0 then return end
  in_steps(ids, function(...)
    for i = 1, #traces do
      if traces[i] == key_logs then drop_logs({ ... }) else redis.call('HDEL', traces[i], ...) end
    end
  end)
end

local function forget(ids, traces)
  in_steps(ids, drop_bodies)
  forget_traces(ids, traces)
end
