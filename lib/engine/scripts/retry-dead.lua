-- Dead jobs back to the line, those named or the next ones that are asked for; attempts and stalls start again, what went
-- wrong is forgotten. A corrupt job has nothing to run.
redis.call('HGET', key_meta, 'events')
redis.call('LLEN', key_wait)
redis.call('ZCARD', key_dead)
redis.call('ZCARD', key_doorbell)
redis.call('HLEN', key_failures)

-- The time within which it must start begins anew: it could first have run now. That is `d` among the options of the job,
-- in the third line; of a name that stands there twice the last one counts. Anything else than such a body stays as it is.
local function renewed(body)
  local head, options, data = string.match(body, '^([^\n]+\n[0-9a-z]+\n)([^\n]*)(\n.*)$')
  if not head then return body end
  local mark = string.format('"d":%.0f}', now)
  if options == '' then return head .. '{' .. mark .. data end
  if string.sub(options, 1, 1) ~= '{' or string.sub(options, -1) ~= '}' then return body end
  local others = string.sub(string.gsub(options, ',?"d":%d+}$', '}'), 1, -2)
  return head .. others .. (others == '{' and '' or ',') .. mark .. data
end

local retried, names, bodies = {}, {}, {}
local function take(id)
  local fit, bytes, body = is_asked(id)
  fit = fit and body ~= ''
  if fit then
    names[#names + 1] = name_of(body)
    bodies[#bodies + 1] = renewed(body)
  end
  return fit, bytes
end

local at, id = '', ''
if ids_last >= ids_first then
  local met = {}
  for i = ids_first, ids_last do
    if not met[ARGV[i]] and redis.call('ZSCORE', key_dead, ARGV[i]) and take(ARGV[i]) then retried[#retried + 1] = ARGV[i] end
    met[ARGV[i]] = true
  end
elseif arg_limit > 0 then
  local first, last = dead_range()
  retried, at, id = walk(key_dead, first, last, take)
end
if #retried > 0 then
  in_steps(retried, function(...) redis.call('ZREM', key_dead, ...) end)
  in_steps(retried, forget_traces)
  for i, id in ipairs(retried) do redis.call('HSET', hash_of(id), id, bodies[i]) end
  in_steps(retried, function(...) redis.call('RPUSH', key_wait, ...) end)
  ring()
  say(#retried, { 'added', table.concat(retried, '\n'), 'added.name', table.concat(names, '\n') })
end
return { now, at, id, retried }
