--@needs drop-schedule
-- A declaration is `process ttl set`, and a set is `owner:digest`. None of these words contains a space.
local function set_of(declaration) return string.match(declaration, '[^ ]*$') end

local function is_of_owner(set) return string.sub(set, 1, #arg_owner + 1) == arg_owner .. ':' end

-- Removes schedules that only sets without a process name, if they still belong to this owner: somebody may have replaced one by
-- another of the same id. Returns the removed ids, how many sets are gone, and how many sets with schedules are left.
local function prune()
  local living = {}
  for _, declaration in ipairs(redis.call('ZRANGE', key_declarers, 0, -1)) do
    living[set_of(declaration)] = true
  end
  local sets = redis.call('HGETALL', key_declaredSets)
  local wanted, dead, left = {}, {}, 0
  for i = 1, #sets, 2 do
    local set, ids = sets[i], sets[i + 1]
    if is_of_owner(set) and living[set] then
      if ids ~= '' then left = left + 1 end
      for id in string.gmatch(ids, '[^\n]+') do wanted[id] = true end
    elseif is_of_owner(set) then
      dead[#dead + 1] = i
    end
  end
  local removed, begins = {}, arg_owner .. '\n'
  for gone, i in ipairs(dead) do
    -- Limited, so that no call takes long. The rest is removed by the next call, so its sets count as left.
    if #removed >= 500 then return removed, gone - 1, left + 1 end
    for id in string.gmatch(sets[i + 1], '[^\n]+') do
      local record = not wanted[id] and redis.call('HGET', key_schedules, id)
      if record and string.sub(record, 1, #begins) == begins then
        drop_schedule(id)
        removed[#removed + 1] = id
      end
    end
    redis.call('HDEL', key_declaredSets, sets[i])
  end
  return removed, #dead, left
end
