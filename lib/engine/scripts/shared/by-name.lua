--@needs steps, bodies, names, count
-- Daily counters by job name, as `kind:name`; the whole is their sum. Names may be made by users: beyond the first 200 of a day
-- all stand together under the empty name, as do jobs whose name is lost.

-- The counters of a day as the caller passes them on: how many names they know. Reading it checks the key's type.
local function read_day()
  return { names = count_in(redis.call('HGET', key_stats, 'names')) }
end

local function kinds_of(name)
  local kinds = 0
  for _, count in ipairs(redis.call('HMGET', key_stats, 'processed:' .. name, 'failed:' .. name, 'dead:' .. name)) do
    if count then kinds = kinds + 1 end
  end
  return kinds
end

local function begin_day(day)
  redis.call('HSET', key_stats, 'names', day.names)
  redis.call('EXPIRE', key_stats, 7776000)
end

-- Its first count of the day has just been written.
local function first_today(name, day)
  if name ~= '' and kinds_of(name) == 1 then day.names = day.names + 1 end
  begin_day(day)
end

local function tally_name(kind, name, count, day)
  if count == 0 then return end
  if name ~= '' and day.names >= 200 and kinds_of(name) == 0 then name = '' end
  if add_to(key_stats, kind .. ':' .. name, count) == count then first_today(name, day) end
end

-- Many at once, each a kind, a name and a count: one command reads and one writes them.
local function tally_names(tallies, day)
  if #tallies == 1 then return tally_name(tallies[1][1], tallies[1][2], tallies[1][3], day) end
  if #tallies == 0 then return end
  local fields = {}
  for i = 1, #tallies do fields[i] = tallies[i][1] .. ':' .. tallies[i][2] end
  local before = redis.call('HMGET', key_stats, unpack(fields))
  local listed, is_new, written, others = {}, false, {}, { processed = 0, failed = 0, dead = 0 }
  for i = 1, #tallies do
    local kind, name, count = tallies[i][1], tallies[i][2], tallies[i][3]
    if not before[i] and not listed[name] then
      is_new = true
      listed[name] = (name == '' or kinds_of(name) > 0) and 'yes' or day.names < 200 and 'new' or 'no'
      if listed[name] == 'new' then day.names = day.names + 1 end
    end
    if listed[name] == 'no' then
      others[kind] = others[kind] + count
    else
      written[#written + 1] = fields[i]
      written[#written + 1] = string.format('%.0f', count_in(before[i]) + count)
    end
  end
  if #written > 0 then redis.call('HSET', key_stats, unpack(written)) end
  for kind, count in pairs(others) do tally_name(kind, '', count, day) end
  if is_new then begin_day(day) end
end

-- Of jobs whose bodies are there.
local function tally_names_of(kind, ids, day)
  local counts, tallies = {}, {}
  in_steps(ids, function(...)
    for _, body in ipairs(bodies_of({ ... })) do
      local name = name_of(body)
      counts[name] = (counts[name] or 0) + 1
    end
  end)
  for name, count in pairs(counts) do tallies[#tallies + 1] = { kind, name, count } end
  tally_names(tallies, day)
end
