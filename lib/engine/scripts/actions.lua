--@needs types
-- Actions of an actor and a queue (empty: any), the newest first: at most arg_limit of arg_most that it examines. Returns the id
-- to continue before; empty if there are no older ones.
check_types(key_actions)
local from = arg_before == '' and '+' or '(' .. arg_before
local found = redis.call('XREVRANGE', key_actions, from, '-', 'COUNT', arg_most)
local matching = {}
for i, entry in ipairs(found) do
  local actor, queue
  local fields = entry[2]
  for at = 1, #fields, 2 do
    if fields[at] == 'actor' then actor = fields[at + 1] end
    if fields[at] == 'queue' then queue = fields[at + 1] end
  end
  if (arg_actor == '' or actor == arg_actor) and (arg_queue == '' or queue == arg_queue) then
    matching[#matching + 1] = entry
  end
  if #matching == arg_limit or i == arg_most then return { matching, entry[1] } end
end
return { matching, '' }
