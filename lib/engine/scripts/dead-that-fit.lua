--@needs bodies
-- How many of the jobs that died last fit into a number of bytes. One call looks at a limited number of jobs, after `passed` jobs
-- with `bytes` bytes. The last job may exceed the limit.
local passed, bytes = arg_passed, arg_bytes
local ids = redis.call('ZRANGE', key_dead, passed, passed + arg_examine - 1, 'REV')
for _, id in ipairs(ids) do
  bytes = bytes + redis.call('HSTRLEN', hash_of(id), id) + redis.call('HSTRLEN', key_failures, id)
  if bytes > arg_most and passed > 0 then return { passed, bytes, 1 } end
  passed = passed + 1
end
return { passed, bytes, #ids < arg_examine and 1 or 0 }
