-- Rate limits. A rule says `max` starts `per` so many ms, and how they are counted; the state of it is a text, empty at first.
-- `sliding`, the default: never more than `max` in any time as long as `per`; starts are counted in a hundred slices of it, `slice:count`
-- each, and a slice counts until its end is older than `per`.
-- `fixed`: `start count`, a window begins with the first start after the end of the one before.
-- `bucket`: the generic cell rate algorithm (ITU-T I.371): the theoretical arrival time of the next start, in ms.

local function slices_in(rate, text, now)
  local width, used, kept = rate.per / 100, 0, {}
  local current = math.floor(now / width)
  for slice, count in string.gmatch(text, '(%d+):(%-?[%d.]+)') do
    slice = tonumber(slice)
    -- One that lies far ahead was written before the clock was stepped back.
    if slice >= current - 100 and slice <= current + 100 then
      used = used + tonumber(count)
      kept[#kept + 1] = { slice, tonumber(count) }
    end
  end
  return kept, used, current, width
end

local function window_in(rate, text, now)
  local start, count = string.match(text, '^([%d.]+) (%-?[%d.]+)$')
  start = tonumber(start)
  if not start or start > now or now >= start + rate.per then return now, 0 end
  return start, tonumber(count)
end

-- When the next start is due by the bucket, not further ahead than it can be.
local function arrival_in(rate, text, now)
  return math.min(tonumber(text) or 0, now + rate.per * (1 + rate.burst / rate.max))
end

-- How many may start now, and in how many ms the next may if none may now.
local function rate_left(rate, text, now)
  if rate.window == 'fixed' then
    local start, count = window_in(rate, text, now)
    return math.floor(rate.max - count), start + rate.per - now
  elseif rate.window == 'bucket' then
    local each = rate.per / rate.max
    local arrival, depth = arrival_in(rate, text, now), rate.burst * each
    return math.floor((now + depth - math.max(now, arrival)) / each + 0.000001), arrival + each - depth - now
  end
  local kept, used, _, width = slices_in(rate, text, now)
  return math.floor(rate.max - used), kept[1] and (kept[1][1] + 101) * width - now or 0
end

-- The state behind so many starts. Fewer than none give some back.
local function rate_charged(rate, text, now, count)
  if rate.window == 'fixed' then
    local start, before = window_in(rate, text, now)
    return string.format('%.3f %.14g', start, math.max(0, before + count))
  elseif rate.window == 'bucket' then
    local from = count > 0 and math.max(now, arrival_in(rate, text, now)) or arrival_in(rate, text, now)
    return string.format('%.3f', math.max(0, from + count * rate.per / rate.max))
  end
  local kept, used, current = slices_in(rate, text, now)
  count = math.max(count, -used)
  local last = kept[#kept]
  if last and last[1] >= current then last[2] = last[2] + count else kept[#kept + 1] = { current, count } end
  for i, slice in ipairs(kept) do kept[i] = string.format('%.0f:%.14g', slice[1], slice[2]) end
  return table.concat(kept, ' ')
end

-- When such a state says nothing any more.
local function rate_over_at(rate, text, now)
  return rate.window == 'bucket' and math.max(now, arrival_in(rate, text, now)) or now + 1.01 * rate.per
end
