-- How many names today's counters know; reading it checks the key's type.
local names_today = tonumber(redis.call('HGET', key_stats, 'names')) or 0
