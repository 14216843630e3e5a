--@needs clock
-- Leases that are over or nearly so, and leases that end later than any lease can, because the clock was set back.
local now = clock()
local answer = {}
local near = redis.call('ZRANGE', key_workers, '-inf', now + arg_withinMs, 'BYSCORE', 'LIMIT', 0, rule_overdueMax, 'WITHSCORES')
for i = 1, #near, 2 do
  answer[#answer + 1] = near[i]
  answer[#answer + 1] = tonumber(near[i + 1]) - now
end
local far = redis.call('ZRANGE', key_workers, '+inf', '(' .. (now + arg_leaseMs), 'BYSCORE', 'REV', 'LIMIT', 0, rule_overdueMax, 'WITHSCORES')
for i = 1, #far, 2 do
  answer[#answer + 1] = far[i]
  answer[#answer + 1] = tonumber(far[i + 1]) - now
end
return answer
