package inventory

import "github.com/byteexpress/byteexpress/cmd/bebench/internal/report"

// Schema names the JSON format. Keys may be added to it; none changes its meaning,
// its unit or its name.
const Schema = "bebench-devices/1"

// Document is the list of a machine's RDMA devices. A field that does not apply, or
// is not known, is absent.
type Document struct {
	Schema  string      `json:"schema"`
	Host    report.Host `json:"host"`
	NetNS   string      `json:"netns_mode,omitempty"` // `rdma system`: shared or exclusive
	Default Choice      `json:"default"`
	Devices []Device    `json:"devices"` // best first
	Error   string      `json:"error,omitempty"`
}

// Choice is what commands use without -d, -i and -x.
type Choice struct {
	Device string `json:"device"`
	Port   int    `json:"port,omitempty"`
	GID    *int   `json:"gid_index,omitempty"`
	Why    string `json:"why"`
}

// Device is an RDMA device.
type Device struct {
	Name          string  `json:"name"`
	Rank          int     `json:"rank,omitempty"` // 1: the default; absent: rejected
	Why           string  `json:"why"`
	Error         string  `json:"error,omitempty"` // why it cannot be used
	Provider      string  `json:"provider,omitempty"`
	Driver        string  `json:"driver,omitempty"`
	DriverVersion string  `json:"driver_version,omitempty"` // of drivers from outside the kernel
	ABI           int     `json:"abi,omitempty"`
	NetDev        string  `json:"netdev,omitempty"` // software devices: the interface below
	Node          string  `json:"node,omitempty"`   // path of the device node
	NodeNumber    string  `json:"node_number,omitempty"`
	NodeType      string  `json:"node_type,omitempty"`
	NodeGUID      string  `json:"node_guid,omitempty"`
	PCI           string  `json:"pci,omitempty"`
	NUMANode      *int    `json:"numa_node,omitempty"`
	LocalCPUs     string  `json:"local_cpus,omitempty"`
	Firmware      string  `json:"firmware,omitempty"`
	Board         string  `json:"board,omitempty"`
	Type          string  `json:"type,omitempty"`
	Description   string  `json:"description,omitempty"`
	Limits        *Limits `json:"limits,omitempty"`
	Ports         []Port  `json:"ports,omitempty"`
}

// Port is a port of a device.
type Port struct {
	Port      int               `json:"port"`
	Rank      int               `json:"rank,omitempty"` // 1: the default; absent: rejected
	Why       string            `json:"why,omitempty"`
	State     string            `json:"state"`
	Physical  string            `json:"physical_state,omitempty"`
	LinkLayer string            `json:"link_layer"`
	MTUBytes  int               `json:"mtu_bytes,omitempty"`
	MaxMTU    int               `json:"max_mtu_bytes,omitempty"`
	SpeedGbps float64           `json:"speed_gbps,omitempty"`
	Width     int               `json:"width,omitempty"` // lanes
	Lane      string            `json:"lane,omitempty"`  // speed of a lane by its standard name
	Rate      string            `json:"rate,omitempty"`  // the kernel's words
	LID       int               `json:"lid,omitempty"`
	SMLID     int               `json:"sm_lid,omitempty"`
	PKeys     []string          `json:"pkeys,omitempty"`
	GIDs      []GID             `json:"gids,omitempty"`
	Counters  map[string]uint64 `json:"counters,omitempty"`
}

// GID is an entry of a port's GID table.
type GID struct {
	Index  int    `json:"index"`
	GID    string `json:"gid"`
	Type   string `json:"type"`
	NetDev string `json:"netdev,omitempty"`
	Rank   int    `json:"rank,omitempty"` // 1: the default; absent: rejected
	Why    string `json:"why,omitempty"`
}

// Limits are those of verbs.DeviceAttr.
type Limits struct {
	QP           int    `json:"qp"`
	QPWR         int    `json:"requests_per_queue"`
	SGE          int    `json:"segments_per_request"`
	InlineBytes  int    `json:"inline_bytes,omitempty"`
	CQ           int    `json:"cq"`
	CQE          int    `json:"completions_per_cq"`
	MR           int    `json:"mr"`
	MRBytes      uint64 `json:"mr_bytes"`
	PD           int    `json:"pd"`
	SRQ          int    `json:"srq,omitempty"` // shared receive queues; absent: none
	SRQWR        int    `json:"requests_per_srq,omitempty"`
	Reads        int    `json:"reads_out"` // READs and atomics a queue pair may have outstanding
	DestReads    int    `json:"reads_in"`  // and may serve at a time
	Atomics      bool   `json:"atomics"`
	Global       bool   `json:"atomics_global,omitempty"` // atomic against other devices and CPUs too
	MW           int    `json:"mw,omitempty"`
	OnDemand     string `json:"on_demand,omitempty"` // operations on regions that are paged on demand
	ClockKHz     uint64 `json:"clock_khz,omitempty"` // of hardware timestamps
	Flags        string `json:"flags"`               // standard names; a number for the rest
	CompVectors  int    `json:"completion_vectors"`
	VendorID     string `json:"vendor_id"`
	VendorPartID int    `json:"vendor_part_id"`
	HWVersion    int    `json:"hardware_version"`
}
