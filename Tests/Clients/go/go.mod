module worker

go 1.19

require coffer v0.0.0

replace coffer => ../../../clients/go
