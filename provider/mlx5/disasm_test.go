package mlx5

import (
	"bufio"
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var asmLine = regexp.MustCompile(`^\s+\S+:\d+\s+0x[0-9a-f]+\s+[0-9a-f]+\s+(.*)$`)

// disassemble gives the instructions of functions in a linked program, the tests of
// this package, by the last part of their names.
func disassemble(t *testing.T, arch, pattern string) map[string][]string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "mlx5.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-o", program, "github.com/byteexpress/byteexpress/provider/mlx5")
	build.Env = append(build.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("no Go tool that builds for %s: %v\n%s", arch, err, out)
	}
	out, err := exec.Command("go", "tool", "objdump", "-s", pattern, program).Output()
	if err != nil {
		t.Skipf("go tool objdump: %v", err)
	}
	funcs := map[string][]string{}
	name := ""
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if f, ok := strings.CutPrefix(s.Text(), "TEXT "); ok {
			f, _, _ = strings.Cut(f, "(SB)")
			name = strings.TrimSuffix(f[strings.LastIndex(f, ".")+1:], ".abi0")
			if strings.HasSuffix(f, ".abi0") {
				f = strings.TrimSuffix(f, ".abi0")
				name = f[strings.LastIndex(f, ".")+1:]
			}
		} else if m := asmLine.FindStringSubmatch(s.Text()); m != nil {
			funcs[name] = append(funcs[name], strings.Join(strings.Fields(m[1]), " "))
		}
	}
	return funcs
}

// ordered reports whether the parts occur in the instructions in this order.
func ordered(code []string, parts ...string) bool {
	for _, c := range code {
		if len(parts) > 0 && strings.Contains(c, parts[0]) {
			parts = parts[1:]
		}
	}
	return len(parts) == 0
}

// lockedRMW are instructions that read, change and write memory at once, or stand
// for such: none belongs on a doorbell's path.
var lockedRMW = regexp.MustCompile(`^(LOCK|XCHG|CMPXCHG|XADD|LDAXR|STLXR|LDXR|STXR|LDADD|SWP|CAS)`)

// partStore are amd64's stores of one or two bytes to other memory than the stack.
var partStore = regexp.MustCompile(`^MOV[BW] [^()]+, [^()]+\(([A-RT-Z0-9]|S[^P])+\)`)

// The path of a doorbell has the intended stores and barriers, in order, and no
// locked read-modify-write (but where a register is shared and a mutex is taken).
func TestDoorbellDisassembly(t *testing.T) {
	if testing.Short() {
		t.Skip("links two programs")
	}
	for arch, want := range map[string]map[string][]string{
		"amd64": { // loads are in order by themselves, and so are stores
			"Doorbell": {"MOVL DX, 0(CX)", "SFENCE", "MOVQ BX, 0(AX)", "SFENCE"},
			"DoorbellBlocks": {"MOVL DX, 0(AX)", "SFENCE", "MOVQ AX, 0(DI)", "MOVQ BX, 0x8(DI)", "MOVQ DX, 0x10(DI)", "MOVQ R8, 0x18(DI)",
				"MOVQ AX, 0x20(DI)", "MOVQ BX, 0x28(DI)", "MOVQ DX, 0x30(DI)", "MOVQ R8, 0x38(DI)", "SFENCE"},
			"Store32": {"MOVL BX, 0(AX)"}, "Release32": {"MOVL BX, 0(AX)"}, "poll": {"mmio.Store32"},
		},
		"arm64": { // DMB OSHST is 2, OSHLD 1, DSB ST 14
			"Doorbell": {"DMB $2", "MOVW R3, (R2)", "DSB $14", "MOVD R1, (R0)", "DSB $14"},
			"DoorbellBlocks": {"DMB $2", "MOVW R3, (R2)", "DSB $14", "STP (R2, R3), (R0)", "STP (R4, R5), 16(R0)", "STP (R6, R7), 32(R0)", "STP (R8, R9), 48(R0)",
				"DSB $14"},
			"Store32": {"MOVW R1, (R0)"}, "Release32": {"STLRW R1, (R0)"},
			"ReadBarrier": {"DMB $1"}, "WriteBarrier": {"DMB $2"}, "poll": {"mmio.ReadBarrier", "mmio.WriteBarrier", "mmio.Store32"},
		},
	} {
		code := disassemble(t, arch, `mlx5\.\(\*(register|cqRing|sendQueue)\)\.(ring|poll|putPlain)$|mmio\.(WriteBarrier|ReadBarrier|Doorbell|Store32|Release32|DoorbellBlocks)`)
		want["ring"] = []string{"mmio.Doorbell"}
		for name, parts := range want {
			if !ordered(code[name], parts...) {
				t.Errorf("%s: %s lacks %q in this order:\n%s", arch, name, parts, strings.Join(code[name], "\n"))
			}
			if i := slices.IndexFunc(code[name], lockedRMW.MatchString); i >= 0 {
				t.Errorf("%s: %s has %s", arch, name, code[name][i])
			}
		}
		// What was stored in parts is slow to load for the doorbell right after it.
		put := code["putPlain"]
		if i := slices.IndexFunc(put, partStore.MatchString); len(put) == 0 || i >= 0 && arch == "amd64" {
			t.Errorf("%s: of %d instructions of putPlain, %d is a store of a part", arch, len(put), i)
		}
	}
}

// The patterns find what they look for.
func TestPatterns(t *testing.T) {
	for _, s := range []string{"LOCK XADDL AX, 0(BX)", "XCHGQ AX, 0(BX)", "LDADDALW R1, (R0), R2", "CASALW R1, (R0), R2"} {
		if !lockedRMW.MatchString(s) {
			t.Errorf("%q is not found", s)
		}
	}
	if !partStore.MatchString("MOVB $0x0, 0(R11)(R9*1)") || !partStore.MatchString("MOVW CX, 0x1(SI)") || partStore.MatchString("MOVB SI, 0x1f(SP)") {
		t.Error("stores of parts are not told apart")
	}
}
