for _, key in ipairs({ key_schedules, key_scheduled, key_doorbell }) do redis.call('ZCARD', key) end
return write_schedule(arg_id, arg_revision, arg_record, arg_keep == 1, arg_next)
