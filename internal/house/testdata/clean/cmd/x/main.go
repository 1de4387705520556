// Command x prints.
package main

import (
	"fmt"

	"example.org/m/a"
	"example.org/m/b"
	"github.com/spf13/cobra"
)

func main() { fmt.Println(a.X, b.Core, cobra.Command{}) }
