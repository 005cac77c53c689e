module github.com/dovetail-dra/dovetail

go 1.26.0
