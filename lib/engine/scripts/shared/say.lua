-- Events are numbered one by one, and the id of a stream entry is the number of its last event: so a reader can resume
-- inside an entry, see what was trimmed, and MINID trims by events however large the entries are.
-- A failing stream must never fail the move it reports, hence pcall.
local function say(count, fields)
  if arg_maxEvents == 0 or count == 0 then return end
  local last = redis.pcall('HINCRBY', key_meta, 'events', count)
  if type(last) ~= 'number' then
    -- Somebody wrote into it what is no number: as if it had been deleted.
    last = count
    redis.call('HSET', key_meta, 'events', last)
  end
  local number, written = string.format('%.0f-0', last), nil
  -- Small entries do not look each time whether something is to be trimmed.
  if last % 64 < count then
    local oldest = string.format('%.0f', math.max(last - arg_maxEvents, 0))
    written = redis.pcall('XADD', key_events, 'MINID', '~', oldest, number, 'at', now, 'n', count, unpack(fields))
  else
    written = redis.pcall('XADD', key_events, number, 'at', now, 'n', count, unpack(fields))
  end
  if type(written) == 'table' and written.err and string.find(written.err, 'equal or smaller', 1, true) then
    -- Somebody deleted, restored or changed one of the two keys: the stream's own last number decides.
    local top = redis.pcall('XINFO', 'STREAM', key_events)
    for i = 1, #top, 2 do
      if top[i] == 'last-generated-id' then
        last = tonumber(string.match(top[i + 1], '^%d+')) + count
        redis.call('HSET', key_meta, 'events', last)
        redis.pcall('XADD', key_events, string.format('%.0f-0', last), 'at', now, 'n', count, unpack(fields))
      end
    end
  end
end
