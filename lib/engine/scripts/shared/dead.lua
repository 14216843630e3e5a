--@needs bodies, names
-- The ranks of the dead jobs between two ages. `is_asked` then checks the name and the reason, which is at the end of the record.
local function dead_range(now)
  local first, last = 0, '+inf'
  if arg_newerThan >= 0 then
    first = redis.call('ZCOUNT', key_dead, '-inf', '(' .. string.format('%.0f', now - arg_newerThan))
  end
  -- A job that died again after the first call is not included.
  if arg_olderThan > 0 or arg_until > 0 then
    last = string.format('%.0f', math.min(now - arg_olderThan, arg_until > 0 and arg_until or now))
  end
  return first, redis.call('ZCOUNT', key_dead, '-inf', last) - 1
end

-- Whether the job matches. Returns also how many bytes were read, and the body if the job matches.
local function is_asked(id)
  local bytes = 0
  if arg_reason ~= '' then
    local record = redis.call('HGET', key_failures, id) or ''
    bytes = #record
    if string.sub(record, -#arg_reason) ~= arg_reason then return false, bytes end
  end
  local body = body_of(id) or ''
  local is_named = arg_name == '' or string.find('\n' .. arg_name .. '\n', '\n' .. name_of(body) .. '\n', 1, true) ~= nil
  return is_named, bytes + #body, body
end
