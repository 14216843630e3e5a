-- `shares` has, for each shared limit, one text line per worker that has places of it: `queue worker until count seq granted`, ` w` if
-- the worker waits for a place, ` d` with a time while its places are in doubt, and ` s` with the time at which the limit last granted fewer
-- places than the worker wanted. The worker that was granted places last is the last. A text line counts until its time `until`. If Redis
-- was not running, the places of all workers look over at once. So places are in doubt first: they count for `doubt_ms` more, in which
-- a living worker renews them.
-- `w:<limit>` has the queues of the workers that wait.

-- The rows of a limit that still count, and the sum of their places. Without `doubt_ms` no places are put in doubt.
local function shares_in(text, now, doubt_ms)
  local rows, running = {}, 0
  for queue, worker, till, count, seq, granted, waits, doubt, short in
    string.gmatch(text or '', '(%S+) (%S+) (%d+) (%d+) (%d+) (%-?%d+)( ?w?) ?d?(%d*) ?s?(%d*)') do
    local row = { queue = queue, worker = worker, till = tonumber(till), count = tonumber(count), seq = tonumber(seq),
      granted = tonumber(granted), waits = waits == ' w', doubt = tonumber(doubt), short = tonumber(short) }
    if row.till <= now and row.count > 0 and doubt_ms then row.doubt = row.doubt or now + doubt_ms end
    if math.max(row.till, row.doubt or 0) > now then
      rows[#rows + 1], running = row, running + row.count
    end
  end
  return rows, running
end

local function put_shares(limit, rows)
  local lines = {}
  for i, row in ipairs(rows) do
    lines[i] = string.format('%s %s %.0f %.0f %.0f %.0f%s%s%s', row.queue, row.worker, row.till, row.count, row.seq, row.granted,
      row.waits and ' w' or '', row.doubt and string.format(' d%.0f', row.doubt) or '', row.short and string.format(' s%.0f', row.short) or '')
  end
  redis.call('HSET', key_shares, limit, table.concat(lines, '\n'))
end

-- How many places this worker must leave to other queues: those that got fewer than they wanted, have fewer than their share, and were
-- granted places less recently. A worker that is still short asks again within `rule_shortMs`.
local function places_for_others(rows, mine, most, now)
  local counts, latest, queues, reserved = {}, {}, {}, 0
  for i, row in ipairs(rows) do
    counts[row.queue], latest[row.queue] = (counts[row.queue] or 0) + row.count, i
    local is_short = row.queue ~= mine.queue and (row.short or -math.huge) > now - rule_shortMs
    if is_short and not queues[row.queue] then queues[#queues + 1], queues[row.queue] = row.queue, true end
  end
  local share = math.max(1, math.floor(most / (#queues + 1)))
  for _, queue in ipairs(queues) do
    if latest[queue] < latest[mine.queue] then reserved = reserved + math.max(0, share - counts[queue]) end
  end
  return reserved
end

-- The worker is the last that was granted places.
local function move_to_end(rows, mine)
  for i, row in ipairs(rows) do if row == mine then table.remove(rows, i) break end end
  rows[#rows + 1] = mine
end

local function waiting_for(limit) return redis.call('HGET', key_shares, 'w:' .. limit) or '' end

local function put_waiting(limit, waiting)
  if waiting == '' then redis.call('HDEL', key_shares, 'w:' .. limit) else redis.call('HSET', key_shares, 'w:' .. limit, waiting) end
end

local function wait_for_share(limit, mine)
  local waiting = waiting_for(limit)
  mine.waits = true
  if string.find('\n' .. waiting, '\n' .. mine.queue .. '\n', 1, true) then return end
  put_waiting(limit, waiting .. mine.queue .. '\n')
end

-- The queue of this worker has no job for a place. If the queue still waited, the worker would wake itself again and again. The
-- queue keeps waiting if another of its workers waits and was granted nothing. If that worker was granted something, two workers
-- would wake each other without end.
local function stop_waiting(limit, rows, mine)
  mine.waits, mine.short = false, nil
  for _, row in ipairs(rows) do if row.queue == mine.queue and row.waits and row.granted == 0 then return end end
  local waiting, others = waiting_for(limit), {}
  if waiting == '' then return end
  for queue in string.gmatch(waiting, '[^\n]+') do if queue ~= mine.queue then others[#others + 1] = queue .. '\n' end end
  put_waiting(limit, table.concat(others))
end

-- The queues to wake. The workers of `but` would find no place.
local function take_waiting(limit, rows, but)
  local waiting, woken = waiting_for(limit), {}
  if waiting == '' then return '' end
  put_waiting(limit, '')
  for _, row in ipairs(rows) do row.waits = false end
  for queue in string.gmatch(waiting, '[^\n]+') do if queue ~= but then woken[#woken + 1] = queue .. '\n' end end
  return table.concat(woken)
end

-- The queues of workers that have places of a limit, wait for one, or have asked for one within a lease, one per line; and the sum of
-- the places.
local function users_of(limit, now)
  local users, rows, running = waiting_for(limit), shares_in(redis.call('HGET', key_shares, limit), now)
  for _, row in ipairs(rows) do users = users .. row.queue .. '\n' end
  return users, running
end
