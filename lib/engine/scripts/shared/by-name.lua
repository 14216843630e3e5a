-- Daily counters of each job name, as `kind:name`. Names may be made by users: beyond the first 200 of a day all stand
-- together under the empty name, as do jobs whose name is lost. Reading how many there are checks the type of the key.
local names_today = tonumber(redis.call('HGET', key_stats, 'names')) or 0

local function kinds_of(name)
  local kinds = 0
  for _, count in ipairs(redis.call('HMGET', key_stats, 'processed:' .. name, 'failed:' .. name, 'dead:' .. name)) do
    if count then kinds = kinds + 1 end
  end
  return kinds
end

local function tally_name(kind, name, count)
  if count == 0 then return end
  if name ~= '' and names_today >= 200 and kinds_of(name) == 0 then name = '' end
  local is_first = redis.call('HINCRBY', key_stats, kind .. ':' .. name, count) == count
  if is_first and name ~= '' and kinds_of(name) == 1 then
    names_today = redis.call('HINCRBY', key_stats, 'names', 1)
  end
end

-- Of jobs whose bodies are there.
local function tally_names_of(kind, ids)
  local counts = {}
  in_steps(ids, function(...)
    for _, body in ipairs(redis.call('HMGET', key_jobs, ...)) do
      local name = name_of(body)
      counts[name] = (counts[name] or 0) + 1
    end
  end)
  for name, count in pairs(counts) do tally_name(kind, name, count) end
end
