-- The jobs that count against a concurrency limit. In `slots`, the score of a job is the number of its line, or 0 if only the limit
-- of the queue applies. In a line with strict order the score has a fraction: with 0.25 the job keeps its slot while it waits for
-- a retry, with 0.5 also when it is dead.

local function line_text(number) return string.format('%07d', number) end

-- Takes slots for jobs. `slots` has scores and ids alternately. Redis searches a small sorted set from its beginning for each job, which
-- for 100 jobs takes a tenth of their claim. After a long member, which is no id, the set is a skip list until it is empty.
local function take_slots(slots)
  local long = #slots > 20 and redis.call('EXISTS', key_slots) == 0 and string.rep('\n', 65)
  if long then redis.call('ZADD', key_slots, '0', long) end
  redis.call('ZADD', key_slots, 'NX', unpack(slots))
  if long then redis.call('ZREM', key_slots, long) end
end

-- Frees the slots of jobs that stop running. `how`: `moved` if they will run again, `dead`, or `gone`. Also marks their lines, so
-- that the next claim looks at them. If the mark cannot be written, the script continues, because the move must not fail; the next
-- claim reports the wrong type. Returns whether there were slots.
local function release_slots(ids, how)
  local leaving, freed = {}, {}
  for i, score in ipairs(redis.call('ZMSCORE', key_slots, unpack(ids))) do
    local number = score and score + 0
    if number and (how == 'gone' or number % 1 == 0 or how == 'dead' and number % 1 == 0.25) then
      leaving[#leaving + 1] = ids[i]
      if number >= 1 then freed[#freed + 1], freed[#freed + 2] = '0', line_text(number) end
    end
  end
  if #freed > 0 then redis.pcall('ZADD', key_ready, 'NX', unpack(freed)) end
  return #leaving > 0 and redis.call('ZREM', key_slots, unpack(leaving)) > 0
end
