--@needs bodies, count, unreadable
-- One page of the ids in one key. Bodies and records are not returned, because a page of them may be large.
local key = ({
  jobs = key_jobs, wait = key_wait, suspects = key_suspects, prioritized = key_prioritized, grouped = key_grouped, delayed = key_delayed,
  dead = key_dead, completed = key_completed, attempts = key_attempts, stalls = key_stalls, failures = key_failures,
  results = key_results, progress = key_progress, logs = key_logs, priorities = key_priorities, toCancel = key_toCancel, slots = key_slots,
})[arg_kind] or string.match(arg_kind, '^jobs%u$') and KEYS[at_letter + string.byte(arg_kind, -1)] or KEYS[more_first]
if arg_type == 'list' then
  local first = tonumber(arg_cursor)
  local page = redis.call('LRANGE', key, first, first + arg_count - 1)
  return { #page < arg_count and '0' or string.format('%.0f', first + arg_count), told_ids(page), {} }
end
local page, stride
if arg_type == 'hash' then
  page, stride = redis.call('HSCAN', key, arg_cursor, 'COUNT', arg_count), 2
elseif arg_type == 'zset' then
  page, stride = redis.call('ZSCAN', key, arg_cursor, 'COUNT', arg_count), 2
else
  page, stride = redis.call('SSCAN', key, arg_cursor, 'COUNT', arg_count), 1
end
local read = ({ attempts = is_count, stalls = is_count, priorities = is_priority })[arg_kind]
local is_bodies = string.sub(arg_kind, 1, 4) == 'jobs'
local ids, unreadable = {}, {}
for i = 1, #page[2], stride do
  local id = page[2][i]
  local is_kept = arg_kind == 'slots' and page[2][i + 1] % 1 > 0 and has_body(id)
  if not is_kept then ids[#ids + 1] = arg_kind == 'logs' and string.match(id, '^[^\n]*') or id end
  if read and not read(page[2][i + 1]) or is_bodies and hash_of(id) ~= key then unreadable[#unreadable + 1] = id end
end
return { page[1], told_ids(ids), told_ids(unreadable) }
