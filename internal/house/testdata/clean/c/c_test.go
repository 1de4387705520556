package c

func Example() {}
