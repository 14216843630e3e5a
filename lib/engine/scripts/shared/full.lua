--@needs count
-- When an add last found no room in the queue or its group. People see it in `godwit doctor` and on the dashboard.

-- `limit`: how many may wait. `what`: what happens to adds, or the group. Written once a second at most, as many adds may be refused.
local function note_full(limit, what, now)
  local last = count_in(string.match(redis.call('HGET', key_meta, 'full') or '', '^%d+'))
  if math.abs(now - last) >= 1000 then redis.call('HSET', key_meta, 'full', string.format('%.0f %s %s', now, limit, what)) end
end
