--@needs types
-- Replaces the record of an act on many jobs, unless it has changed since it was read. An empty `arg_before` means that no record
-- existed, an empty `arg_after` removes the record. Returns whether it was replaced.
check_types(key_bulkActs)
if (redis.call('HGET', key_bulkActs, arg_id) or '') ~= arg_before then return 0 end
if arg_after == '' then
  redis.call('HDEL', key_bulkActs, arg_id)
else
  redis.call('HSET', key_bulkActs, arg_id, arg_after)
end
redis.call('PEXPIRE', key_bulkActs, arg_keepMs)
return 1
