-- A job is due before all others: idle workers sleep until the time they know of. Two are told, so that one of them may die.
local function ring_sooner()
  redis.call('ZADD', key_doorbell, '0', 'work', '0', 'due')
end
