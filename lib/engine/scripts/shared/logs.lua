--@needs steps, count
-- The log of a job, its last 100 lines: each in a field of its own (id, line break, number of the line modulo 100), so that a line
-- costs the same however long the log is. The field of the id holds a line break and how many lines were written in all.
local function log_count(head)
  return head and string.sub(head, 1, 1) == '\n' and count_in(string.sub(head, 2), -1) or -1
end

local function add_to_log(id, text)
  local head, fields = redis.call('HGET', key_logs, id), {}
  local written = log_count(head)
  if written < 0 then
    -- Formerly the field held the lines themselves: they come first.
    if head then text = head .. '\n' .. text end
    written = 0
  end
  for line in string.gmatch(text, '[^\n]+') do
    fields[#fields + 1] = id .. '\n' .. written % 100
    fields[#fields + 1] = line
    written = written + 1
  end
  fields[#fields + 1] = id
  fields[#fields + 1] = '\n' .. string.format('%.0f', written)
  in_steps(fields, function(...) redis.call('HSET', key_logs, ...) end)
end

-- The lines, in their order, as one text.
local function read_log(id)
  local head = redis.call('HGET', key_logs, id)
  local written, fields, lines = log_count(head), {}, {}
  if written <= 0 then return written < 0 and head or '' end
  for n = math.max(0, written - 100), written - 1 do fields[#fields + 1] = id .. '\n' .. n % 100 end
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
      if head then drop_log(some[i], math.min(math.max(log_count(head), 0), 100)) end
    end
  end)
end
