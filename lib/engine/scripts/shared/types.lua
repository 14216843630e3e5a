-- A script checks the types of all keys that it may write before its first write. If one is wrong, nothing has changed.
local function check_type(key, type_)
  local found = redis.call('TYPE', key).ok
  if found ~= type_ and found ~= 'none' then
    error({ err = 'WRONGTYPE Operation against a key holding the wrong kind of value: ' .. key .. ' is a ' .. found
      .. ', not a ' .. type_ })
  end
end

-- Called with keys only. The linker adds the type from `keys.ts` after each of them.
local function check_types(...)
  local pairs_ = { ... }
  for i = 1, #pairs_, 2 do check_type(pairs_[i], pairs_[i + 1]) end
end
