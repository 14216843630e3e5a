--@needs types
-- Bodies as one text, which a client reads faster; large ones are not copied once more.
local function bodies_in(bodies)
  return #bodies > 0 and #bodies[1] > 2048 and bodies or table.concat(bodies, arg_separator)
end

-- The hash that keeps the body of a job, by its id: one that is as long as a made id and ends in a letter has the hash of that
-- letter, all others are in `jobs`.
local function hash_of(id)
  local letter = #id == 19 and string.byte(id, 19)
  return letter and letter >= 65 and letter <= 90 and KEYS[at_letter + letter] or key_jobs
end

-- Mostly all ids have one hash, that of the first. These are those of other hashes, by hash, each with its place.
local function in_other_hashes(ids, is_asked)
  local first, ids_of, places_of = hash_of(ids[1]), {}, {}
  for i = 1, #ids do
    local hash = is_asked(i) and hash_of(ids[i]) or first
    if hash ~= first then
      if not ids_of[hash] then ids_of[hash], places_of[hash] = {}, {} end
      table.insert(ids_of[hash], ids[i])
      table.insert(places_of[hash], i)
    end
  end
  return ids_of, places_of
end

-- Those missing in the hash of the first id are looked for in their own.
local function add_other_bodies(ids, bodies)
  local ids_of, places_of = in_other_hashes(ids, function(i) return not bodies[i] end)
  for hash, its in pairs(ids_of) do
    local found = redis.pcall('HMGET', hash, unpack(its))
    if found.err then return found end
    for i, body in ipairs(found) do bodies[places_of[hash][i]] = body end
  end
  return bodies
end

-- An error where one of them cannot be read.
local function bodies_of(ids)
  local bodies = redis.pcall('HMGET', hash_of(ids[1]), unpack(ids))
  return bodies.err and bodies or add_other_bodies(ids, bodies)
end

-- Cannot fail: a key of another type keeps nothing that could be dropped.
local function drop_bodies(...)
  local first = ...
  if redis.pcall('HDEL', hash_of(first), ...) == select('#', ...) then return end
  for hash, its in pairs(in_other_hashes({ ... }, function() return true end)) do redis.pcall('HDEL', hash, unpack(its)) end
end

-- All that may keep bodies.
local function body_hashes()
  local hashes = { key_jobs }
  for at = at_letter + 65, at_letter + 90 do hashes[#hashes + 1] = KEYS[at] end
  return hashes
end

-- For scripts that learn only on their way which of them they write.
local function check_bodies()
  for _, hash in ipairs(body_hashes()) do check_type(hash, 'hash') end
end
