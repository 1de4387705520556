package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/internal/house"
)

// asRoot makes the test binary, run as the command, change its root directory and
// become nobody first.
const asRoot = "BEBENCH_TEST_ROOT"

func init() {
	dir := os.Getenv(asRoot)
	if dir == "" || os.Getenv(asCommand) == "" {
		return
	}
	for _, err := range []error{syscall.Chroot(dir), os.Chdir("/"), syscall.Setgid(nobody), syscall.Setuid(nobody)} {
		if err != nil {
			fmt.Fprintln(os.Stderr, "empty root:", err)
			os.Exit(99)
		}
	}
}

// Files that only a program with plug-ins and shared libraries looks for.
var plugIns = regexp.MustCompile(`"[^"]*(libibverbs\.d|\.so(\.\d+)*)"`)

// needOwnRoot skips a test unless this program can run as the command in another root.
func needOwnRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can change the root directory")
	}
	self, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	if err := house.CheckStatic(self); err != nil {
		t.Skipf("this test binary is %v: run with CGO_ENABLED=0", err)
	}
}

// traced runs the command as nobody in another root, and gives the names of plug-ins
// and libraries that it tried to open.
func traced(t *testing.T, root string, args ...string) (result, []string) {
	t.Helper()
	needOwnRoot(t)
	return strace(t, []string{asCommand + "=1", asRoot + "=" + root}, append([]string{os.Args[0]}, args...)...)
}

// strace runs a program and looks at what it opens.
func strace(t *testing.T, env []string, argv ...string) (result, []string) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed")
	}
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command("strace", append([]string{"-f", "--seccomp-bpf", "-qq", "-e", "trace=openat,open,stat,newfstatat,access,faccessat2,readlink", "-o", log}, argv...)...)
	cmd.Env = append(os.Environ(), env...)
	var out, errout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errout
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) == 0 {
		t.Skipf("strace traces nothing here: %s", &errout)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errout.String()}, plugIns.FindAllString(string(b), -1)
}

// put makes a file of a line below a directory.
func put(t *testing.T, root, name, content string, mode os.FileMode) {
	t.Helper()
	full := filepath.Join(root, name)
	err := os.MkdirAll(filepath.Dir(full), 0o755)
	if err == nil {
		err = os.WriteFile(full, []byte(content+"\n"), mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// emptyRoot is a directory that everybody may enter, unlike those of t.TempDir.
func emptyRoot(t *testing.T) string {
	t.Helper()
	root, err := os.MkdirTemp("", "bebench-root-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

// Case C06: in a root that has nothing but the files of four devices, the program lists
// them, each with what is wrong with it, and looks for no plug-in and no library.
func TestEmptyRoot(t *testing.T) {
	root := emptyRoot(t)
	put(t, root, "sys/class/infiniband_verbs/abi_version", "6", 0o644)
	for i := range 4 {
		node, name := fmt.Sprintf("uverbs%d", i), fmt.Sprintf("mlx5_%d", i)
		put(t, root, "sys/class/infiniband_verbs/"+node+"/ibdev", name, 0o644)
		put(t, root, "sys/class/infiniband_verbs/"+node+"/abi_version", "1", 0o644)
		put(t, root, "sys/class/infiniband_verbs/"+node+"/dev", fmt.Sprintf("231:%d", 192+i), 0o644)
		put(t, root, "sys/class/infiniband/"+name+"/node_type", "1: CA", 0o644)
		put(t, root, "sys/class/infiniband/"+name+"/ports/1/state", "4: ACTIVE", 0o644)
		put(t, root, "sys/class/infiniband/"+name+"/device/modalias", "pci:v000015B3d0000101Bsv000015B3sd00000001bc02sc00i00", 0o644)
		if i%2 == 0 {
			put(t, root, "dev/infiniband/"+node, "", map[int]os.FileMode{0: 0o666, 2: 0o600}[i])
		}
	}
	r, opened := traced(t, root, "devices")
	r.want(t, exit.Done, "mlx5_0\n", "mlx5_1: open /dev/infiniband/uverbs1: no device node", "mlx5_2: open /dev/infiniband/uverbs2: permission denied",
		"mlx5_3: open /dev/infiniband/uverbs3: no device node", "provider mlx5")
	if len(opened) > 0 {
		t.Errorf("the program looks for %q", opened)
	}
	put(t, root, "sys/class/infiniband_verbs/abi_version", "7", 0o644)
	r, _ = traced(t, root, "devices")
	r.want(t, exit.Done, "cannot be used: verbs ABI version 6: not supported by the kernel, which has version 7\n")
	r, _ = traced(t, root, "doctor")
	r.want(t, exit.Failed, "the kernel has verbs ABI version 7, this program supports 6")
}

// Control: a program with shared libraries is seen to look for them.
func TestPlugInsAreSeen(t *testing.T) {
	for _, program := range []string{"ibv_devices", "strace", "ls"} {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		if _, opened := strace(t, nil, path, "--help"); !slices.ContainsFunc(opened, func(s string) bool { return strings.Contains(s, ".so") }) {
			t.Errorf("%s is seen to open %q only", program, opened)
		}
		return
	}
	t.Skip("no program with shared libraries here")
}
