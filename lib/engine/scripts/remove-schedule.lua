--@needs types, drop-schedule
check_types(key_schedules, key_scheduled, key_schedule, key_firings)
return drop_schedule(arg_id)
