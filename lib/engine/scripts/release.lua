-- Gives held jobs back to the head of the line; no attempt is counted.
redis.call('HGET', key_meta, 'events')
redis.call('HGET', key_worker, 'seq')
redis.call('LLEN', key_wait)
redis.call('LLEN', key_suspects)
redis.call('HLEN', key_stalls)
redis.call('ZCARD', key_workers)
redis.call('ZCARD', key_doorbell)
redis.call('HLEN', key_jobs)
local lost, released = {}, {}
for i = ids_first, ids_last do
  if redis.call('SREM', key_active, ARGV[i]) == 1 then
    released[#released + 1] = ARGV[i]
  else
    lost[#lost + 1] = ARGV[i]
  end
end
if #released > 0 then
  to_head(released)
  ring()
  say(#released, { 'released', table.concat(released, '\n'), 'released.name', names_of(released) })
end
if redis.call('SCARD', key_active) == 0 then
  redis.call('ZREM', key_workers, arg_worker)
  if arg_leave == 1 then redis.call('DEL', key_worker) end
end
return lost
