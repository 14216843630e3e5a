--@needs steps, count
-- Back to the head of the line, in the order given; what has stalled twice or more goes to the line of the suspects.
local function to_head(ids)
  local stalls = {}
  in_steps(ids, function(...)
    for _, count in ipairs(redis.call('HMGET', key_stalls, ...)) do stalls[#stalls + 1] = count_in(count) end
  end)
  local suspects, others = {}, {}
  for i = #ids, 1, -1 do
    local line = stalls[i] >= 2 and suspects or others
    line[#line + 1] = ids[i]
  end
  in_steps(others, function(...) redis.call('LPUSH', key_wait, ...) end)
  in_steps(suspects, function(...) redis.call('LPUSH', key_suspects, ...) end)
end
