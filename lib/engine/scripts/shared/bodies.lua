--@needs types
-- Bodies as one text, which a client reads faster. Large ones stay a list, so that they are not copied once more.
local function bodies_in(bodies) return #bodies > 0 and #bodies[1] > 2048 and bodies or table.concat(bodies, arg_separator) end

-- The hash that keeps the body of a job. An id as long as a generated one that ends in a letter has the hash of that letter. All
-- others are in `jobs`.
local function hash_of(id)
  local letter = #id == 19 and string.byte(id, 19)
  return letter and letter >= 65 and letter <= 90 and KEYS[at_letter + letter] or key_jobs
end

-- The ids that are not in the hash of the first id, grouped by hash, with their indexes. Usually there are none. Ids whose body is in
-- `found` are left out.
local function in_other_hashes(ids, found)
  local first, others = hash_of(ids[1]), {}
  for i = 1, #ids do
    local hash = not found[i] and hash_of(ids[i]) or first
    if hash ~= first then
      local its = others[hash] or { places = {} }
      others[hash], its[#its + 1], its.places[#its + 1] = its, ids[i], i
    end
  end
  return others
end

-- The bodies of these jobs, or an error if one of them cannot be read. Nearly all calls find them in the hash of the first job.
local function bodies_of(ids)
  local bodies = redis.pcall('HMGET', hash_of(ids[1]), unpack(ids))
  for at = 1, #bodies do
    if not bodies[at] then
      for hash, its in pairs(in_other_hashes(ids, bodies)) do
        local found = redis.pcall('HMGET', hash, unpack(its))
        if found.err then return found end
        for i, body in ipairs(found) do bodies[its.places[i]] = body end
      end
      break
    end
  end
  return bodies
end

-- Never fails: a key of another type has no body to drop.
local function drop_bodies(...)
  local first = ...
  if redis.pcall('HDEL', hash_of(first), ...) == select('#', ...) then return end
  for hash, its in pairs(in_other_hashes({ ... }, {})) do redis.pcall('HDEL', hash, unpack(its)) end
end

local function body_of(id) return redis.call('HGET', hash_of(id), id) end

local function has_body(id) return redis.call('HEXISTS', hash_of(id), id) == 1 end

local function put_body(id, body) redis.call('HSET', hash_of(id), id, body) end

-- `fields` has ids and bodies alternately, from `first` to `last`. `ids` are the same ids.
local function put_bodies(ids, fields, first, last)
  local hash = hash_of(ids[1])
  for i = 2, #ids do
    if hash_of(ids[i]) ~= hash then
      for at = first, last, 2 do put_body(fields[at], fields[at + 1]) end
      return
    end
  end
  redis.call('HSET', hash, unpack(fields, first, last))
end

-- Returns the name that all of these jobs share (nil if they differ), and whether a body is missing. The first line of a body is
-- the job's name.
local function look_through(bodies, count)
  local stop = bodies[1] and string.find(bodies[1], '\n', 1, true)
  local same, missing = stop and string.sub(bodies[1], 1, stop), false
  for i = 1, count do
    missing = missing or not bodies[i]
    if same and bodies[i] and string.find(bodies[i], same, 1, true) ~= 1 then same = nil end
  end
  return same and string.sub(same, 1, -2), missing
end

-- The bodies of the first of these jobs, as many as fit into `max_bytes` and at least one, and what `look_through`
-- returns. If a body cannot be read, only an error. Most claims need one step. The first step shows how large bodies are, so that the
-- next one does not read too many.
local function bodies_and_name(ids, max_bytes)
  local bodies, bytes = {}, 0
  while #bodies < #ids do
    local count = #bodies
    local more = count == 0 and 50 or math.max(1, math.ceil(2 * (max_bytes - bytes) * count / bytes))
    local last = math.min(#ids, count + more)
    local some = last - count == #ids and ids or { unpack(ids, count + 1, last) }
    local found = bodies_of(some)
    if found.err then return found end
    for i = 1, #some do
      bytes = bytes + (found[i] and #found[i] or 0)
      if bytes > max_bytes and count + i > 1 then return bodies, look_through(bodies, #bodies) end
      bodies[count + i] = found[i]
    end
  end
  return bodies, look_through(bodies, #bodies)
end

-- All hashes that may keep bodies.
local function body_hashes()
  local hashes = { key_jobs }
  for at = at_letter + 65, at_letter + 90 do hashes[#hashes + 1] = KEYS[at] end
  return hashes
end

-- For scripts that do not know in advance which hashes they write.
local function check_bodies() for _, hash in ipairs(body_hashes()) do check_type(hash, 'hash') end end

-- For scripts that write the bodies of these jobs only, usually all in one hash.
local function check_bodies_of(ids) check_type(#ids > 0 and hash_of(ids[1]) or key_jobs, 'hash') end
