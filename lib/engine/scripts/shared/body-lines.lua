--@needs count, json
-- A body has four lines: name, time of the add, options as JSON, data. Scripts replace whole lines and leave the others as they
-- are.

-- The options of a job as a table. Empty if the body has none or they cannot be read.
local function options_of(body) return table_in(string.match(body, '^[^\n]+\n[0-9a-z]+\n({[^\n]*})\n')) end

local function priority_of(body)
  local priority = options_of(body).p
  return type(priority) == 'number' and priority_in(priority) or 0
end

-- The time from which the job could run. 0 if the text is not a body.
local function waits_since(body)
  local due = string.find(body, '"d":', 1, true) and options_of(body).d
  return tonumber(due) or tonumber(string.match(body, '^[^\n]+\n([0-9a-z]+)\n') or '0', 36) or 0
end

-- The line of options. Nil if the text is not a body.
local function options_line_of(body) return string.match(body, '^[^\n]+\n[^\n]+\n([^\n]*)\n') end

-- Nil if the job has no group, or if the text is not a body.
local function group_of(body)
  local group = string.find(options_line_of(body) or '', '"group":', 1, true) and options_of(body).group
  return type(group) == 'string' and group or nil
end

-- The body with a new line of options or of data. Nil keeps the old line.
local function with_lines(body, options, data)
  local head, old_options, old_data = string.match(body, '^([^\n]+\n[^\n]+\n)([^\n]*)\n(.*)$')
  return head .. (options or old_options) .. '\n' .. (data or old_data)
end

-- How many ms the job is kept after it is cancelled. `otherwise` if it does not say.
local function kept_when_cancelled(body, otherwise)
  local retention = options_of(body).retention
  return type(retention) == 'table' and tonumber(retention.cancelled) or otherwise
end
