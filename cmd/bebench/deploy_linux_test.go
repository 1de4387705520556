package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
)

func deployFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTwoHosts runs the deployment to two hosts with both on this machine.
func TestTwoHosts(t *testing.T) {
	program := filepath.Join(t.TempDir(), "bebench")
	script := fmt.Sprintf("#!/bin/sh\nport=%s\nexec %s %q \"$@\" -p $port\n", port(t), "env "+asCommand+"=1", os.Args[0])
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", filepath.Join("..", "..", "deploy", "two-hosts.sh"), "local", "local", "--transport", "tcp", "-n", "50")
	cmd.Env = append(os.Environ(), "BEBENCH="+program, "SKIP_DOCTOR=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("echo ")) || !bytes.Contains(out, []byte("fetch")) {
		t.Errorf("%v\n%s", err, out)
	}
	cmd = exec.Command("/bin/sh", filepath.Join("..", "..", "deploy", "two-hosts.sh"), "local", "local", "--no-such-flag")
	cmd.Env = append(os.Environ(), "BEBENCH="+program, "SKIP_DOCTOR=1")
	if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("no-such-flag")) {
		t.Errorf("with a flag that is none: %v\n%s", err, out)
	}
}

// TestImage: the image is of one file, and the program does its work where nothing else is.
func TestImage(t *testing.T) {
	var last []string
	for _, line := range strings.Split(deployFile(t, "Dockerfile"), "\n") {
		switch {
		case strings.HasPrefix(line, "FROM "):
			last = []string{line}
		case line != "" && line[0] != '#':
			last = append(last, line)
		}
	}
	if want := []string{"FROM scratch", "COPY --from=build /bebench /bebench", `ENTRYPOINT ["/bebench"]`}; !slices.Equal(last, want) {
		t.Errorf("the image is made by %q, want %q", last, want)
	}
	needOwnRoot(t)
	for _, args := range [][]string{
		{"rpc", "-d", "sim:", "-n", "50", "-s", "64", "--rounds", "1"}, {"ps", "-d", "sim:", "-n", "20"},
	} {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), asCommand+"=1", asRoot+"="+emptyRoot(t))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q in an empty root: %v\n%s", args, err, out)
		}
	}
}

// value gives what is at a path of a YAML document, or "".
func value(doc any, path ...any) any {
	for _, key := range path {
		m, isMap := doc.(map[string]any)
		list, isList := doc.([]any)
		switch key := key.(type) {
		case string:
			if !isMap {
				return ""
			}
			doc = m[key]
		case int:
			if !isList || key >= len(list) {
				return ""
			}
			doc = list[key]
		}
	}
	return doc
}

// TestKubernetesManifest: the manifest parses, and has what RDMA needs of a pod.
func TestKubernetesManifest(t *testing.T) {
	kinds := map[string]any{}
	for in := yaml.NewDecoder(strings.NewReader(deployFile(t, "kubernetes.yaml"))); ; {
		var d map[string]any
		if err := in.Decode(&d); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if version, name := value(d, "apiVersion"), value(d, "metadata", "name"); version == nil || name == nil {
			t.Errorf("a document without version or name: %v", d)
		}
		kinds[fmt.Sprint(d["kind"])] = d
	}
	for _, kind := range []string{"StatefulSet", "Job"} {
		pod := value(kinds[kind], "spec", "template", "spec")
		c := value(pod, "containers", 0)
		for what, pair := range map[string][2]any{
			"limit of devices": {value(c, "resources", "limits", "rdma/hca_shared_devices_a"), "1"},
			"capabilities":     {value(c, "securityContext", "capabilities", "add"), []any{"IPC_LOCK"}},
			"image":            {value(c, "image"), "bebench:latest"},
			"host network":     {value(pod, "hostNetwork"), true},
			"command":          {value(c, "args", 0), "rpc"},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("%s: %s is %v, want %v", kind, what, pair[0], pair[1])
			}
		}
	}
	set, service := kinds["StatefulSet"], kinds["Service"]
	app := value(set, "spec", "template", "metadata", "labels", "app")
	if app == nil || value(set, "spec", "serviceName") != value(service, "metadata", "name") ||
		value(set, "spec", "selector", "matchLabels", "app") != app || value(service, "spec", "selector", "app") != app ||
		value(set, "spec", "template", "spec", "containers", 0, "readinessProbe", "tcpSocket", "port") != 18515 {
		t.Errorf("service and servers do not fit: %v and %v", service, set)
	}
	// What the pods are told is what the command takes.
	var args []string
	list, _ := value(kinds["Job"], "spec", "template", "spec", "containers", 0, "args").([]any)
	for _, a := range list {
		args = append(args, fmt.Sprint(a))
	}
	bebench(t.Context(), append(args, "--no-such-flag")...).want(t, exit.Usage, "no-such-flag")
	bebench(t.Context(), append(args, "--help")...).want(t, exit.Done)
}
