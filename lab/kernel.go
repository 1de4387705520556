package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// kernel is a stock kernel of Debian.
type kernel struct {
	name    string // for -kernel
	suite   string // of Debian's archive
	pkg     string // the package that depends on the suite's newest kernel
	machine machine
}

// kernels is the table of kernels that the lab knows; the first is the default.
var kernels = []kernel{
	{"6.1", "bookworm", "linux-image-amd64", amd64},
	{"6.12", "trixie", "linux-image-amd64", amd64},
	{"5.10", "bullseye", "linux-image-amd64", amd64},
	{"sid", "sid", "linux-image-amd64", amd64},
	{"6.1-arm64", "bookworm", "linux-image-arm64", arm64},
}

// choice is a kernel to run.
type choice struct {
	kernel
	optional bool // not asked for by itself: it is skipped if it cannot be had
}

// pickKernels reads the flag -kernel.
func pickKernels(asked string) ([]choice, error) {
	var out []choice
	if asked == "all" {
		for _, k := range kernels {
			out = append(out, choice{kernel: k})
		}
		return out, nil
	}
	for name := range strings.SplitSeq(asked, ",") {
		name, optional := strings.CutSuffix(name, "?")
		i := slices.IndexFunc(kernels, func(k kernel) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-kernel %q: no such kernel: see -list", name)
		}
		out = append(out, choice{kernels[i], optional})
	}
	return out, nil
}

// wanted are the kernel modules that the guest loads. crc32_generic is for rdma_rxe,
// which asks the crypto API for crc32 on 5.10 to 6.12 without depending on a module.
var wanted = []string{"ib_core", "ib_uverbs", "crc32_generic?", "rdma_rxe", "rdma_cm", "rdma_ucm", "dummy", "veth"}

// unpacked is a kernel on this host's disk.
type unpacked struct {
	image   string // vmlinuz
	modules string // lib/modules/VERSION
}

// fetchLimit is how long the packages of a kernel may take to come: about 100 MB.
const fetchLimit = 5 * time.Minute

// find gives the kernel from the cache, or newly downloaded.
func (k kernel) find(ctx context.Context, o options) (unpacked, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	root := filepath.Join(o.cache, "kernel-"+k.name+"-"+k.machine.arch)
	if u, err := locate(root); err == nil && !o.refresh {
		return u, nil
	}
	err := replace(root, func(tmp string) error {
		fmt.Printf("lab: fetching %s of Debian %s\n", k.pkg, k.suite)
		if err := k.download(ctx, o.cache, tmp); err != nil {
			return err
		}
		_, err := locate(tmp)
		return err
	})
	if err != nil {
		return unpacked{}, errors.Wrapf(err, "%s of Debian %s", k.pkg, k.suite)
	}
	return locate(root)
}

// replace makes the directory anew by fill, which fills an empty one beside it; on
// an error all stays as it was.
func replace(root string, fill func(tmp string) error) error {
	tmp := root + fmt.Sprintf(".tmp%d", os.Getpid())
	defer os.RemoveAll(tmp)
	if err := fill(tmp); err != nil {
		return err
	}
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	// Another lab may have been faster; then what it made is as good.
	if err := os.Rename(tmp, root); err != nil && !isDir(root) {
		return err
	}
	return nil
}

// kernelPackage matches the packages of one kernel version. From 7.2 on, Debian's
// linux-image-VERSION depends on linux-binary-VERSION and linux-modules-VERSION.
var kernelPackage = regexp.MustCompile(`^linux-(image|binary|modules)-[0-9]+\.`)

func (k kernel) download(ctx context.Context, cache, root string) error {
	a, err := newArchive(ctx, cache, k.suite, k.machine.arch)
	if err != nil {
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
