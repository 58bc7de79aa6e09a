module skillmaster

go 1.26
