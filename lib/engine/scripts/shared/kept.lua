-- Jobs that are kept after their end are in `completed`, with the time until when (in ms) as score. For cancelled jobs
-- `rule_cancelledFrom`, a large number, is added, so they come after all completed ones.

-- The state of a job with this score. Nil if its time is over: then it counts as gone, even if it is not deleted yet.
local function kept_state(score, now)
  local ends = tonumber(score)
  if ends >= rule_cancelledFrom then return ends - rule_cancelledFrom > now and 'cancelled' or nil end
  return ends > now and 'completed' or nil
end

-- The range of scores for jobs of one state whose time is not over, as arguments for Redis.
local function kept_scores(state, now)
  if state == 'cancelled' then return '(' .. string.format('%.0f', rule_cancelledFrom + now), '+inf' end
  return '(' .. string.format('%.0f', now), '(' .. string.format('%.0f', rule_cancelledFrom)
end

-- The same range as first and last rank.
local function kept_ranks(state, now)
  local low, high = kept_scores(state, now)
  local behind = high == '+inf' and 0 or redis.call('ZCOUNT', key_completed, string.format('%.0f', rule_cancelledFrom), '+inf')
  local last = redis.call('ZCARD', key_completed) - behind - 1
  return last + 1 - redis.call('ZCOUNT', key_completed, low, high), last
end
