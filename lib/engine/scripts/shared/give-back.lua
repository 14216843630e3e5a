-- Claimed ids back to where they were taken from: a suspect, then the line, then those with a rank, each of which with it.
local function give_back(ids, ranked, suspect)
  for i = 1, #ranked, 2 do redis.call('ZADD', key_prioritized, ranked[i + 1], ranked[i]) end
  for i = #ids - #ranked / 2, suspect and 2 or 1, -1 do redis.call('LPUSH', key_wait, ids[i]) end
  if suspect then redis.call('LPUSH', key_suspects, suspect) end
end
