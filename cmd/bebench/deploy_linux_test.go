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
	"testing"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/internal/house"
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

// yamlLine is a line of the part of YAML that the manifests keep to: maps and lists by
// indentation, and scalars or lists in brackets on one line.
var yamlLine = regexp.MustCompile(`^( *)((?:- )?)(?:([A-Za-z][\w./-]*):(?: (.+))?|"?([^":#]+)"?)$`)

// parseManifest gives the values of the documents, each by its path from the root;
// list items are numbered.
func parseManifest(text string) (docs []map[string]string, err error) {
	type level struct {
		indent, item int
		path         string
	}
	for _, doc := range strings.Split(text, "\n---\n") {
		values, stack := map[string]string{}, []level{{-1, -1, ""}}
		for n, line := range strings.Split(doc, "\n") {
			if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
				continue
			}
			m := yamlLine.FindStringSubmatch(line)
			if m == nil || len(m[1])%2 != 0 {
				return nil, fmt.Errorf("line %d of the document: %q", n+1, line)
			}
			indent := len(m[1])
			for stack[len(stack)-1].indent >= indent && (m[2] == "" || stack[len(stack)-1].indent > indent || stack[len(stack)-1].item < 0) {
				stack = stack[:len(stack)-1]
			}
			if m[2] != "" {
				if top := &stack[len(stack)-1]; top.indent == indent {
					top.item++
					top.path = top.path[:strings.LastIndex(top.path, "/")+1] + fmt.Sprint(top.item)
				} else {
					stack = append(stack, level{indent, 0, top.path + "/0"})
				}
				indent += 2
			}
			path := stack[len(stack)-1].path
			if m[3] != "" {
				path += "/" + m[3]
				if _, twice := values[path]; twice {
					return nil, fmt.Errorf("line %d of the document: %s again", n+1, path)
				}
				stack = append(stack, level{indent, -1, path})
			}
			values[path] = strings.Trim(m[4]+m[5], `"`)
		}
		docs = append(docs, values)
	}
	return docs, nil
}

// TestKubernetesManifest: the manifest parses, and has what RDMA needs of a pod.
func TestKubernetesManifest(t *testing.T) {
	docs, err := parseManifest(deployFile(t, "kubernetes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]map[string]string{}
	for _, d := range docs {
		kinds[d["/kind"]] = d
		if d["/apiVersion"] == "" || d["/metadata/name"] == "" {
			t.Errorf("a document without version or name: %v", d)
		}
	}
	for kind, spec := range map[string]string{"StatefulSet": "/spec/template/spec", "Job": "/spec/template/spec"} {
		d, c := kinds[kind], spec+"/containers/0"
		for path, want := range map[string]string{
			c + "/resources/limits/rdma/hca_shared_devices_a": "1",
			c + "/securityContext/capabilities/add":           `["IPC_LOCK"]`,
			c + "/image":                                      "bebench:latest",
			spec + "/hostNetwork":                             "true",
		} {
			if d[path] != want {
				t.Errorf("%s: %s is %q, want %q", kind, path, d[path], want)
			}
		}
		if args := d[c+"/args"]; !strings.HasPrefix(args, `["rpc"`) || !strings.HasSuffix(args, `"]`) {
			t.Errorf("%s: args %s", kind, args)
		}
	}
	set := kinds["StatefulSet"]
	if set["/spec/serviceName"] != kinds["Service"]["/metadata/name"] || set["/spec/selector/matchLabels/app"] != set["/spec/template/metadata/labels/app"] ||
		kinds["Service"]["/spec/selector/app"] != set["/spec/template/metadata/labels/app"] || set["/spec/template/spec/containers/0/readinessProbe/tcpSocket/port"] != "18515" {
		t.Errorf("service and servers do not fit: %v", set)
	}
	// What the pods are told is what the command takes.
	args := regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(kinds["Job"]["/spec/template/spec/containers/0/args"], -1)
	var list []string
	for _, a := range args {
		list = append(list, a[1])
	}
	bebench(t.Context(), append(list, "--no-such-flag")...).want(t, exit.Usage, "no-such-flag")
	bebench(t.Context(), append(list, "--help")...).want(t, exit.Done)
	for _, bad := range []string{"a: 1\n\tb: 2", "a: 1\na: 2", "a:\n   b: 1"} {
		if _, err := parseManifest(bad); err == nil {
			t.Errorf("%q parses", bad)
		}
	}
}
