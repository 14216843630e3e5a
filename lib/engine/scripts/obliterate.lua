-- Everything of the queue goes, in the background of Redis. The lanes of producers expire by themselves.
local workers = redis.call('ZRANGE', key_workers, 0, -1)
if #workers * 2 ~= more_last - more_first + 1 or table.concat(workers, '\n') ~= arg_workers then return 'again' end
if arg_force == 0 then
  for i = more_first, more_last, 2 do
    if redis.call('SCARD', KEYS[i]) > 0 then return 'active' end
  end
end
redis.call('UNLINK', unpack(KEYS))
return 'obliterated'
