--@needs steps, count
-- The log of a job: its last lines. Each line is a separate field (id, line break, index modulo the number of kept lines), so
-- adding a line costs the same for logs of any length. The field of the id has a line break and the number of all lines written.
-- If not 100 lines are kept, another line break and their number follow. A line begins with the attempt that wrote it, as `#2 ` and
-- the character 31, which no handler can write: `job.log` replaces it. Older versions show such a line with `#2 `, and write
-- lines without it.
local function read_head(head)
  local written, kept = string.match(head or '', '^\n(%d+)\n?(%d*)$')
  return count_in(written, -1), math.max(1, math.min(count_in(kept ~= '' and kept, rule_logLines), rule_logLinesMax))
end

-- How many lines a log has.
local function lines_in(head) return math.max(0, math.min(read_head(head))) end

-- A log that exists keeps the number of lines it started with.
local function add_to_log(id, text, attempt, max)
  local head, fields = redis.call('HGET', key_logs, id), {}
  local written, kept = read_head(head)
  text = string.gsub(text, '[^\n]+', '#' .. attempt .. ' \31%0')
  if written < 0 then
    -- Older versions stored all lines in this field. They come first.
    if head then text = head .. '\n' .. text end
    written, kept = 0, max
  end
  if kept == 0 then return end
  for line in string.gmatch(text, '[^\n]+') do
    fields[#fields + 1] = id .. '\n' .. written % kept
    fields[#fields + 1] = line
    written = written + 1
  end
  fields[#fields + 1] = id
  fields[#fields + 1] = '\n' .. string.format('%.0f', written) .. (kept ~= rule_logLines and '\n' .. kept or '')
  in_steps(fields, function(...) redis.call('HSET', key_logs, ...) end)
end

-- The lines in order, as one text.
local function read_log(id)
  local head = redis.call('HGET', key_logs, id)
  local written, kept = read_head(head)
  local fields, lines = {}, {}
  if written <= 0 then return written < 0 and head or '' end
  for n = math.max(0, written - kept), written - 1 do fields[#fields + 1] = id .. '\n' .. n % kept end
  for _, line in ipairs(redis.call('HMGET', key_logs, unpack(fields))) do lines[#lines + 1] = line or '' end
  return table.concat(lines, '\n')
end

local function drop_log(id, lines)
  local fields = { id }
  for n = 0, lines - 1 do fields[#fields + 1] = id .. '\n' .. n end
  return redis.call('HDEL', key_logs, unpack(fields))
end

local function drop_logs(ids)
  in_steps(ids, function(...)
    local some = { ... }
    for i, head in ipairs(redis.call('HMGET', key_logs, ...)) do
      if head then drop_log(some[i], lines_in(head)) end
    end
  end)
end

-- The first of these jobs, as many as have about `rule_linesDropped` lines of log, but at least one.
local function with_few_lines(ids)
  local lines = 0
  for i, head in ipairs(#ids > 0 and redis.call('HMGET', key_logs, unpack(ids)) or {}) do
    lines = lines + lines_in(head)
    if lines > rule_linesDropped and i > 1 then return { unpack(ids, 1, i - 1) } end
  end
  return ids
end
