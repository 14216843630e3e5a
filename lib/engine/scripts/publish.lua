--@needs types, clock, event
-- Writes an event that the application publishes.
check_types(key_meta, key_events)
local events = { count = 0 }
say(events, 'published', 1, '', 'name', arg_name, 'payload', arg_payload)
write_events(events, clock())
return 1
