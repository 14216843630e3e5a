--@needs bodies, count, unreadable
-- One page of the ids in one key. Bodies and records are not returned, because a page of them may be large. Redis copies those of a
-- hash to the script even so: a page has fewer jobs if they are large.
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
local read = ({ attempts = is_count, stalls = is_count, priorities = is_priority })[arg_kind]
local is_bodies = string.sub(arg_kind, 1, 4) == 'jobs'
local ids, unreadable, bytes = {}, {}, 0
local function see(entries, stride)
  for i = 1, #entries, stride do
    local id, value = entries[i], entries[i + 1]
    local is_kept = arg_kind == 'slots' and value % 1 > 0 and has_body(id)
    if not is_kept then ids[#ids + 1] = arg_kind == 'logs' and string.match(id, '^[^\n]*') or id end
    if read and not read(value) or is_bodies and hash_of(id) ~= key then unreadable[#unreadable + 1] = id end
    if stride == 2 then bytes = bytes + #value end
  end
  return #entries / stride
end

local cursor = arg_cursor
if arg_type == 'hash' then
  -- The first step shows how large the values are, so that the next one does not read too many.
  local seen, step = 0, 20
  repeat
    local page = redis.call('HSCAN', key, cursor, 'COUNT', string.format('%d', step))
    cursor, seen = page[1], seen + see(page[2], 2)
    step = math.max(1, math.min(arg_count - seen, (arg_bytes - bytes) * seen / math.max(1, bytes)))
  until cursor == '0' or seen >= arg_count or bytes >= arg_bytes
else
  local is_zset = arg_type == 'zset'
  local page = is_zset and redis.call('ZSCAN', key, cursor, 'COUNT', arg_count) or redis.call('SSCAN', key, cursor, 'COUNT', arg_count)
  cursor = page[1]
  see(page[2], is_zset and 2 or 1)
end
return { cursor, told_ids(ids), told_ids(unreadable) }
