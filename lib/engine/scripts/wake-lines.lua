--@needs types, bell
-- Marks a page of all lines to be looked at by the next claim, because a rule of all groups has changed.
check_types(key_ready, key_resting, key_doorbell)
local page = redis.call('HSCAN', key_lineStates, arg_cursor, 'COUNT', 500)
local ready = {}
for i = 1, #page[2], 2 do
  if page[2][i + 1] ~= '' then ready[#ready + 1], ready[#ready + 2] = '0', page[2][i] end
end
if #ready > 0 then
  redis.call('ZADD', key_ready, 'NX', unpack(ready))
  for i = 2, #ready, 2 do redis.call('ZREM', key_resting, ready[i]) end
  ring()
end
return page[1]
