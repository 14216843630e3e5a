-- The jobs that count against a concurrency limit. In `slots`, the score of a job is the number of its line, or 0 if only the limit
-- of the queue applies. The score may have a fraction. With 0.25 or 0.5 the line has strict order: the job keeps its slot while it waits
-- for a retry, with 0.5 also when it is dead. With 0.125 groups are served by their running jobs. When a job with 0.5 is dead, its score
-- is `rule_stoppedLines` more: it stops its line while its groups have onDead 'block', but it does not run, so it counts for nothing else.

local function line_text(number) return string.format('%07d', number) end

-- Takes slots for jobs. `slots` has scores and ids alternately. Redis searches a small sorted set from its beginning for each job, which
-- for 100 jobs takes a tenth of their claim. After a long member, which is not an id, the set is a skip list until it is empty.
local function take_slots(slots)
  local long = #slots > 20 and redis.call('EXISTS', key_slots) == 0 and string.rep('\n', 65)
  if long then redis.call('ZADD', key_slots, '0', long) end
  redis.call('ZADD', key_slots, 'NX', unpack(slots))
  if long then redis.call('ZREM', key_slots, long) end
end

-- How many jobs hold a slot and are not dead.
local function count_slots() return redis.call('ZCOUNT', key_slots, '0', '(' .. rule_stoppedLines) end

-- Whether only a running job may have this slot.
local function ends_with_run(score) return score % 1 < 0.25 end

-- Frees the slots of jobs that stop running. `how`: `moved` if they will run again, `dead`, or `gone`. Also marks their lines, so
-- that the next claim looks at them; a line that is ready gets a new place only if groups are served by their running jobs. If the mark cannot be written, the script continues, because the move must not fail; the next
-- claim reports the wrong type. Returns whether there were slots.
local function release_slots(ids, how)
  local leaving, freed, moved, has_stopped = {}, {}, {}, false
  for i, score in ipairs(redis.call('ZMSCORE', key_slots, unpack(ids))) do
    local number = score and score + 0
    local stops = number and how == 'dead' and number % 1 == 0.5 and number < rule_stoppedLines
    if number and (stops or how == 'gone' or ends_with_run(number) or how == 'dead' and number % 1 == 0.25) then
      if stops then has_stopped = redis.call('ZADD', key_slots, string.format('%.1f', number + rule_stoppedLines), ids[i]) == 0 else leaving[#leaving + 1] = ids[i] end
      local some = number % 1 == 0.125 and moved or freed
      -- Also the line of a dead job: the groups may have another rule by now.
      if number >= 1 then some[#some + 1], some[#some + 2] = '0', line_text(math.floor(number) % rule_stoppedLines) end
    end
  end
  if #freed > 0 then redis.pcall('ZADD', key_ready, 'NX', unpack(freed)) end
  if #moved > 0 then redis.pcall('ZADD', key_ready, unpack(moved)) end
  return #leaving > 0 and redis.call('ZREM', key_slots, unpack(leaving)) > 0 or has_stopped
end
