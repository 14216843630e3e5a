--@needs count
-- Daily counters. They expire 90 days after the first write of a day.
local function tally(field, count)
  if count > 0 and add_to(key_stats, field, count) == count then redis.call('EXPIRE', key_stats, rule_statsDays * 86400) end
end
