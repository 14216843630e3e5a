-- The field of the records of processes that has the orders to one process: an id, a space, an order and a line break each. Ids
-- of processes contain no space, so such a field is never taken for a process: lists of processes leave it out.
local function orders_field(process)
  return 'orders ' .. process
end
