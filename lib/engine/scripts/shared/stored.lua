--@needs logs
-- All that is known of one job, in the order in which `storedJob` reads it.
local function stored(id, body, state, at, worker)
  return { body, state, at, worker, redis.call('HGET', key_attempts, id) or '', redis.call('HGET', key_stalls, id) or '',
    redis.call('HGET', key_failures, id) or '', redis.call('HGET', key_results, id) or '',
    redis.call('HGET', key_progress, id) or '', read_log(id) }
end

-- The same without data, progress and log, and without a large result: of its record the line with the time is left.
local function stored_briefly(id, body, state, at, worker)
  local result = redis.call('HGET', key_results, id) or ''
  if #result > rule_briefResult then result = string.match(result, '^%d+\n') or '' end
  return { string.match(body, '^[^\n]*\n[^\n]*\n[^\n]*\n') or '', state, at, worker, redis.call('HGET', key_attempts, id) or '',
    redis.call('HGET', key_stalls, id) or '', redis.call('HGET', key_failures, id) or '', result, '', '' }
end
