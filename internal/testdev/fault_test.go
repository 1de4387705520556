package testdev

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFaultRange(t *testing.T) {
	for _, tt := range []struct {
		from, before, release string
		want                  bool
	}{
		{"", "6.1", "5.10.0-46-amd64", true},
		{"", "6.1", "6.1.0-57-arm64", false},
		{"5.10", "5.11", "5.4.0", false},
		{"5.10", "5.11", "5.10", true},
		{"6.15", "", "6.2.0", false},
		{"6.15", "", "6.12.118+deb13-amd64", false},
		{"6.15", "", "7.2.13+deb14-amd64", true},
		{"6.15", "", "6.15-rc3", true},
		{"6.15", "", "", false},
		{"", "", "", false},
		{"", "", "not a kernel", false},
	} {
		if got := (Fault{From: tt.from, Before: tt.before}).in(tt.release); got != tt.want {
			t.Errorf("from %q before %q: in %q is %t", tt.from, tt.before, tt.release, got)
		}
	}
}

// What is no device of the kernel's has no driver, and so none of its faults.
func TestDriver(t *testing.T) {
	devices := t.TempDir()
	for _, dir := range []string{"rxe0", "mlx5_0/device"} {
		if err := os.MkdirAll(filepath.Join(devices, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../drivers/mlx5_core", filepath.Join(devices, "mlx5_0", "device", "driver")); err != nil {
		t.Skipf("symbolic links: %v", err) // as Windows has it
	}
	for device, want := range map[string]string{"rxe0": "rxe", "mlx5_0": "mlx5_core", "sim0": "", "": ""} {
		if got := driver(devices, device); got != want {
			t.Errorf("driver of %q: %q, want %q", device, got, want)
		}
	}
	if (Fault{}).Here("nodevice9") {
		t.Error("a fault of a device that is not there")
	}
}
