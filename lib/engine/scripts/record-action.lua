--@needs types
-- Stores what somebody did. The id of the entry is the time of Redis.
check_types(key_actions)
redis.call('XADD', key_actions, 'MAXLEN', '~', rule_actionsMax, '*', 'actor', arg_actor, 'action', arg_action,
  'queue', arg_queue, 'target', arg_target, 'count', arg_count, 'result', arg_result)
return 1
