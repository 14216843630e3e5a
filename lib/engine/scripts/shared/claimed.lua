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

-- The bodies of the first of these jobs, of as many as `max_bytes` have room for and at least of one, and what `look_through` answers
-- of them; an error if one cannot be read. Most claims are one step. The first shows how large bodies are, so that the next reads
-- no more of them than may be given out.
local function read_claimed(ids, max_bytes)
  local bodies, bytes = {}, 0
  while #bodies < #ids do
    local count = #bodies
    local more = count == 0 and 50 or math.max(1, math.ceil(2 * (max_bytes - bytes) * count / bytes))
    local last = math.min(#ids, count + more)
    local some = last - count == #ids and ids or { unpack(ids, count + 1, last) }
    local found = redis.pcall('HMGET', hash_of(some[1]), unpack(some))
    for i = 1, #found do
      if not found[i] then
        found = add_other_bodies(some, found)
        break
      end
    end
    if found.err then return found end
    for i = 1, #some do
      bytes = bytes + (found[i] and #found[i] or 0)
      if bytes > max_bytes and count + i > 1 then return bodies, look_through(bodies, #bodies) end
      bodies[count + i] = found[i]
    end
  end
  return bodies, look_through(bodies, #bodies)
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
