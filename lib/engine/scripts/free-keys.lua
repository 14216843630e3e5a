--@needs types, clock, bodies, body-lines, line, unique, bell
-- Frees keys of `unique` and `debounce` whose jobs have ended: the named keys, or with a cursor the next page of all keys. A job
-- that waits for the end of another goes to the line. It also goes there if its row is gone.
check_bodies()
local now = clock()
check_types(key_meta, key_unique, key_wait, key_prioritized, key_delayed, key_priorities, key_dead, key_completed, key_doorbell)
local cursor, digests = '0', {}
for i = digests_first, digests_last do digests[#digests + 1] = ARGV[i] end
if arg_cursor ~= '' then
  local found = redis.call('HSCAN', key_unique, arg_cursor, 'COUNT', 100)
  cursor = found[1]
  for i = 1, #found[2], 2 do digests[#digests + 1] = found[2][i] end
end
local is_work, changed = free_keys(digests, now)
if arg_cursor ~= '' and cursor == '0' then
  for _, id in ipairs(parked(100)) do
    local digest = options_of(body_of(id) or '').unique
    if type(digest) ~= 'string' or row_of(digest).next ~= id then
      promote(id)
      is_work, changed = true, changed + 1
    end
  end
end
if is_work then ring() end
return { cursor, changed }
