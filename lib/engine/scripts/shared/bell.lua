-- The doorbell. Each member in it wakes the one idle worker that pops it.

-- There may be work.
local function ring() redis.call('ZADD', key_doorbell, '0', 'work') end

-- There is a new earliest time of a schedule.
local function ring_due() redis.call('ZADD', key_doorbell, '0', 'due') end

-- A job is due before all others. Idle workers sleep until the earliest time they know, so two are woken: one of them may die.
local function ring_sooner() redis.call('ZADD', key_doorbell, '0', 'work', '0', 'due') end
