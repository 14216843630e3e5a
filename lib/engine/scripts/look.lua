--@needs clock
-- Returns for sleeping workers which of several queues have work. Queues in which the last check found something come first. For
-- all others, one command usually finds that there is nothing.
local now = clock()
local answer = {}

-- A key of another type is reported by a later claim. It must not hide the other queues.
local function first_two(key)
  local found = redis.pcall('ZRANGE', key, 0, 1, 'WITHSCORES')
  return not found.err and found or nil
end

local function in_ms(score)
  return score and math.max(0, math.floor(tonumber(score)) - now) or -1
end

local function tell(i, number)
  local waiting = redis.call('EXISTS', KEYS[i + at_wait], KEYS[i + at_suspects], KEYS[i + at_prioritized],
    KEYS[i + at_grouped])
  local delayed = first_two(KEYS[i + at_delayed])
  local workers = first_two(KEYS[i + at_workers])
  local schedules = first_two(KEYS[i + at_upcoming])
  local work = not delayed or not workers or not schedules
    or waiting > 0 and redis.pcall('HEXISTS', KEYS[i + at_meta], 'paused') ~= 1
  local due = in_ms(delayed and delayed[2])
  -- The lease of the worker that asks is left out.
  local own = workers and workers[1] == ARGV[workers_first + number]
  local lease = in_ms(workers and workers[own and 4 or 2])
  local schedule = in_ms(schedules and schedules[2])
  if not work and due < 0 and lease < 0 and schedule < 0 then return end
  for _, value in ipairs({ number, work and 1 or 0, due, lease, schedule }) do answer[#answer + 1] = value end
end

local others = {}
for i = more_first, more_last, queue_step do
  local number = (i - more_first) / queue_step
  if number < arg_known then
    tell(i, number)
  else
    for _, at in ipairs({ at_wait, at_suspects, at_prioritized, at_grouped, at_delayed, at_workers, at_upcoming }) do
      others[#others + 1] = KEYS[i + at]
    end
  end
end
if #others > 0 and redis.call('EXISTS', unpack(others)) > 0 then
  for i = more_first + arg_known * queue_step, more_last, queue_step do
    tell(i, (i - more_first) / queue_step)
  end
end
return answer
