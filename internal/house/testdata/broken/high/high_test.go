package high_test

func Example() {}
