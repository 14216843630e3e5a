-- `shares` has, for each shared limit, one text line per worker that has places of it: `queue worker until count seq granted`. A
-- text line counts until its time `until`, so the places of a dead worker become free then. `w:<limit>` has the queues that found
-- no place.

-- The rows of a limit that still count, and the sum of their places.
local function shares_in(text, now)
  local rows, running = {}, 0
  for queue, worker, till, count, seq, granted in string.gmatch(text or '', '(%S+) (%S+) (%d+) (%d+) (%d+) (%-?%d+)') do
    if tonumber(till) > now then
      rows[#rows + 1] = { queue = queue, worker = worker, till = tonumber(till), count = tonumber(count), seq = tonumber(seq),
        granted = tonumber(granted) }
      running = running + rows[#rows].count
    end
  end
  return rows, running
end

local function put_shares(limit, rows)
  local lines = {}
  for i, row in ipairs(rows) do
    lines[i] = string.format('%s %s %.0f %.0f %.0f %.0f', row.queue, row.worker, row.till, row.count, row.seq, row.granted)
  end
  redis.call('HSET', key_shares, limit, table.concat(lines, '\n'))
end

-- The queues that wait for a place, each once.
local function wait_for_share(limit, queue)
  local waiting = redis.call('HGET', key_shares, 'w:' .. limit) or ''
  if string.find('\n' .. waiting, '\n' .. queue .. '\n', 1, true) then return end
  redis.call('HSET', key_shares, 'w:' .. limit, waiting .. queue .. '\n')
end

local function take_waiting(limit)
  local waiting = redis.call('HGET', key_shares, 'w:' .. limit)
  if waiting then redis.call('HDEL', key_shares, 'w:' .. limit) end
  return waiting or ''
end
