--@needs types, drop-schedule
check_types(key_upcoming, key_scheduleOrder, key_schedules, key_firings)
return drop_schedule(arg_id)
