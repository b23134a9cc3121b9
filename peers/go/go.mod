module regatta/double

go 1.21
