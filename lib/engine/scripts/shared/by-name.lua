--@needs steps, bodies, names, count
-- Daily counters by job name, as `kind:name`. The total is their sum. Users may generate names: beyond a fixed number of names
-- per day, all others share the empty name, as do jobs whose name is lost.

-- The state that the counters of a day need: how many names they have. Reading it checks the type of the key.
local function read_day() return { names = count_in(redis.call('HGET', key_stats, 'names')) } end

local function kinds_of(name)
  local kinds = 0
  for _, count in ipairs(redis.call('HMGET', key_stats, 'processed:' .. name, 'failed:' .. name, 'dead:' .. name)) do
    if count then kinds = kinds + 1 end
  end
  return kinds
end

-- Called after the first count of a name on this day.
local function first_today(name, day)
  if name ~= '' and kinds_of(name) == 1 then day.names = day.names + 1 end
  redis.call('HSET', key_stats, 'names', day.names)
  redis.call('EXPIRE', key_stats, rule_statsDays * 86400)
end

local function tally_name(kind, name, count, day)
  if count == 0 then return end
  if name ~= '' and day.names >= rule_namesPerDay and kinds_of(name) == 0 then name = '' end
  if add_to(key_stats, kind .. ':' .. name, count) == count then first_today(name, day) end
end

-- For jobs that still have bodies.
local function tally_names_of(kind, ids, day)
  local counts = {}
  in_steps(ids, function(...)
    for _, body in ipairs(bodies_of({ ... })) do
      local name = name_of(body)
      counts[name] = (counts[name] or 0) + 1
    end
  end)
  for name, count in pairs(counts) do tally_name(kind, name, count, day) end
end
