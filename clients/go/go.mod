module coffer

go 1.19
