-- Whether this worker holds all of them: then one command does for all what else is done one by one.
local function are_held(ids)
  if #ids == 0 then return false end
  local member = redis.call('SMISMEMBER', key_active, unpack(ids))
  for i = 1, #ids do
    if member[i] == 0 then return false end
  end
  return true
end

-- Fence: only what this worker holds may be settled by it.
local function is_held(id, lost)
  if redis.call('SREM', key_active, id) == 1 then return true end
  lost[#lost + 1] = id
  return false
end
