module github.com/byteexpress/byteexpress/compare

go 1.26
