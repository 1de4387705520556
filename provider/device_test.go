//go:build linux

package provider

import (
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/verbs"
)

// The device can be opened by name, is listed, and is what Default chooses.
func TestDevice(t *testing.T) {
	name := testdev.Name(t)
	d, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ctx.Close()
	gids, err := ctx.GIDs(1)
	if err != nil {
		t.Fatal(err)
	}
	if best := verbs.RankGIDs(gids)[0]; best.Type == verbs.GIDRoCEv2 && !best.GID.IsIPv4() {
		t.Errorf("best GID is %v of %+v", best, gids)
	}
	list, err := List()
	if err != nil {
		t.Fatal(err)
	}
	listed := false
	for _, i := range list {
		listed = listed || i.Name == name && i.Err == nil && i.Provider == d.Info().Provider
	}
	if !listed {
		t.Errorf("%s is not in %+v", name, list)
	}
	chosen, note, err := Default()
	if err != nil || !strings.HasPrefix(note, chosen.Info().Name) || chosen.Info().Provider == "sim" {
		t.Errorf("default is %v, %q, %v", chosen, note, err)
	}
	if _, err := Open(name + "x"); err == nil || !strings.Contains(err.Error(), "devices here: sim:, "+name) {
		t.Errorf("unknown name: %v", err)
	}
}
