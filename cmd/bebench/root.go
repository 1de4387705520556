package main

import (
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/verbtest"
)

func newRoot(e *env) *cobra.Command {
	root := newMainJob(e)
	root.Version = version()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newDevices(e), newDoctor(e), newMsg(e), newRPC(e), newPS(e), newAlloc(e), newFabric(e))
	for _, op := range verbtest.Ops() {
		root.AddCommand(newVerbs(e, op))
	}
	return root
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

// group makes a command that only has sub-commands.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: noSuchCommand, RunE: func(c *cobra.Command, _ []string) error {
		return exit.Usagef("%ssay which: %s", of(c), names(c))
	}}
	c.AddCommand(subs...)
	return c
}

// of begins an error about a command: "send bw: ", and nothing for bebench itself.
func of(c *cobra.Command) string {
	if !c.HasParent() {
		return ""
	}
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ") + ": "
}

// noSuchCommand refuses arguments of a command that takes none but sub-commands.
func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !c.HasSubCommands() {
		return exit.Usagef("%stakes no argument, got %q", of(c), args)
	}
	var all []string
	for _, s := range c.Commands() {
		all = append(all, s.Name())
	}
	return exit.Usagef("%sno command %q%s; there are: %s", of(c), args[0], didYouMean("", args[0], all), names(c))
}

func names(c *cobra.Command) string {
	var all []string
	for _, s := range c.Commands() {
		if s.IsAvailableCommand() {
			all = append(all, s.Name())
		}
	}
	return strings.Join(all, ", ")
}

// atMostOneHost is for commands that are the server without, the client with a host.
func atMostOneHost(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return exit.Usagef("%sat most one host, got %q", of(c), args)
	}
	return nil
}

var (
	badNumber    = regexp.MustCompile(`strconv\.(\w+): parsing ".*": (.*)$`)
	unknownLong  = regexp.MustCompile(`^unknown flag: --(\S+)`)
	unknownShort = regexp.MustCompile(`^unknown shorthand flag: '(.)'`)
)

// flagError makes a wrong flag an error of usage, with the reason why it is none
// here or the nearest right spelling.
func flagError(c *cobra.Command, err error) error {
	var long, short []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		long = append(long, f.Name)
		if f.Shorthand != "" {
			short = append(short, f.Shorthand)
		}
	})
	hint := ""
	if m := unknownLong.FindStringSubmatch(err.Error()); m != nil {
		name, _, _ := strings.Cut(m[1], "=")
		if isOfBW(c, name, "") {
			return exit.Usagef("%s--%s is for bw, not for lat: leave it out", of(c), name)
		}
		hint = didYouMean("--", name, long)
	}
	if m := unknownShort.FindStringSubmatch(err.Error()); m != nil {
		switch {
		case m[1] == "s" && c.HasParent() && c.Parent().Name() == verbtest.Atomic.String():
			return exit.Usagef("%s-s: an atomic has 8 bytes: leave it out", of(c))
		case isOfBW(c, "", m[1]):
			return exit.Usagef("%s-%s is for bw, not for lat: leave it out", of(c), m[1])
		}
		for _, s := range short {
			if strings.EqualFold(s, m[1]) {
				hint = fmt.Sprintf(", did you mean -%s?", s)
			}
		}
	}
	return exit.Usagef("%s%s%s (%s --help lists the flags)", of(c), plain(err), hint, c.CommandPath())
}

// plain is an error about a flag's value without the names of Go's functions.
func plain(err error) string {
	return badNumber.ReplaceAllStringFunc(err.Error(), func(s string) string {
		switch m := badNumber.FindStringSubmatch(s); {
		case m[2] != "invalid syntax":
			return m[2]
		case m[1] == "ParseBool":
			return "want true or false"
		case m[1] == "ParseFloat":
			return "want a number"
		}
		return "want a whole number"
	})
}

// isOfBW reports a flag, by its name or letter, that the bw test beside a lat test
// has.
func isOfBW(c *cobra.Command, name, letter string) bool {
	if c.Name() != "lat" {
		return false
	}
	for _, s := range c.Parent().Commands() {
		if s.Name() == "bw" {
			return name != "" && s.Flags().Lookup(name) != nil || letter != "" && s.Flags().ShorthandLookup(letter) != nil
		}
	}
	return false
}

// didYouMean names the nearest of the choices, if one is near.
func didYouMean(prefix, got string, choices []string) string {
	best, near := "", 1+len(got)/2
	for _, c := range choices {
		if d := distance(got, c); d < near {
			best, near = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %s%s?", prefix, best)
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours that make b of a (Damerau and Levenshtein, restricted).
func distance(a, b string) int {
	two, one, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(one[j]+1, cur[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], two[j-2]+1)
			}
		}
		two, one, cur = one, cur, two
	}
	return one[len(b)]
}
