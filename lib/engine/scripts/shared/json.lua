-- The table in this JSON. Empty if there is none. cjson refuses half of a surrogate pair, which texts of users may have.
local function table_in(json)
  local is_json, read = pcall(cjson.decode, json or '{}')
  if not is_json then is_json, read = pcall(cjson.decode, (string.gsub(json, '\\u[dD][89a-fA-F]%x%x', '\\ufffd'))) end
  return is_json and type(read) == 'table' and read or {}
end
