package mlx5

import "testing"

func TestModel(t *testing.T) {
	for alias, want := range map[string]string{
		"pci:v000015B3d00001017sv000015B3sd00000007bc02sc00i00": "ConnectX-5",
		"pci:v000015B3d0000101Dsv000015B3sd00000016bc02sc00i00": "ConnectX-6 Dx",
		"pci:v000015B3d0000A2DCsv000015B3sd00000001bc02sc00i00": "BlueField-3",
		"pci:v000015B3d00001025sv000015B3sd00000001bc02sc00i00": "ConnectX-9",
		"pci:v000015B3d0000A2DFsv000015B3sd00000001bc02sc00i00": "BlueField-4",
		"pci:v000015B3d00001011sv000015B3sd00000001bc02sc07i00": "", // Connect-IB
		"pci:v00008086d00001017sv00008086sd00000001bc02sc00i00": "", // another vendor
		"usb:v15B3p1017":  "",
		"pci:v000015B3":   "",
		"":                "",
		"pci:vXXXXd00001": "",
	} {
		if got, ok := Model(alias); got != want || ok != (want != "") {
			t.Errorf("%q is %q, %v, want %q", alias, got, ok, want)
		}
	}
}
