--@needs count
-- The counters of a schedule, one per line, so that no JSON is parsed here: revision, jobs made, last occurrence or -1, mode
-- (empty while it runs), last job, times of the last occurrences. Further lines were written by a newer version and are kept.
local function read_state(id)
  local revision, fired, last, mode, job, more = string.match(redis.call('HGET', key_firings, id) or '',
    '^(%d+)\n(%d+)\n(%-?%d+)\n([^\n]*)\n([^\n]*)(.*)$')
  local recent, rest = string.match((more or '') .. '\n', '^\n([%d,]+)(\n.*)$')
  return { revision = count_in(revision), fired = count_in(fired), last = count_in(last, -1),
    mode = mode or '', job = job or '', recent = recent or '', more = rest and string.sub(rest, 1, -2) or more or '' }
end

local function write_state(id, state)
  local recent = (state.recent ~= '' and '\n' or '') .. state.recent
  redis.call('HSET', key_firings, id, string.format('%.0f\n%.0f\n%.0f\n%s\n%s%s%s',
    state.revision, state.fired, state.last, state.mode, state.job, recent, state.more))
end

-- Records an occurrence that has added its job. The oldest time is removed if there are too many.
local function note_occurrence(state, at, job)
  state.last, state.job = tonumber(at), job
  local times = {}
  for time in string.gmatch(state.recent, '%d+') do times[#times + 1] = time end
  times[#times + 1] = at
  state.recent = table.concat(times, ',', math.max(1, #times - rule_recent + 1))
end
