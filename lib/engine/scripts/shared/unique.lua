--@needs bodies, body-lines, line
-- The holders of the keys of `unique`, `debounce` and `throttle`. There is one row per digest of a key. It has: the job that holds
-- the key; the time until which the key is held in any state of that job (0: its state decides); when the key was taken; the job
-- that waits for the holder to end.
-- A row alone blocks nothing. It counts only while a job exists whose body has the same digest, so a leftover row is harmless.

local function row_of(digest)
  local holder, till, since, next_id =
    string.match(redis.call('HGET', key_unique, digest) or '', '^([^\n]*)\n(%d+)\n(%d+)\n([^\n]*)$')
  return { digest = digest, holder = holder or '', till = tonumber(till) or 0, since = tonumber(since) or 0, next = next_id or '' }
end

local function put_row(digest, holder, till, since, next_id)
  redis.call('HSET', key_unique, digest, holder .. string.format('\n%.0f\n%.0f\n', till, since) .. next_id)
end

-- The body of a job if the job has this key, otherwise nil.
local function body_with(id, digest)
  local body = id ~= '' and body_of(id)
  return body and options_of(body).unique == digest and body or nil
end

local function has_ended(id) return redis.call('ZSCORE', key_dead, id) or redis.call('ZSCORE', key_completed, id) end

-- The job that waits for the holder to end. Nil if there is none.
local function next_of(row) return is_parked(row.next) and body_with(row.next, row.digest) and row.next or nil end

-- A job with `unique` runs again only if no other job that has not ended has its key. Returns such a job. Nil if there is none.
local function rival_in(row, id)
  local is_other = row.holder ~= id and body_with(row.holder, row.digest) and not has_ended(row.holder)
  return next_of(row) or is_other and row.holder or nil
end

-- The digest of the key of a job with `unique`. Nil if it has no such key.
local function unique_digest_of(body)
  if not string.find(body, '"key":"unique"', 1, true) then return nil end
  local options = options_of(body)
  return options.key == 'unique' and type(options.unique) == 'string' and options.unique or nil
end

-- The job that waited becomes the holder, and is put into the line.
local function hand_on(row, now)
  promote(row.next)
  row.holder, row.till, row.since, row.next = row.next, 0, now, ''
  put_row(row.digest, row.holder, row.till, row.since, row.next)
end

-- Gives the key of an ended holder to the job that waits for it, or drops the row. Returns whether a job was put into the line, and
-- whether anything changed.
local function free_key(row, now)
  local body = body_with(row.holder, row.digest)
  local has_next = next_of(row) ~= nil
  if has_next and (not body or has_ended(row.holder)) then
    hand_on(row, now)
    return true, true
  end
  if body or has_next or row.till > now then return false, false end
  return false, redis.call('HDEL', key_unique, row.digest) == 1
end

-- Frees the keys of jobs that have ended. Returns whether a job was put into the line, and how many keys changed.
local function free_keys(digests, now)
  local is_work, changed = false, 0
  for _, digest in ipairs(digests) do
    local goes, is_new = free_key(row_of(digest), now)
    is_work = is_work or goes
    if is_new then changed = changed + 1 end
  end
  return is_work, changed
end
