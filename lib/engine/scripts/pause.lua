--@needs types, clock, gate, bell, event
-- Answers whether this changed anything.
check_types(key_meta, key_doorbell)
local now = clock()
if is_paused() == (arg_pause == 1) then return 0 end
local events = { count = 0 }
if arg_pause == 1 then
  close_gate(now)
  say(events, 'paused', 1, '')
else
  reopen_gate()
  ring()
  say(events, 'resumed', 1, '')
end
write_events(events, now)
return 1
