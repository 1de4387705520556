package core

func Example() {}
