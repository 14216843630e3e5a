--@needs types, clock, say
-- What a run says while it runs; a run that lost its job is not heard any more.
check_types(key_meta, key_progress)
local now = clock()
local before = redis.call('HGET', key_logs, arg_id)
if redis.call('SISMEMBER', key_active, arg_id) == 0 then return 0 end
if arg_log ~= '' then
  local text = before and before .. '\n' .. arg_log or arg_log
  local _, lines = string.gsub(text, '\n', '')
  while lines >= arg_maxLines do
    text = string.sub(text, string.find(text, '\n', 1, true) + 1)
    lines = lines - 1
  end
  redis.call('HSET', key_logs, arg_id, text)
end
if arg_progress ~= '' then
  redis.call('HSET', key_progress, arg_id, arg_progress)
  say(1, { 'progress', arg_id, 'progress.name', arg_name, 'progress.attempt', arg_attempt, 'progress.progress', arg_progress }, now)
end
return 1
