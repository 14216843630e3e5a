-- The set stays written: whoever declares next finds it without a process, and prunes what it does not want itself.
redis.call('ZREM', key_declarers, arg_declaration)
return 'withdrawn'
