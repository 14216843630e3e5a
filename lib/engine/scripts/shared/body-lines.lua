--@needs count, json
-- A body has four lines: name, time of the add, options as JSON, data. Scripts replace whole lines and leave the others as they
-- are.

-- The options of a job as a table. Empty if the body has none or they cannot be read.
local function options_of(body) return table_in(string.match(body, '^[^\n]+\n[0-9a-z]+\n({[^\n]*})\n')) end

-- The line of options. Nil if the text is not a body.
local function options_line_of(body) return string.match(body, '^[^\n]+\n[^\n]+\n([^\n]*)\n') end

-- One option of a job. Nil if it has none of this type, or if the text is not a body. Most jobs do not have it, so the line is first
-- searched for its name: reading JSON takes longer.
local function option_of(body, name, type_)
  local value = string.find(options_line_of(body) or '', '"' .. name .. '":', 1, true) and options_of(body)[name]
  return type(value) == type_ and value or nil
end

local function group_of(body) return option_of(body, 'group', 'string') end

local function priority_of(body) return priority_in(option_of(body, 'p', 'number')) end

-- The time from which a waiting job could run. 0 if the text is not a body. A job whose time has not come was promoted.
local function waits_since(body, now)
  local due = option_of(body, 'd', 'number')
  return due and due <= now and due or tonumber(string.match(body, '^[^\n]+\n([0-9a-z]+)\n') or '0', 36) or 0
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
