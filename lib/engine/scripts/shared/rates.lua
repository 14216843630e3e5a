-- Rate limits. A rule allows `max` starts per `per` ms. Its state is a text, empty at first. What the text holds depends on the window:
-- `sliding`, the default: never more than `max` starts in any time span of `per` ms. Starts are counted in slices of a hundredth of
-- `per`, each as `slice:count`. A slice counts until its end is older than `per`.
-- `fixed`: `start count`. A window begins with the first start after the window before it has ended.
-- `bucket`: the theoretical arrival time of the next start in ms, as in the generic cell rate algorithm (ITU-T I.371).

local function slices_in(rate, text, now)
  local width, used, kept = rate.per / 100, 0, {}
  local current = math.floor(now / width)
  for slice, count in string.gmatch(text, '(%d+):(%-?[%d.]+)') do
    slice = tonumber(slice)
    -- A slice far in the future was written before the clock was set back.
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

-- The arrival time in the bucket. It is capped at the largest possible one, in case the clock was set back.
local function arrival_in(rate, text, now)
  return math.min(tonumber(text) or 0, now + rate.per * (1 + rate.burst / rate.max))
end

-- How many jobs may start now. If none may, also in how many ms the next one may.
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

-- The state after `count` starts. A negative count gives some back.
local function rate_charged(rate, text, now, count)
  if rate.window == 'fixed' then
    local start, before = window_in(rate, text, now)
    return string.format('%.3f %.14g', start, math.max(0, before + count))
  elseif rate.window == 'bucket' then
    local from = count > 0 and math.max(now, arrival_in(rate, text, now)) or arrival_in(rate, text, now)
    return string.format('%.3f', math.max(0, from + count * rate.per / rate.max))
  end
  local kept, used, current = slices_in(rate, text, now)
  -- Not `-used`, which would store a 0 as '-0'.
  count = math.max(count, 0 - used)
  local last = kept[#kept]
  if last and last[1] >= current then last[2] = last[2] + count else kept[#kept + 1] = { current, count } end
  for i, slice in ipairs(kept) do kept[i] = string.format('%.0f:%.14g', slice[1], slice[2]) end
  return table.concat(kept, ' ')
end

-- When such a state can be dropped.
local function rate_over_at(rate, text, now)
  if rate.window == 'bucket' then return math.max(now, arrival_in(rate, text, now)) end
  local start, slice = tonumber(string.match(text, '^[%d.]+')) or 0, tonumber(string.match(text, '(%d+):[^:]*$')) or 0
  return math.min(now + 1.01 * rate.per, rate.window == 'fixed' and start + rate.per or (slice + 101) * rate.per / 100)
end
