-- The set stays stored. The next process that declares finds it without a process, and prunes it.
redis.call('ZREM', key_declarers, arg_declaration)
return 'withdrawn'
