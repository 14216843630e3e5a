--@needs steps, bodies
-- The first line of a body is the job's name.
local function name_of(body) return body and string.match(body, '^([^\n]*)\n') or '' end

-- The second line of a body is the time of the add, in base 36. Nil if there is none.
local function added_at(body) return tonumber(string.match(body, '^[^\n]*\n([0-9a-z]+)\n') or '', 36) end

local function add_names(names, bodies)
  for _, body in ipairs(bodies) do names[#names + 1] = name_of(body) end
  return names
end

local function names_of(ids)
  local names = {}
  in_steps(ids, function(...) add_names(names, bodies_of({ ... })) end)
  return table.concat(names, '\n')
end
