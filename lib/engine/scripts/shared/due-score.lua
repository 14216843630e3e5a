--@needs bodies
-- The score of a delayed job. Jobs due in the same ms run first in first out: generated ids sort by age, and Redis orders equal
-- scores by id. A job with a custom id gets a score after all others of its ms. One ms has room for 2,048 scores; further ones go
-- after the next ms. `seen` is what one call has assigned, by due time: `own` is the last score, `made` is whether there was a
-- generated id.
local function due_score(id, due, seen)
  if hash_of(id) ~= key_jobs then
    seen.made[due] = true
    return due
  end
  local ms, score = tonumber(due), seen.own[due] and seen.own[due] + 1 / 2048
  if not score then
    score = seen.made[due] and ms + 1 / 2048 or ms
    repeat
      local first, behind = string.format('%.0f', ms), string.format('(%.0f', ms + 1)
      local top = redis.call('ZRANGE', key_delayed, behind, first, 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
      if top then score = math.max(score, tonumber(top) + 1 / 2048) end
      ms = ms + 1
    until not top or score < ms
  end
  seen.own[due] = score
  return string.format('%.17g', score)
end
