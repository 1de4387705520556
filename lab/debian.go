package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// tool is a program of this host, or another file by its whole path, with the Debian
// package that has it.
type tool struct{ program, pkg string }

func (t tool) there() bool {
	if filepath.IsAbs(t.program) {
		_, err := os.Stat(t.program)
		return err == nil
	}
	_, err := exec.LookPath(t.program)
	return err == nil
}

// need makes sure that the tools are there: on Debian, root gets them installed.
func need(ctx context.Context, tools []tool) error {
	var programs, pkgs []string
	for _, t := range tools {
		if !t.there() {
			programs = append(programs, t.program)
			pkgs = append(pkgs, t.pkg)
		}
	}
	if len(programs) == 0 {
		return nil
	}
	slices.Sort(pkgs)
	pkgs = slices.Compact(pkgs)
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return errors.Errorf("%s: not found: install what Debian calls %s (there: apt-get install %[2]s), or name a device of this host with RDMA_DEVICE=",
			strings.Join(programs, ", "), strings.Join(pkgs, " "))
	}
	fmt.Printf("lab: installing %s\n", strings.Join(pkgs, " "))
	install := append([]string{"install", "-y", "--no-install-recommends"}, pkgs...)
	if _, err := aptGet(ctx, install...); err == nil {
		return nil
	}
	// The package lists may be missing or too old.
	if _, err := aptGet(ctx, "update"); err != nil {
		return err
	}
	_, err := aptGet(ctx, install...)
	return err
}

func aptGet(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return output(cmd)
}

// archive is a Debian suite as apt sees it: through a private configuration, so
// that neither the machine's own sources nor its lists are touched and its own suite
// does not matter.
type archive struct {
	dir string // holds the configuration, the lists and what is downloaded
}

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// mirrors gives the addresses of Debian's archive and of its security archive, from
// the machine's own sources.
func mirrors(ctx context.Context) (main, security string, err error) {
	out, err := aptGet(ctx, "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
	if err != nil {
		return "", "", err
	}
	if main, security = pickMirrors(out); main == "" {
		err = errors.New("no Debian archive (an address that ends in /debian) among apt's sources: add one, or name a kernel by KERNEL= and MODULES=")
	}
	return main, security, err
}

func pickMirrors(uris string) (main, security string) {
	for uri := range strings.FieldsSeq(uris) {
		switch path.Base(uri) {
		case "debian":
			main = cmp.Or(main, uri)
		case "debian-security":
			security = cmp.Or(security, uri)
		}
	}
	return main, security
}

// newArchive makes the configuration for one suite and architecture in the cache, and
// fetches the lists of packages.
func newArchive(ctx context.Context, cache, suite, arch string) (archive, error) {
	dir := filepath.Join(cache, "apt-"+suite+"-"+arch)
	a := archive{dir: dir}
	for _, program := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return a, errors.New("this host is not Debian: name a kernel with KERNEL=path/to/vmlinuz MODULES=path/to/lib/modules/VERSION, or a device of this host with RDMA_DEVICE=")
		}
	}
	mirror, security, err := mirrors(ctx)
	if err != nil {
		return a, err
	}
	lines := fmt.Sprintf("deb [signed-by=%s arch=%s] %s %s main\n", keyring, arch, mirror, suite)
	if suite != "sid" && security != "" {
		lines += fmt.Sprintf("deb [signed-by=%s arch=%s] %s %s-security main\n", keyring, arch, security, suite)
	}
	for _, d := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return a, err
		}
	}
	sources := filepath.Join(dir, "sources.list")
	if err := os.WriteFile(sources, []byte(lines), 0o644); err != nil {
		return a, err
	}
	var config strings.Builder
	for _, o := range [][2]string{
		{"Dir::Etc::SourceList", sources}, {"Dir::Etc::SourceParts", "/dev/null"},
		{"Dir::State", filepath.Join(dir, "state")}, {"Dir::State::status", "/dev/null"},
		{"Dir::Cache", filepath.Join(dir, "cache")},
		{"APT::Architecture", arch}, {"APT::Architectures", arch}, {"APT::Sandbox::User", "root"},
		{"Acquire::Languages", "none"}, {"Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled", "false"},
		{"Acquire::IndexTargets::deb::DEP-11::DefaultEnabled", "false"},
		{"APT::Update::Error-Mode", "any"}, // an archive that cannot be reached is an error
		// apt would try again for minutes, even on a full disk.
		{"Acquire::Retries", "0"}, {"Acquire::http::Timeout", "30"},
	} {
		fmt.Fprintf(&config, "%s %q;\n", o[0], o[1])
	}
	if err := os.WriteFile(a.config(), []byte(config.String()), 0o644); err != nil {
		return a, err
	}
	_, err = a.apt(ctx, "", "apt-get", "update")
	return a, err
}

func (a archive) config() string { return filepath.Join(a.dir, "apt.conf") }

// apt runs one of apt's programs on the archive, in a directory, and gives its output.
func (a archive) apt(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "APT_CONFIG="+a.config())
	return output(cmd)
}

// depends lists the packages that a package of the archive depends on.
func (a archive) depends(ctx context.Context, pkg string) ([]string, error) {
	out, err := a.apt(ctx, "", "apt-cache", "depends", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances", pkg)
	var names []string
	for l := range strings.Lines(out) {
		if _, name, ok := strings.Cut(l, "Depends: "); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names, err
}

// unpack downloads a package and unpacks it in root. It installs nothing.
func (a archive) unpack(ctx context.Context, pkg, root string) error {
	dir, err := os.MkdirTemp(a.dir, "deb-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := a.apt(ctx, dir, "apt-get", "download", pkg); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err == nil && len(debs) != 1 {
		err = errors.Errorf("apt-get download %s: %d files", pkg, len(debs))
	}
	if err != nil {
		return err
	}
	_, err = output(exec.CommandContext(ctx, "dpkg-deb", "-x", debs[0], root))
	return err
}

// unpackAll downloads packages with all that they depend on, as for a machine on
// which nothing is installed, and unpacks them in root.
func (a archive) unpackAll(ctx context.Context, pkgs []string, root string) error {
	if _, err := a.apt(ctx, "", "apt-get", "clean"); err != nil {
		return err
	}
	install := append([]string{"install", "--download-only", "-y", "--no-install-recommends"}, pkgs...)
	if _, err := a.apt(ctx, "", "apt-get", install...); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(a.dir, "cache", "archives", "*.deb"))
	if err != nil {
		return err
	}
	for _, deb := range debs {
		if _, err := output(exec.CommandContext(ctx, "dpkg-deb", "-x", deb, root)); err != nil {
			return err
		}
	}
	return nil
}
