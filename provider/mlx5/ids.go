package mlx5

import "fmt"

// pciVendor is Mellanox, now NVIDIA.
const pciVendor = 0x15b3

// models are the NICs that this package drives, by PCI device id: ConnectX-4 and
// later, virtual functions included (rdma-core, providers/mlx5/mlx5.c). Older ones
// (Connect-IB) lack what is taken for granted here.
var models = map[uint16]string{
	0x1013: "ConnectX-4", 0x1014: "ConnectX-4 VF", 0x1015: "ConnectX-4 Lx", 0x1016: "ConnectX-4 Lx VF",
	0x1017: "ConnectX-5", 0x1018: "ConnectX-5 VF", 0x1019: "ConnectX-5 Ex", 0x101a: "ConnectX-5 Ex VF",
	0x101b: "ConnectX-6", 0x101c: "ConnectX-6 VF", 0x101d: "ConnectX-6 Dx", 0x101e: "ConnectX family VF", 0x101f: "ConnectX-6 Lx",
	0x1021: "ConnectX-7", 0x1023: "ConnectX-8", 0x1025: "ConnectX-9", 0x1027: "ConnectX-10", 0x2101: "ConnectX-10 NVLink-C2C",
	0xa2d2: "BlueField", 0xa2d3: "BlueField VF", 0xa2d6: "BlueField-2", 0xa2dc: "BlueField-3", 0xa2df: "BlueField-4",
}

// Model names the NIC of a PCI modalias as sysfs has it
// ("pci:v000015B3d00001017sv..."), if this package drives it.
func Model(modalias string) (name string, ok bool) {
	var vendor, device uint32
	if n, err := fmt.Sscanf(modalias, "pci:v%08Xd%08X", &vendor, &device); n != 2 || err != nil || vendor != pciVendor || device > 0xffff {
		return "", false
	}
	name, ok = models[uint16(device)]
	return name, ok
}
