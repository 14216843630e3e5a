--@needs by-name
-- Adds a batch to the counters of job names. The client has counted them. Its numbers are wrong if some jobs were not accepted,
-- were named twice, or were cancelled.
local function each_settled(completed_ids, act)
  local number = string.gmatch(arg_nameIndexes, '%d+')
  for _, id in ipairs(completed_ids) do act(id, number(), 1, 0, 0) end
  for i = kept_first, kept_last, 3 do act(ARGV[i], number(), 1, 0, 0) end
  for i = retried_first, retried_last, 5 do act(ARGV[i], number(), 0, tonumber(ARGV[i + 3]) or 0, 0) end
  for i = dead_first, dead_last, 3 do act(ARGV[i], number(), 0, tonumber(ARGV[i + 2]), 1) end
end

-- Counts again, without lost and cancelled jobs. An id is in `lost` once for each time that it was refused. If it was named more
-- often than that, one outcome was accepted, and the first one counts.
local function recount(rows, completed_ids, lost, cancelled)
  for i = 1, #rows do rows[i] = { 0, 0, 0 } end
  local times = {}
  each_settled(completed_ids, function(id) times[id] = (times[id] or 0) + 1 end)
  for i = released_first, released_last, 2 do times[ARGV[i]] = (times[ARGV[i]] or 0) + 1 end
  for i = 1, #lost do times[lost[i]] = times[lost[i]] - 1 end
  for i = 1, #cancelled do times[cancelled[i]] = 0 end
  each_settled(completed_ids, function(id, number, done, failed, died)
    if times[id] == 0 then return end
    times[id] = 0
    local row = rows[tonumber(number) + 1]
    row[1], row[2], row[3] = row[1] + done, row[2] + failed, row[3] + died
  end)
end

local function tally_settled_names(completed_ids, batch, day)
  local rows = {}
  for i = names_first, names_last, 4 do
    rows[#rows + 1] = { tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]) }
  end
  local completions = #completed_ids + (kept_last - kept_first + 1) / 3
  if #rows == 1 then
    rows[1] = { batch.done, batch.failed, batch.died }
  elseif #batch.lost + #batch.cancelled.ids > 0 or batch.done < completions then
    recount(rows, completed_ids, batch.lost, batch.cancelled.ids)
  end
  for i = 1, #rows do
    local name = ARGV[names_first + 4 * (i - 1)]
    for k, kind in ipairs({ 'processed', 'failed', 'dead' }) do tally_name(kind, name, rows[i][k], day) end
  end
end
