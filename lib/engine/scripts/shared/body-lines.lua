--@needs count
-- A body is four lines: name, time of the add, options as JSON, data. Scripts change a line as a whole and leave the others as they are.

-- The options of a job as a table; an empty one where a body says none, or cannot be read.
local function options_of(body)
  local is_json, read = pcall(cjson.decode, string.match(body, '^[^\n]+\n[0-9a-z]+\n({[^\n]*})\n'))
  return is_json and type(read) == 'table' and read or {}
end

local function priority_of(body)
  local priority = options_of(body).p
  return type(priority) == 'number' and priority_in(priority) or 0
end

-- When a job could first have run, 0 of what is no body.
local function waits_since(body)
  local due = string.find(body, '"d":', 1, true) and options_of(body).d
  return tonumber(due) or tonumber(string.match(body, '^[^\n]+\n([0-9a-z]+)\n') or '0', 36) or 0
end

-- The line of options, nil of what is no body.
local function options_line_of(body)
  return string.match(body, '^[^\n]+\n[^\n]+\n([^\n]*)\n')
end

-- The body with another line of options or of data, nil for the one it has.
local function with_lines(body, options, data)
  local head, old_options, old_data = string.match(body, '^([^\n]+\n[^\n]+\n)([^\n]*)\n(.*)$')
  return head .. (options or old_options) .. '\n' .. (data or old_data)
end

-- For how many ms it is kept once it is cancelled; `otherwise` where it does not say.
local function kept_when_cancelled(body, otherwise)
  local retention = options_of(body).retention
  return type(retention) == 'table' and tonumber(retention.cancelled) or otherwise
end
