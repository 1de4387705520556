//go:build linux

package runner

import (
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/internal/testdev"
)

func TestIPv4GID(t *testing.T) {
	if _, err := IPv4GID(testdev.Name(t)); err != nil {
		t.Error(err)
	}
}

func TestIPv4GIDNoDevice(t *testing.T) {
	if _, err := IPv4GID("nodevice9"); err == nil || !strings.Contains(err.Error(), "nodevice9: no such device") {
		t.Errorf("error %v, want one that names the device", err)
	}
}
