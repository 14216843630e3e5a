--@needs clock, entries
-- For each of many queues: 1 if something exceeds its number or age, 2 if the queue has unique keys. A queue that cannot be read
-- counts too, so that `trim` reports the error.
local now = clock()
local answer = {}
local limits = limits_first
for i = more_first, more_last, queue_step do
  local completed_max, dead_max = tonumber(ARGV[limits]), tonumber(ARGV[limits + 1])
  local dead_age, events_age = tonumber(ARGV[limits + 2]), tonumber(ARGV[limits + 3])
  local function over(reply, most)
    return type(reply) ~= 'number' or reply > most
  end
  local first = events_age >= 0 and redis.pcall('XRANGE', KEYS[i + at_events], '-', '+', 'COUNT', 1) or {}
  local is_over = over(redis.pcall('ZCARD', KEYS[i + at_completed]), completed_max)
    or over(redis.pcall('ZCOUNT', KEYS[i + at_completed], '-inf', now), 0)
    or over(redis.pcall('ZCOUNT', KEYS[i + at_completed], string.format('%.0f', rule_cancelledFrom),
      string.format('%.0f', rule_cancelledFrom + now)), 0)
    or over(redis.pcall('ZCARD', KEYS[i + at_dead]), dead_max)
    or over(redis.pcall('ZCOUNT', KEYS[i + at_dead], '-inf', now - dead_age), 0)
    or (first[1] ~= nil and written_at(first[1]) <= now - events_age)
  answer[#answer + 1] = (is_over and 1 or 0) + 2 * redis.call('EXISTS', KEYS[i + at_unique])
  limits = limits + 4
end
return answer
