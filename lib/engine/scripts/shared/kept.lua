-- Jobs that are kept after their end stand in `completed` by the ms until when. Cancelled ones stand behind all that have completed:
-- a large number, `rule_cancelledFrom`, is added to their time.

-- The state of a job with this score, nil where its time is over: it is gone then, whoever takes it away.
local function kept_state(score, now)
  local ends = tonumber(score)
  if ends >= rule_cancelledFrom then return ends - rule_cancelledFrom > now and 'cancelled' or nil end
  return ends > now and 'completed' or nil
end

-- The scores of one state whose time is not over, as Redis takes them.
local function kept_scores(state, now)
  if state == 'cancelled' then return '(' .. string.format('%.0f', rule_cancelledFrom + now), '+inf' end
  return '(' .. string.format('%.0f', now), '(' .. string.format('%.0f', rule_cancelledFrom)
end

-- The same as first and last rank.
local function kept_ranks(state, now)
  local low, high = kept_scores(state, now)
  local behind = high == '+inf' and 0 or redis.call('ZCOUNT', key_completed, string.format('%.0f', rule_cancelledFrom), '+inf')
  local last = redis.call('ZCARD', key_completed) - behind - 1
  return last + 1 - redis.call('ZCOUNT', key_completed, low, high), last
end
