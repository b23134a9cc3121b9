module regatta/peers/go

go 1.26
