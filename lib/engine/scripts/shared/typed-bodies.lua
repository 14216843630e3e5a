-- All that may keep bodies: the types are checked here, since which of them will be written is not known yet.
local body_hashes = { key_jobs }
for at = at_letter + 65, at_letter + 90 do body_hashes[#body_hashes + 1] = KEYS[at] end
for _, hash in ipairs(body_hashes) do redis.call('HLEN', hash) end
