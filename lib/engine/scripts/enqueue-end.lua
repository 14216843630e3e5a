-- Ends the transaction that `enqueue-begin` opens, and takes back its jobs if that script said so.
local undo = redis.call('GET', key_undo)
if not undo then return 1 end
redis.call('DEL', key_undo)
local count, new = string.match(undo, '^(%d+)\n(.*)$')
local written = redis.pcall('LRANGE', key_wait, -count, -1)
for i = #written, 1, -1 do redis.call('LREM', key_wait, -1, written[i]) end
for id in string.gmatch(new, '[^\n]+') do redis.pcall('HDEL', key_bodies, id) end
return 0
