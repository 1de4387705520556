package main

import (
	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/inventory"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/uverbs"
)

func newDevices(e *env) *cobra.Command {
	var why bool
	var asJSON string
	c := &cobra.Command{
		Use: "devices [DEVICE]", Short: "list the RDMA devices of this machine",
		Long: "List the RDMA devices of this machine, best first: driver, ports, GIDs, and why a device cannot be used.\n" +
			"With a device's name, everything of it: limits, partition keys, counters that are not 0.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Usagef("%sat most one device, got %q", of(c), args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return listDevices(e, args, why, asJSON) },
	}
	c.Flags().BoolVar(&why, "why", false, "show the rank of each device, port and GID, and the reason; also of those rejected")
	c.Flags().StringVar(&asJSON, "json", "", "with -: write JSON to standard output instead")
	return c
}

func listDevices(e *env, args []string, why bool, asJSON string) error {
	if err := onlyStdout("devices", asJSON); err != nil {
		return err
	}
	detail := inventory.Brief
	if why {
		detail = inventory.Why
	}
	var doc *inventory.Document
	var sys uverbs.System
	if len(args) == 0 {
		doc = inventory.Collect(&sys)
	} else {
		var err error
		if doc, err = inventory.Find(&sys, args[0]); err != nil {
			return err
		}
		detail = inventory.Full
	}
	if asJSON == "-" {
		return report.WriteJSON(e.stdout, doc)
	}
	return errors.Wrap(doc.WriteText(e.stdout, detail), "standard output")
}

// onlyStdout refuses another file for JSON.
func onlyStdout(command, file string) error {
	if file != "" && file != "-" {
		return exit.Usagef("%s: --json %s: only - is possible, standard output", command, file)
	}
	return nil
}
