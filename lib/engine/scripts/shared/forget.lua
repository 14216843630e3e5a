local function forget_traces(...)
  for i = 1, #trace_keys do redis.call('HDEL', trace_keys[i], ...) end
end

local function forget(...)
  drop_bodies(...)
  forget_traces(...)
end
