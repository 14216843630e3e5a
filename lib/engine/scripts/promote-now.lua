--@needs types, line, bell
check_types(key_meta, key_wait, key_prioritized, key_priorities, key_doorbell)
if redis.call('HEXISTS', key_bodies, arg_id) == 0 then return 'not-found' end
if is_parked(arg_id) then return 'parked' end
if not promote(arg_id) then return 'not-delayed' end
ring()
return 'promoted'
