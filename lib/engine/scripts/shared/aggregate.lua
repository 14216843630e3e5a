--@needs bodies, body-lines, line, unique
-- Jobs that collect the data of many adds as a list in their bodies. The open job of a key holds the key, and is delayed until the time
-- in its row. A job that has another due time, or that waits, runs or has ended, takes no more data.

-- The data of a body if it is a list, without its brackets.
local function items_in(body) return string.match(body, '^[^\n]+\n[^\n]+\n[^\n]*\n%[(.+)%]$') end

local function collector(id, digest, body, since, till)
  local items = items_in(body)
  local size = tonumber(string.match(options_line_of(body) or '', '^{"items":(%d+)'))
  return items and size and { id = id, digest = digest, body = body, items = { items }, size = size, bytes = #items + 2, since = since,
    till = till, is_grown = false, is_over = false }
end

-- The open job of a key. Nil if there is none.
local function open_collector(row)
  if row.till == 0 or tonumber(redis.call('ZSCORE', key_delayed, row.holder)) ~= row.till then return nil end
  if redis.call('HEXISTS', key_attempts, row.holder) == 1 then return nil end
  local body = body_with(row.holder, row.digest)
  return body and collector(row.holder, row.digest, body, row.since, row.till) or nil
end

-- Adds an item to an open job, and moves its due time.
local function collect_item(job, row, items, now)
  job.items[#job.items + 1] = items
  job.size, job.bytes, job.is_grown = job.size + 1, job.bytes + #items + 1, true
  job.till = math.max(now, math.min(now + row.delay, job.since + row.longest))
  job.is_over = job.size >= row.most
end

-- Stores what an open job has collected. Returns whether the job is full and was put into the line.
local function store_collected(job)
  if job.is_grown then
    local options = string.gsub(options_line_of(job.body), '^{"items":%d+', '{"items":' .. string.format('%.0f', job.size))
    put_body(job.id, with_lines(job.body, options, '[' .. table.concat(job.items, ',') .. ']'))
  end
  if job.is_over then return promote(job.id) end
  delay_until(string.format('%.0f', job.till), job.id, 0, { own = {}, made = {} })
  put_row(job.digest, job.id, job.till, job.since, '')
  return false
end
