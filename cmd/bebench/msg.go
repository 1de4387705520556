package main

import "github.com/spf13/cobra"

func newMsg(e *env) *cobra.Command { return group("msg", "measure ByteExpress sockets") }
