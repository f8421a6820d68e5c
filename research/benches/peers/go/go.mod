module hearth/peers

go 1.19
