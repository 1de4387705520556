// Command x may import all of lower floors.
package main

import "example.org/m/high"

func main() { print(high.X) }
