--@needs clock
-- One page of the registered processes. Some of them may have ended.
local now = clock()
local page = redis.call('HSCAN', key_processInfo, arg_cursor, 'COUNT', arg_count)
local found = {}
for i = 1, #page[2], 2 do found[#found + 1] = page[2][i] end
if #found == 0 then return { page[1], {}, {}, {} } end
local ids, infos, ends = {}, {}, {}
for i, score in ipairs(redis.call('ZMSCORE', key_processes, unpack(found))) do
  -- A process without a lease was never registered.
  if score then
    ids[#ids + 1] = found[i]
    infos[#infos + 1] = page[2][2 * i]
    ends[#ends + 1] = tonumber(score) - now
  end
end
return { page[1], ids, infos, ends }
