package common

func ExampleX() {}
