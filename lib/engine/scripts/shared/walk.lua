-- Walks through a limited part of a sorted set in its order, starting after a place: a score and an id. The id may be gone
-- already. So jobs that come and go meanwhile are neither skipped nor visited twice.

-- Compares bytes, as Redis does for equal scores. `<` would depend on the locale.
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

-- The last rank before the place, for a walk in the opposite order.
local function rank_before(key)
  if arg_afterId == '' then return math.huge end
  local behind = rank_behind(key)
  if behind == 0 then return -1 end
  local last = redis.call('ZRANGE', key, behind - 1, behind - 1, 'WITHSCORES')
  local is_there = last[1] == arg_afterId and tonumber(last[2]) == tonumber(arg_afterAt)
  return is_there and behind - 2 or behind - 1
end

-- `fits` returns whether a job matches, and how many bytes it had to read. Returns the matching ids, the place after which to
-- continue (empty at the end), and how many jobs were looked at.
local function walk(key, first, last, fits, backward)
  local found, page, spent, seen, at = {}, {}, 0, 0, 0
  local from, to = first, math.min(last, first + arg_examine - 1)
  if backward then from, to = math.max(first, last - arg_examine + 1), last end
  if from <= to then page = redis.call('ZRANGE', key, from, to, 'WITHSCORES') end
  while 2 * seen < #page and #found < arg_limit and spent < arg_bytes do
    at = backward and #page - 2 * seen or 2 * seen + 2
    local fit, bytes = fits(page[at - 1], tonumber(page[at]))
    if fit then found[#found + 1] = page[at - 1] end
    spent = spent + bytes
    seen = seen + 1
  end
  if seen == 0 or first + seen > last then return found, '', '', seen end
  return found, page[at], page[at - 1], seen
end

-- The same for the jobs with the ids in ARGV whose score is at most `until` (0: any). Returns the matching ids, and the id with which
-- to continue (empty at the end).
local function walk_named(key, fits)
  local found, met, spent = {}, {}, 0
  for i = ids_first, ids_last do
    local id = ARGV[i]
    if spent >= arg_bytes then return found, id end
    local at = not met[id] and tonumber(redis.call('ZSCORE', key, id))
    if at and (arg_until == 0 or at <= arg_until) then
      local fit, bytes = fits(id)
      if fit then found[#found + 1] = id end
      spent = spent + bytes
    end
    met[id] = true
  end
  return found, ''
end
