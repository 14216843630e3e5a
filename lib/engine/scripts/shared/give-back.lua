-- Claimed ids, from the `first` on, go back to where they were taken from: a suspect, then the line, then those with a rank, each of
-- which with it.
local function give_back(ids, first, ranked, suspect)
  local plain = #ids - #ranked / 2
  for i = #ids, first, -1 do
    if i > plain then
      redis.call('ZADD', key_prioritized, ranked[2 * (i - plain)], ids[i])
    elseif i == 1 and suspect then
      redis.call('LPUSH', key_suspects, suspect)
    else
      redis.call('LPUSH', key_wait, ids[i])
    end
    ids[i] = nil
  end
end
