--@needs types, clock, limits, corrections, shares
-- A worker of one queue asks shared limits for starts and places. It reports how many jobs it runs, and how many more it wants to
-- start. It is granted as many as all limits allow, and these count at once. After its claim it reports in `keep` how many it has
-- used, and in `unused` whether the queue had no job for one of them. A repetition of `seq` is granted the same number and counts once.
-- Workers write the limits before they ask. So if one is not there, it was lost: nothing is granted until a worker has written it again.
check_types(key_limits, key_limitStates, key_shares)
local now, seq = clock(), tonumber(arg_seq)
local counted_at = now
local takes, granted, opens_in, known, lost = {}, arg_want, 0, nil, 0
for i = limits_first, limits_last do
  local field = 's:' .. ARGV[i]
  local text, state = redis.call('HGET', key_limits, field), redis.call('HGET', key_limitStates, field)
  local rule = limits_in(text)
  if not text then lost, granted = 1, 0 end
  local rows, running = shares_in(redis.call('HGET', key_shares, ARGV[i]), now, arg_leaseMs / 2)
  local mine
  for _, row in ipairs(rows) do
    if row.queue == arg_queue and row.worker == arg_worker then mine = row end
  end
  if not mine then
    mine = { queue = arg_queue, worker = arg_worker, count = 0, seq = 0, granted = 0 }
    -- It has been granted nothing yet, so its turn is before all others.
    table.insert(rows, 1, mine)
  end
  if arg_want > 0 and mine.seq == seq then known = mine.granted end
  local left, next_in = rate_room(rule, state, now, math.huge)
  local most = most_running(rule)
  local places = most - running + mine.count - arg_running
  if arg_want > 0 and most < math.huge then places = places - places_for_others(rows, mine, most, now) end
  places = math.max(0, places)
  if left < arg_want then opens_in = math.max(opens_in, next_in, 1) end
  granted = math.min(granted, left, places)
  takes[#takes + 1] = { limit = ARGV[i], field = field, rule = rule, state = state, rows = rows, mine = mine, places = places }
end
granted = known or granted

local woken = ''
for _, take in ipairs(takes) do
  local mine, counted = take.mine, 0
  local before, granted_at = mine.count, math.min(now, mine.till and mine.till - arg_leaseMs or now)
  if known then counted_at = math.min(counted_at, granted_at) end
  if arg_keep >= 0 then
    if mine.seq == seq then counted, mine.granted = arg_keep - mine.granted, arg_keep end
  elseif arg_want > 0 and not known then
    counted, mine.seq, mine.granted = granted, seq, granted
    -- If another limit or the rate grants even less, more places of this one would not be used.
    mine.short = take.places == granted and granted < arg_want and now or nil
    if granted > 0 then move_to_end(take.rows, mine) end
  end
  if counted ~= 0 then
    local function charge(rate, state) return rate_corrected(rate, state, now, counted, granted_at) end
    charge_rate(take.field, take.rule, take.state, now, counted, arg_keep >= 0 and arg_keep or nil, charge)
  end
  -- A late call must not take back what a later one was granted.
  if seq >= mine.seq then mine.count = arg_running + (arg_keep < 0 and granted or 0) end
  mine.till, mine.doubt = now + arg_leaseMs, nil
  if arg_unused == 1 then stop_waiting(take.limit, take.rows, mine) end
  if mine.count < before then woken = woken .. take_waiting(take.limit, take.rows, take.places < arg_want and mine.queue) end
  if take.places < arg_want then wait_for_share(take.limit, mine) end
  put_shares(take.limit, take.rows)
end
return { granted, counted_at, math.ceil(opens_in), woken, lost }
