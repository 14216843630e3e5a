--@needs types, clock, steps, bodies, names, traces, ring, rank, walk, dead, say, count
-- Dead jobs go back to the line with the priority they had, those named or the next ones that are asked for. Attempts and stalls
-- start again at 0, what went wrong is forgotten, and they never expire: a person wants them run. A corrupt job has nothing to run.
check_bodies()
local now = clock()
local traces = read_traces()
check_types(key_meta, key_wait, key_prioritized, key_dead, key_doorbell, key_failures)

-- Its priority is among the options in the third line; of a body that says none, or cannot be read, it is 0.
local function priority_of(body)
  local options = string.match(body, '^[^\n]+\n[0-9a-z]+\n({[^\n]*})\n')
  local is_json, read = pcall(cjson.decode, options)
  return is_json and type(read.p) == 'number' and priority_in(read.p) or 0
end

local retried, names, priorities = {}, {}, {}
local function take(id)
  local fit, bytes, body = is_asked(id)
  fit = fit and body ~= ''
  if fit then
    names[#names + 1] = name_of(body)
    priorities[#priorities + 1] = priority_of(body)
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
  local first, last = dead_range(now)
  retried, at, id = walk(key_dead, first, last, take)
end
if #retried > 0 then
  in_steps(retried, function(...) redis.call('ZREM', key_dead, ...) end)
  forget_traces(retried, traces)
  local plain, started = {}, {}
  for i, one in ipairs(retried) do
    started[2 * i - 1], started[2 * i] = one, '0'
    if priorities[i] > 0 then
      redis.call('ZADD', key_prioritized, rank(priorities[i]), one)
    else
      plain[#plain + 1] = one
    end
  end
  in_steps(started, function(...) redis.call('HSET', key_attempts, ...) end)
  in_steps(plain, function(...) redis.call('RPUSH', key_wait, ...) end)
  ring()
  say(#retried, { 'added', table.concat(retried, '\n'), 'added.name', table.concat(names, '\n') }, now)
end
return { now, at, id, retried }
