-- Which jobs count against a concurrency: `slots` has them by the number of their line, 0 where only that of the queue counts. Of a line
-- in strict order a quarter more: then a job keeps its slot while it waits for its retry, and with a half also when it is dead.

local function line_text(number) return string.format('%07d', number) end

-- Jobs leave, and what they held is free. `how`: `moved` for those that will run again, `dead`, or `gone`. The lines are looked at by the
-- next claim. Where that cannot be written, the next claim says so; the move must not fail.
local function release_slots(ids, how)
  local leaving, freed = {}, {}
  for i, score in ipairs(redis.call('ZMSCORE', key_slots, unpack(ids))) do
    local number = score and tonumber(score)
    if number and (how == 'gone' or number % 1 == 0 or how == 'dead' and number % 1 == 0.25) then
      leaving[#leaving + 1] = ids[i]
      if number >= 1 then freed[#freed + 1], freed[#freed + 2] = '0', line_text(number) end
    end
  end
  if #leaving > 0 then redis.call('ZREM', key_slots, unpack(leaving)) end
  if #freed > 0 then redis.pcall('ZADD', key_ready, 'NX', unpack(freed)) end
end
