return redis.call('HGETALL', key_stats)
