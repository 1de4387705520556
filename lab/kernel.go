package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/pkg/errors"
)

// kernel is a stock kernel of Debian.
type kernel struct {
	name  string // for -kernel
	suite string // of Debian's archive
	pkg   string // the package that depends on the suite's newest kernel
	arch  string // Debian's name; the only machine so far is amd64, which Go calls the same
}

// kernels is the table of kernels that the lab knows; the first is the default.
var kernels = []kernel{
	{"6.1", "bookworm", "linux-image-amd64", "amd64"},
	{"6.12", "trixie", "linux-image-amd64", "amd64"},
	{"5.10", "bullseye", "linux-image-amd64", "amd64"},
	{"sid", "sid", "linux-image-amd64", "amd64"},
}

// wanted are the kernel modules that the guest loads. crc32_generic is for rdma_rxe,
// which asks the crypto API for crc32 on 5.10 to 6.12 without depending on a module.
var wanted = []string{"ib_core", "ib_uverbs", "crc32_generic?", "rdma_rxe", "rdma_cm", "rdma_ucm", "dummy", "veth"}

// unpacked is a kernel on this host's disk.
type unpacked struct {
	image   string // vmlinuz
	modules string // lib/modules/VERSION
}

// findKernel gives the kernel of the options: the one of KERNEL and MODULES, or one
// of the table from the cache, or a newly downloaded one.
func findKernel(ctx context.Context, o options) (unpacked, error) {
	if o.image != "" {
		return unpacked{o.image, o.modules}, nil
	}
	for _, k := range kernels {
		if k.name == o.kernel {
			u, err := k.get(ctx, o)
			return u, errors.Wrapf(err, "kernel %s", k.name)
		}
	}
	return unpacked{}, errors.Errorf("-kernel %q: no such kernel: see -list", o.kernel)
}

func (k kernel) get(ctx context.Context, o options) (unpacked, error) {
	root := filepath.Join(o.cache, "kernel-"+k.name+"-"+k.arch)
	if u, err := locate(root); err == nil && !o.refresh {
		return u, nil
	}
	for _, program := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return unpacked{}, errors.New("this host is not Debian: name a kernel with KERNEL=path/to/vmlinuz MODULES=path/to/lib/modules/VERSION, or a device of this host with RDMA_DEVICE=")
		}
	}
	fmt.Printf("lab: fetching %s of Debian %s\n", k.pkg, k.suite)
	tmp := root + fmt.Sprintf(".tmp%d", os.Getpid())
	defer os.RemoveAll(tmp)
	if err := k.download(ctx, filepath.Join(o.cache, "apt-"+k.suite+"-"+k.arch), tmp); err != nil {
		return unpacked{}, err
	}
	if _, err := locate(tmp); err != nil {
		return unpacked{}, err
	}
	if err := os.RemoveAll(root); err != nil {
		return unpacked{}, err
	}
	// Another lab may have been faster; then its kernel is as good.
	if err := os.Rename(tmp, root); err != nil && !isDir(root) {
		return unpacked{}, err
	}
	return locate(root)
}

// kernelPackage matches the packages of one kernel version. From 7.2 on, Debian's
// linux-image-VERSION depends on linux-binary-VERSION and linux-modules-VERSION.
var kernelPackage = regexp.MustCompile(`^linux-(image|binary|modules)-[0-9]+\.`)

func (k kernel) download(ctx context.Context, aptDir, root string) error {
	a, err := newArchive(ctx, aptDir, k.suite, k.arch)
	if err != nil {
		return err
	}
	if err := a.update(ctx); err != nil {
		return err
	}
	seen := map[string]bool{k.pkg: true}
	found := false
	for queue := []string{k.pkg}; len(queue) > 0; queue = queue[1:] {
		if kernelPackage.MatchString(queue[0]) {
			found = true
			if err := a.unpack(ctx, queue[0], root); err != nil {
				return err
			}
		}
		deps, err := a.depends(ctx, queue[0])
		if err != nil {
			return err
		}
		for _, d := range deps {
			if kernelPackage.MatchString(d) && !seen[d] {
				seen[d] = true
				queue = append(queue, d)
			}
		}
	}
	if !found {
		return errors.Errorf("%s depends on no kernel package", k.pkg)
	}
	return nil
}

// locate finds the image and the modules below root.
func locate(root string) (unpacked, error) {
	one := func(what string, patterns ...string) (string, error) {
		for _, p := range patterns {
			if found, _ := filepath.Glob(filepath.Join(root, p)); len(found) == 1 {
				return found[0], nil
			}
		}
		return "", errors.Errorf("no single %s in %s", what, root)
	}
	var u unpacked
	var err error
	if u.image, err = one("kernel image", "boot/vmlinu[xz]-*", "usr/lib/modules/*/vmlinu[xz]"); err != nil {
		return u, err
	}
	u.modules, err = one("module directory", "lib/modules/*", "usr/lib/modules/*")
	return u, err
}
