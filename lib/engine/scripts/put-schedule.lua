--@needs types, clock, write-schedule
check_types(key_upcoming, key_scheduleOrder, key_doorbell)
local now, now_us = clock()
return write_schedule(arg_id, arg_revision, arg_record, arg_keep == 1, arg_next, now, now_us)
