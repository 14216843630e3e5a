-- The doorbell: who pops a member of it wakes, one idle worker for each member.

-- There may be work.
local function ring()
  redis.call('ZADD', key_doorbell, '0', 'work')
end

-- There is a new first time, of a schedule.
local function ring_due()
  redis.call('ZADD', key_doorbell, '0', 'due')
end

-- A job is due before all others: idle workers sleep until the time they know of. Two are told, so that one of them may die.
local function ring_sooner()
  redis.call('ZADD', key_doorbell, '0', 'work', '0', 'due')
end
