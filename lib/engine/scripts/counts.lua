--@needs clock, kept, workers
local now = clock()
local workers = leased_workers()
if #workers ~= more_last - more_first + 1 or table.concat(workers, '\n') ~= arg_workers then return { 'again' } end
local active = 0
local paused, limited = unpack(redis.call('HMGET', key_meta, 'paused', 'limited'))
for i = more_first, more_last do active = active + redis.call('SCARD', KEYS[i]) end
return { 'counts',
  redis.call('LLEN', key_wait) + redis.call('LLEN', key_suspects) + redis.call('ZCARD', key_prioritized)
    + redis.call('ZCARD', key_grouped),
  redis.call('ZCARD', key_delayed), active, redis.call('ZCOUNT', key_completed, kept_scores('completed', now)), redis.call('ZCARD', key_dead),
  paused and 1 or 0, redis.call('ZCOUNT', key_completed, kept_scores('cancelled', now)), limited and 1 or 0 }
