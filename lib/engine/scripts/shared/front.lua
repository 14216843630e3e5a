--@needs steps, lines
-- Jobs whose worker was lost, or gave them back, are the next of their lines again.

-- Puts jobs into their lines. Jobs that have lost a worker, were given back, or are in `first` go before all jobs with their
-- priority, in the given order. The other jobs go to the end.
local function to_lines_again(ids, names, priorities, first)
  to_lines(ids, names, priorities)
  local stalls, scores, heads, moved, marked = redis.call('HMGET', key_stalls, unpack(ids)), redis.call('ZMSCORE', key_grouped, unpack(ids)), {}, {}, {}
  for i = #ids, 1, -1 do
    if stalls[i] or first[ids[i]] then
      local low, high = range_of(math.floor(scores[i] / rule_ranks))
      local head = heads[low] or redis.call('ZRANGE', key_grouped, low, high, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]
      heads[low] = math.max(tonumber(low), head - 1)
      moved[#moved + 1], moved[#moved + 2] = string.format('%d', heads[low]), ids[i]
      if stalls[i] == '0' then marked[#marked + 1] = ids[i] end
    end
  end
  in_steps(moved, function(...) redis.call('ZADD', key_grouped, ...) end)
  if #marked > 0 then redis.call('HDEL', key_stalls, unpack(marked)) end
end
