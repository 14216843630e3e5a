--@needs types, clock, gate, bell, event, workers
-- Answers whether this changed anything.
check_types(key_meta, key_doorbell)
local now = clock()
if is_paused() == (arg_pause == 1) then return 0 end
local events = { count = 0 }
if arg_pause == 1 then
  local workers = leased_workers()
  if #workers ~= more_last - more_first + 1 or table.concat(workers, '\n') ~= arg_workers then return 'again' end
  local is_known = {}
  for i = more_first, more_last do is_known[i] = redis.call('HEXISTS', KEYS[i], 'seq') == 1 end
  close_gate(now)
  -- Whoever holds jobs may have some that have not started: it takes this mark away once it starts no more of them.
  for i = more_first, more_last do
    if is_known[i] then redis.call('HSET', KEYS[i], 'pause', now) end
  end
  say(events, 'paused', 1, '')
else
  reopen_gate()
  ring()
  say(events, 'resumed', 1, '')
end
write_events(events, now)
return 1
