-- Back to the head of the line, in the order given; what has stalled twice or more goes to the line of the suspects.
local function to_head(ids)
  local suspects, others = {}, {}
  local stalls = redis.call('HMGET', key_stalls, unpack(ids))
  for i = #ids, 1, -1 do
    local line = (tonumber(stalls[i]) or 0) >= 2 and suspects or others
    line[#line + 1] = ids[i]
  end
  if #others > 0 then redis.call('LPUSH', key_wait, unpack(others)) end
  if #suspects > 0 then redis.call('LPUSH', key_suspects, unpack(suspects)) end
end
