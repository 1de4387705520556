package scenario

import (
	"embed"
	"strings"

	"github.com/pkg/errors"
)

//go:embed library
var library embed.FS

// Names are the scenarios that come with the package.
func Names() (names []string) {
	entries, _ := library.ReadDir("library") // an embedded directory is there
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	return names
}

// Source is the file of a scenario that comes with the package.
func Source(name string) ([]byte, error) {
	b, err := library.ReadFile("library/" + name + ".json")
	if err != nil {
		return nil, errors.Errorf("scenario %q: want one of %s, or the name of a file that ends in .json", name, strings.Join(Names(), ", "))
	}
	return b, nil
}

// Load reads a scenario that comes with the package.
func Load(name string) (*Scenario, error) {
	b, err := Source(name)
	if err != nil {
		return nil, err
	}
	return Parse(b)
}
