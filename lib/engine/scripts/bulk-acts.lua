--@needs types
-- The records of acts on many jobs: ids and records alternately.
check_types(key_bulkActs)
return redis.call('HGETALL', key_bulkActs)
