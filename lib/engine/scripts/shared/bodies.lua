-- Bodies as one text, which a client reads faster; large ones are not copied once more.
local function bodies_in(bodies)
  return #bodies > 0 and #bodies[1] > 2048 and bodies or table.concat(bodies, arg_separator)
end
