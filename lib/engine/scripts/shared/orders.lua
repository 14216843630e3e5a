-- The field of the records of processes that has the orders to one process: an id, a space, an order and a line break each. No
-- process has an id with a space, and lists leave out fields of which there is no process.
local function orders_field(process)
  return 'orders ' .. process
end
