--@needs bodies, names
-- The dead jobs that are asked for: between two ages, of a name, and with this end of their record, which says the reason.
local function dead_range(now)
  local first, last = 0, '+inf'
  if arg_newerThan >= 0 then
    first = redis.call('ZCOUNT', key_dead, '-inf', '(' .. string.format('%.0f', now - arg_newerThan))
  end
  -- What dies again while one call goes on is not asked for again.
  if arg_olderThan > 0 or arg_until > 0 then
    last = string.format('%.0f', math.min(now - arg_olderThan, arg_until > 0 and arg_until or now))
  end
  return first, redis.call('ZCOUNT', key_dead, '-inf', last) - 1
end

-- Answers also how many bytes it had to read, and the body of one that is asked for.
local function is_asked(id)
  local bytes = 0
  if arg_reason ~= '' then
    local record = redis.call('HGET', key_failures, id) or ''
    bytes = #record
    if string.sub(record, -#arg_reason) ~= arg_reason then return false, bytes end
  end
  local body = body_of(id) or ''
  return arg_name == '' or name_of(body) == arg_name, bytes + #body, body
end
