local function ring()
  redis.call('ZADD', key_doorbell, '0', 'work')
end
