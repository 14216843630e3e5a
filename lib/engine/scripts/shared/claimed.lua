--@needs bodies, names, count
-- The name that all of these jobs have, nil where they differ, and whether a body is missing. The first line of a body is the
-- job's name; mostly all have the same.
local function look_through(bodies, count)
  local stop = bodies[1] and string.find(bodies[1], '\n', 1, true)
  local same, missing = stop and string.sub(bodies[1], 1, stop), false
  for i = 1, count do
    if not bodies[i] then
      missing = true
    elseif same and string.find(bodies[i], same, 1, true) ~= 1 then
      same = nil
    end
  end
  return same and string.sub(same, 1, -2), missing
end

-- Their bodies, and what `look_through` answers of them; an error where one cannot be read.
local function read_claimed(ids)
  local bodies = redis.pcall('HMGET', hash_of(ids[1]), unpack(ids))
  if bodies.err then return bodies end
  local name, missing = look_through(bodies, #ids)
  if not missing then return bodies, name, false end
  bodies = add_other_bodies(ids, bodies)
  if bodies.err then return bodies end
  return bodies, look_through(bodies, #ids)
end

-- `failed`: attempts of each before this one; empty where none has failed.
local function add_active(events, gave, name, bodies, failed)
  if not name then
    name = table.concat(add_names({}, bodies), '\n')
  end
  for _, value in ipairs({ 'active', gave, 'active.name', name }) do events[#events + 1] = value end
  if #failed > 0 then
    local attempts = {}
    for i = 1, #failed do attempts[i] = count_in(failed[i]) + 1 end
    events[#events + 1] = 'active.attempt'
    events[#events + 1] = table.concat(attempts, '\n')
  end
end
