--@needs clock, bodies, named, count, unreadable, slots
-- The places of all ids, or of the given ids. The caller judges what is wrong. Nothing moves during a script, so the answer is
-- exact, but it is only for a few ids. For more, the caller reads pages.
local now = clock()
local hashes = body_hashes()
check_bodies()
local names = named_workers()
if not names then return { 'again' } end

local asked = arg_all == 0
local asked_ids = {}
for i = ids_first, ids_last do asked_ids[#asked_ids + 1] = id_of_told(ARGV[i]) end
if not asked then
  local total = redis.call('LLEN', key_wait) + redis.call('LLEN', key_suspects)
  for _, hash in ipairs(hashes) do total = total + redis.call('HLEN', hash) end
  for _, key in ipairs({ key_prioritized, key_grouped, key_delayed, key_dead, key_completed }) do total = total + redis.call('ZCARD', key) end
  if total > arg_max then return { 'large' } end
end

local function listed(key)
  if not asked then return redis.call('LRANGE', key, 0, -1) end
  local found = {}
  for _, id in ipairs(asked_ids) do
    for _ = 1, #redis.call('LPOS', key, id, 'COUNT', 2) do found[#found + 1] = id end
  end
  return found
end

local function ranked(key)
  if not asked then return redis.call('ZRANGE', key, 0, -1) end
  local found = {}
  for _, id in ipairs(asked_ids) do
    if redis.call('ZSCORE', key, id) then found[#found + 1] = id end
  end
  return found
end

-- Pairs of a key and an id: counters that cannot be read, and bodies in the wrong hash.
local unreadable = {}
local function cannot_read(name, id)
  unreadable[#unreadable + 1] = name
  unreadable[#unreadable + 1] = told_id(id)
end

local function kept()
  local found = {}
  for _, hash in ipairs(hashes) do
    for _, id in ipairs(asked and asked_ids or redis.call('HKEYS', hash)) do
      if not asked or redis.call('HEXISTS', hash, id) == 1 then
        found[#found + 1] = id
        if hash ~= hash_of(id) then cannot_read('jobs', id) end
      end
    end
  end
  return found
end

-- Slots that only running jobs may have, and slots of jobs that are gone.
local function slotted()
  local found = {}
  for _, id in ipairs(ranked(key_slots)) do
    if ends_with_run(redis.call('ZSCORE', key_slots, id)) or not has_body(id) then found[#found + 1] = id end
  end
  return found
end

local function hashed(key)
  if not asked then return redis.call('HKEYS', key) end
  local found = {}
  for _, id in ipairs(asked_ids) do
    if redis.call('HEXISTS', key, id) == 1 then found[#found + 1] = id end
  end
  return found
end

-- A log has several fields. Each of them begins with the id.
local function logged()
  local found, is_found = {}, {}
  for _, field in ipairs(asked and {} or redis.call('HKEYS', key_logs)) do
    local id = string.match(field, '^[^\n]*')
    if not is_found[id] then found[#found + 1] = id end
    is_found[id] = true
  end
  for _, id in ipairs(asked_ids) do
    if redis.call('HEXISTS', key_logs, id) + redis.call('HEXISTS', key_logs, id .. '\n0') > 0 then found[#found + 1] = id end
  end
  return found
end

local function held(key)
  if not asked then return redis.call('SMEMBERS', key) end
  local found = {}
  for _, id in ipairs(asked_ids) do
    if redis.call('SISMEMBER', key, id) == 1 then found[#found + 1] = id end
  end
  return found
end

local function read_numbers(name, key, read)
  for _, id in ipairs(hashed(key)) do
    if not read(redis.call('HGET', key, id)) then cannot_read(name, id) end
  end
end
read_numbers('attempts', key_attempts, is_count)
read_numbers('stalls', key_stalls, is_count)
read_numbers('priorities', key_priorities, is_priority)

local holders = {}
local at = 1
for i = more_first, more_last, 2 do
  holders[at] = { redis.call('ZSCORE', key_workers, names[at]) or '', redis.call('HEXISTS', KEYS[i + 1], 'seq'),
    redis.call('HGET', KEYS[i + 1], 'lease') or '', redis.call('SCARD', KEYS[i]), told_ids(held(KEYS[i])) }
  at = at + 1
end
local answer = { 'facts', now, holders }
for _, ids in ipairs({ kept(), listed(key_wait), listed(key_suspects), ranked(key_prioritized), ranked(key_grouped), ranked(key_delayed),
  ranked(key_dead), ranked(key_completed), hashed(key_attempts), hashed(key_stalls), hashed(key_failures), hashed(key_results),
  hashed(key_progress), logged(), hashed(key_priorities), hashed(key_toCancel), slotted() }) do answer[#answer + 1] = told_ids(ids) end
answer[#answer + 1] = unreadable
return answer
