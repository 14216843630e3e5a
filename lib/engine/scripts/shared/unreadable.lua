-- Ids that no client can name, because somebody wrote them by hand: with a line break (it separates ids in answers), not UTF-8,
-- or empty.
local function is_readable(id)
  if id == '' or string.find(id, '\n', 1, true) then return false end
  if not string.find(id, '[\128-\255]') then return true end
  for _, sequence in ipairs({
    '[\194-\223][\128-\191]', '\224[\160-\191][\128-\191]', '[\225-\236\238\239][\128-\191][\128-\191]',
    '\237[\128-\159][\128-\191]', '\240[\144-\191][\128-\191][\128-\191]',
    '[\241-\243][\128-\191][\128-\191][\128-\191]', '\244[\128-\143][\128-\191][\128-\191]',
  }) do id = string.gsub(id, sequence, ' ') end
  return not string.find(id, '[\128-\255]')
end

-- The readable id under which such a job is kept.
local function readable_id(id) return is_readable(id) and id or 'unreadable-' .. redis.sha1hex(id) end

-- An unreadable id in an answer: a line break, which no other id contains, and its bytes in hex.
local function told_id(id)
  return is_readable(id) and id or '\n' .. string.gsub(id, '.', function(byte) return string.format('%02x', string.byte(byte)) end)
end

local function told_ids(ids)
  for i, id in ipairs(ids) do ids[i] = told_id(id) end
  return ids
end

local function id_of_told(text)
  if string.byte(text) ~= 10 then return text end
  local id = string.gsub(string.sub(text, 2), '%x%x', function(hex) return string.char(tonumber(hex, 16)) end)
  return id
end
