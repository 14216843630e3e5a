--@needs rates
-- Takes back up to `count` starts that were counted in this slice, or if there are fewer, in earlier ones. Returns the other starts as
-- text, and how many were taken back.
local function taken_back(kept, at, count)
  local after, back = '', 0
  while back < count do
    local before, slice, its = string.match(kept, '^(.*) (%d+):(%S+)$')
    if not before then break end
    local some = tonumber(slice) <= at and math.max(0, math.min(tonumber(its), count - back)) or 0
    if some ~= tonumber(its) then after = string.format(' %s:%.14g', slice, its - some) .. after end
    kept, back = before, back + some
  end
  return kept .. after, back
end

-- Like `rate_charged`. A negative count takes back starts that were counted at the time `at`. A negative number in the current slice
-- would outlast the slice that it corrects, and too many jobs could start.
local function rate_corrected(rate, text, now, count, at)
  if count < 0 and rate.window == 'sliding' then
    local used, _, _, _, _, _, kept = slices_in(rate, text, now)
    local rest, back = taken_back(kept, math.floor(at * slices_of(rate) / rate.per), math.min(-count, used))
    return string.format('%.14g%s', used - back, rest)
  end
  -- The window that counted them is over, or the bucket has refilled since. Giving starts back as well would grant them twice.
  if count < 0 and at < (rate.window == 'fixed' and window_in(rate, text, now) or refilled_in(text)) then return text end
  return rate_charged(rate, text, now, count)
end
