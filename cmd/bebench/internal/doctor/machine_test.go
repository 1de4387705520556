//go:build linux

package doctor

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/internal/testhost"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/verbs"
)

// machine is a healthy host with one adapter, mlx5_0 on eth0, for a test to break.
type machine struct {
	*testhost.Host
	h Host
}

func healthy(t *testing.T, nics ...testhost.NIC) *machine {
	t.Helper()
	if !mmio.HasBarriers {
		t.Skip("no barriers for device memory on this processor")
	}
	if len(nics) == 0 {
		nics = []testhost.NIC{{Name: "mlx5_0"}}
	}
	m := &machine{Host: testhost.New(t, nics...)}
	for path, content := range map[string]string{
		"proc/self/status":                                             "Name:\tbebench\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-3",
		"proc/self/uid_map":                                            "         0          0 4294967295",
		"proc/self/cgroup":                                             "0::/user.slice",
		"sys/fs/cgroup/user.slice/rdma.max":                            "mlx5_0 hca_handle=max hca_object=max",
		"proc/meminfo":                                                 "MemTotal: 1 kB\nHugePages_Free:      512\nHugepagesize:       2048 kB",
		"sys/devices/system/cpu/cpu0/cpufreq/x":                        "",
		"sys/devices/system/cpu/cpu0/node0/x":                          "",
		"sys/devices/system/node/node1/distance":                       "21 10",
		"sys/class/net/eth0/mtu":                                       "4200",
		"sys/class/net/eth0/qos/trust":                                 "dscp",
		"sys/class/net/eth0/ecn/roce_np/enable/3":                      "1",
		"sys/class/misc/rdma_cm/dev":                                   "10:59",
		"sys/class/misc/rdma_cm/abi_version":                           "4",
		"dev/infiniband/rdma_cm":                                       "",
		"sys/devices/pci0000:00/0000:01:00.0/local_cpulist":            "0-7",
		"sys/devices/pci0000:00/0000:01:00.0/iommu_group/type":         "identity",
		"sys/class/infiniband/mlx5_0/ports/1/counters/out_of_sequence": "0",
	} {
		m.Write(path, content)
	}
	m.Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance")
	m.h = Host{
		OS: "linux", Kernel: "6.12.5-amd64", Files: os.DirFS(m.Root), Verbs: m.Verbs, Memlock: Limit{true, unlimited, unlimited},
		Program: elfFile(elf.PT_LOAD),
		// The provider of real adapters does not know that it has a model below it.
		Loop: func(ctx context.Context, dev verbs.Device) (Loop, error) {
			hw := m.Models[dev.Info().Name]
			l, err := LoopTest(ctx, mlx5.NewObserved(hw.System(), hw.Node(), hw))
			for _, f := range hw.Faults() {
				t.Error(f)
			}
			return l, err
		},
	}
	m.h.Verbs.Netlink = netnsMode(1)
	return m
}

func (m *machine) run() *Report {
	r, _ := Run(context.Background(), &m.h, "", time.Unix(0, 0))
	return r
}

// netnsMode answers the question for the mode of namespaces, as the kernel does: a
// message with one attribute, RDMA_NLDEV_SYS_ATTR_NETNS_MODE.
func netnsMode(mode byte) func([]byte) ([][]byte, error) {
	return func(request []byte) ([][]byte, error) {
		if typ := binary.NativeEndian.Uint16(request[4:]); typ != 5<<10|6 { // RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET
			return nil, fmt.Errorf("request %#x", typ)
		}
		b := make([]byte, 24)
		binary.NativeEndian.PutUint32(b, 24)
		binary.NativeEndian.PutUint16(b[16:], 5)
		binary.NativeEndian.PutUint16(b[18:], 66)
		b[20] = mode
		return [][]byte{b}, nil
	}
}

// elfFile is the head of an executable with one program header.
func elfFile(typ elf.ProgType) func() (io.ReaderAt, io.Closer, error) {
	var b bytes.Buffer
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	if err := binary.Write(&b, binary.LittleEndian, h); err != nil {
		panic(err)
	}
	if err := binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(typ)}); err != nil {
		panic(err)
	}
	return func() (io.ReaderAt, io.Closer, error) { return bytes.NewReader(b.Bytes()), io.NopCloser(nil), nil }
}
