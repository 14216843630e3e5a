-- A bounded look through a sorted set in its own order, from behind a place on: a score and an id that need not be there
-- any more, so that what comes and goes meanwhile is neither passed over nor met twice.

-- By bytes, as Redis orders equal scores; `<` would ask the locale.
local function follows(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

local function rank_behind(key)
  if arg_afterId == '' then return 0 end
  local low = redis.call('ZCOUNT', key, '-inf', '(' .. arg_afterAt)
  local high = low + redis.call('ZCOUNT', key, arg_afterAt, arg_afterAt)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if follows(redis.call('ZRANGE', key, middle, middle)[1], arg_afterId) then high = middle else low = middle + 1 end
  end
  return low
end

-- `fits` answers whether a job is asked for, and how many bytes it had to read for that. Answers the ids that fit, and the place
-- to go on behind: empty at the end.
local function walk(key, first, last, fits)
  local found, page, spent, seen = {}, {}, 0, 0
  if first <= last then
    page = redis.call('ZRANGE', key, first, math.min(last, first + arg_examine - 1), 'WITHSCORES')
  end
  while 2 * seen < #page and #found < arg_limit and spent < arg_bytes do
    local id = page[2 * seen + 1]
    local fit, bytes = fits(id, tonumber(page[2 * seen + 2]))
    if fit then found[#found + 1] = id end
    spent = spent + bytes
    seen = seen + 1
  end
  if seen == 0 or first + seen > last then return found, '', '' end
  return found, page[2 * seen], page[2 * seen - 1]
end
