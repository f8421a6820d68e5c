-- Closures, strings, tables and errors (which longjmp), for some seconds.
local rounds = tonumber(arg[1]) or 20
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local sum = 0
for round = 1, rounds do
    sum = sum + fib(20)
    local all = {}
    for i = 1, 20000 do all[i] = tostring((i * 7919) % 10007) end
    table.sort(all)
    local text = table.concat(all, " ")
    for word in text:gmatch("%d+") do sum = sum + #word end
    for i = 1, 1000 do
        local ok, message = pcall(function() if i % 2 == 0 then error("even " .. i) end return i end)
        if not ok then sum = sum + #message end
    end
    collectgarbage()
end
print(sum)
