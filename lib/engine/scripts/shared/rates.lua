-- Rate limits. A rule allows `max` starts per `per` ms. Its state is a text, empty at first. Its form depends on the window:
-- `sliding`, the default: never more than `max` starts in any time span of `per` ms. Starts are counted in slices of a hundredth of
-- `per`. A slice counts until its end is older than `per`. The text is the sum of all slices, then each slice as ` slice:count`.
-- With a `burst` below `max`, at most that many start at once. The next ones start after half of the time in which the rate allows
-- them, so that the rate is reached although some start late. Slices are then a thousandth of `per`.
-- `fixed`: `start count`. A window begins with the first start after the window before it has ended.
-- `bucket`: the theoretical arrival time of the next start in ms, as in the generic cell rate algorithm (ITU-T I.371). After its three
-- decimals, when a start last found more than half of the burst: older versions read both as one number.

-- Whether starts of a sliding window are spread.
local function is_paced(rate) return rate.window == 'sliding' and rate.burst < rate.max end

local function slices_of(rate) return is_paced(rate) and rule_pacedSlices or rule_slices end

-- The starts that count, the last slice and its starts, when the first slice stops counting, the width of a slice and the current slice,
-- and the slices as text, with and without the last one. Only slices that no longer count, and the last one, are read.
local function slices_in(rate, text, now)
  local slices, used, from = slices_of(rate), string.match(text, '^(%-?[%d.]+)()')
  local current, width, slice, count, after = math.floor(now * slices / rate.per), rate.per / slices, nil, 0, from or 1
  repeat
    used, from = (used or 0) - count, after
    slice, count, after = string.match(text, '^ (%d+):(%-?[%d.]+)()', from)
    if not slice then return 0, 0, 0, 0, width, current, '', '' end
    -- A slice far in the future was written before the clock was set back.
  until math.abs(slice - current) <= slices
  local before, last, its = string.match(text, '^(.*) (%d+):(%S+)$', from)
  return used, tonumber(last), tonumber(its), (slice + slices + 1) * width, width, current, string.sub(text, from), before
end

local function window_in(rate, text, now)
  local start, count = string.match(text, '^([%d.]+) (%-?[%d.]+)$')
  if not start or now - start < 0 or now - start >= rate.per then return now, 0 end
  return tonumber(start), tonumber(count)
end

-- The latest arrival time that starts can lead to: now, and the time that the whole burst and one more job take.
local function latest_in(rate, now) return now + rate.per * (1 + rate.burst / rate.max) end

-- The arrival time in the bucket. 0 if it is later than possible: then another rule wrote it, or the clock was set back.
local function arrival_in(rate, text, now) local at = tonumber(string.match(text, '^(%d+%.%d%d%d)%d*$')) or 0 return at < latest_in(rate, now) + 1 and at or 0 end

-- When a start last found more than half of the burst.
local function refilled_in(text) return tonumber(string.match(text, '^%d+%.%d%d%d(%d+)$')) or 0 end

-- How many jobs may start now. If none may, also in how many ms the next one may. Last, how much the next ones may cost together: a bucket
-- may owe the cost of its last job.
local function rate_left(rate, text, now)
  if rate.window == 'fixed' then
    local start, count = window_in(rate, text, now)
    return math.floor(rate.max - count), start + rate.per - now, rate.max - count
  elseif rate.window == 'bucket' then
    local each, arrival = rate.per / rate.max, arrival_in(rate, text, now)
    return math.floor(rate.burst + (now - math.max(now, arrival)) / each + 0.000001), arrival + (1 - rate.burst) * each - now, math.huge
  end
  local used, last, count, next_at, width = slices_in(rate, text, now)
  local left, paced_at = math.floor(rate.max - used + 0.000001), is_paced(rate) and last * width + count * 0.5 * rate.per / rate.max or 0
  if now < paced_at then return 0, (left < 1 and math.max(next_at, paced_at) or paced_at) - now, left end
  return math.min(left, rate.burst), next_at - now, left
end

-- The state after `count` starts.
local function rate_charged(rate, text, now, count)
  if rate.window == 'fixed' then
    local start, before = window_in(rate, text, now)
    return string.format('%.3f %.14g', start, math.max(0, before + count))
  elseif rate.window == 'bucket' then
    local arrival = math.min(math.max(count > 0 and now or 0, arrival_in(rate, text, now)) + count * rate.per / rate.max, latest_in(rate, now))
    return string.format('%.3f%.0f', math.max(0, arrival), count > 0 and 2 * rate_left(rate, text, now) > rate.burst and now or refilled_in(text))
  end
  local used, last, its, _, _, current, kept, before = slices_in(rate, text, now)
  if last < current then before, last, its = kept, current, 0 end
  return string.format('%.14g%s %.0f:%.14g', used + count, before, last, its + count)
end

-- When such a state can be dropped.
local function rate_over_at(rate, text, now)
  if rate.window == 'bucket' then return math.max(now, arrival_in(rate, text, now)) end
  local kept_until = now + 1.01 * rate.per
  if rate.window == 'fixed' then return math.min(kept_until, (tonumber(string.match(text, '^[%d.]+')) or 0) + rate.per) end
  local _, last, _, _, width = slices_in(rate, text, now)
  return math.min(kept_until, last * width + kept_until - now)
end
