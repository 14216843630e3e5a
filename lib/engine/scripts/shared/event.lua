--@needs count
-- The events of a script. The script collects them in a table, `{ count = 0 }` at first, and writes them as one entry of the
-- stream.

-- Adds a group: its type, the number of events, the ids of their jobs (one per line), and columns. A column has a name and a line
-- per event, or one line for all.
local function say(events, kind, count, ids, ...)
  events.count = events.count + count
  events[#events + 1], events[#events + 2] = kind, ids
  local columns = { ... }
  for i = 1, #columns, 2 do events[#events + 1], events[#events + 2] = kind .. '.' .. columns[i], columns[i + 1] end
end

-- Events are numbered one by one, and the id of a stream entry is the number of its last event. So a reader can resume inside an
-- entry and notice trimmed events, and MINID trims by events, however large the entries are. A failing stream must not fail the
-- move that it reports, hence pcall.
local function write_entry(last, count, fields, now)
  -- Formatted here: Redis formats the numbers of a script with `%.17g`, which takes several times as long.
  local id, at, n = string.format('%d-0', last), string.format('%d', now), string.format('%d', count)
  -- Trimming is only tried when the number passes a multiple of 64.
  local oldest = last % 64 < count and string.format('%d', math.max(last - arg_maxEvents, 0))
  local written = oldest and redis.pcall('XADD', key_events, 'MINID', '~', oldest, id, 'at', at, 'n', n, unpack(fields))
    or redis.pcall('XADD', key_events, id, 'at', at, 'n', n, unpack(fields))
  if type(written) == 'table' and written.err and string.find(written.err, 'equal or smaller', 1, true) then
    -- Somebody deleted, restored or changed one of the two keys. The last number of the stream decides.
    local top = redis.pcall('XINFO', 'STREAM', key_events)
    for i = 1, #top, 2 do
      if top[i] == 'last-generated-id' then
        last = tonumber(string.match(top[i + 1], '^%d+')) + count
        -- No number can follow this one, so the stream starts again.
        if last > 9007199254740991 and type(redis.pcall('DEL', key_events)) == 'number' then last = count end
        redis.call('HSET', key_meta, 'events', string.format('%.0f', last))
        redis.pcall('XADD', key_events, string.format('%d-0', last), 'at', at, 'n', n, unpack(fields))
      end
    end
  end
end

local function write_events(events, now)
  local count = events.count
  if arg_maxEvents == 0 or count == 0 then return end
  write_entry(add_to(key_meta, 'events', string.format('%d', count)), count, events, now)
end
