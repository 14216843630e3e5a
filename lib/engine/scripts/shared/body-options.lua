--@needs count
-- The options of a job are in the third line of its body, as JSON.

-- What it says; nothing of a body that cannot be read.
local function options_of(body)
  local is_json, read = pcall(cjson.decode, string.match(body, '^[^\n]+\n[0-9a-z]+\n({[^\n]*})\n'))
  return is_json and type(read) == 'table' and read or {}
end

local function priority_of(body)
  local priority = options_of(body).p
  return type(priority) == 'number' and priority_in(priority) or 0
end
