--@needs types, clock, event
-- Writes an event of the application's own.
check_types(key_meta, key_events)
local events = { count = 0 }
say(events, 'published', 1, '', 'name', arg_name, 'payload', arg_payload)
write_events(events, clock())
return 1
