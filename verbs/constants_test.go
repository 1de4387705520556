package verbs

import (
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/internal/cconst"
	"github.com/byteexpress/byteexpress/qp"
)

var (
	events = []EventType{
		EventCQError, EventQPFatal, EventQPRequestError, EventQPAccessError, EventCommEstablished, EventSQDrained, EventPathMigrated,
		EventPathMigrateError, EventDeviceFatal, EventPortActive, EventPortError, EventLIDChange, EventPKeyChange, EventSMChange,
		EventSRQError, EventSRQLimit, EventLastWQEReached, EventClientReregister, EventGIDChange,
	}
	ports = []PortState{PortDown, PortInit, PortArmed, PortActive, PortActiveDefer}
	links = []LinkLayer{LinkUnspecified, LinkInfiniBand, LinkEthernet}
)

// Values against the C headers; names of events, port states and link layers are
// the C ones without their prefix.
func TestConstants(t *testing.T) {
	want, err := cconst.Load("testdata/constants.tsv")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{
		"IB_UVERBS_GID_TYPE_IB":      uint64(GIDInfiniBand),
		"IB_UVERBS_GID_TYPE_ROCE_V1": uint64(GIDRoCEv1),
		"IB_UVERBS_GID_TYPE_ROCE_V2": uint64(GIDRoCEv2),
	}
	for _, o := range []OnDemandOps{OnDemandSend, OnDemandRecv, OnDemandWrite, OnDemandRead, OnDemandAtomic, OnDemandSRQRecv} {
		got["IB_UVERBS_ODP_SUPPORT_"+OnDemand{Supported: true, RC: o}.String()] = uint64(o)
	}
	for _, f := range flagNames {
		got["IB_UVERBS_DEVICE_"+f.name] = uint64(f.bit)
	}
	for _, e := range events {
		got["IBV_EVENT_"+e.String()] = uint64(e)
	}
	for _, p := range ports {
		got["IBV_PORT_"+p.String()] = uint64(p)
	}
	for _, l := range links {
		got["IBV_LINK_LAYER_"+strings.ToUpper(l.String())] = uint64(l)
	}
	for _, d := range cconst.Diff(got, want) {
		t.Error(d)
	}
}

// The identifiers of the events, for a swap in the table of names would not show
// above.
func TestEventIdentifiers(t *testing.T) {
	names := map[EventType]string{
		EventCQError: "CQ_ERR", EventQPFatal: "QP_FATAL", EventQPRequestError: "QP_REQ_ERR", EventQPAccessError: "QP_ACCESS_ERR",
		EventCommEstablished: "COMM_EST", EventSQDrained: "SQ_DRAINED", EventPathMigrated: "PATH_MIG", EventPathMigrateError: "PATH_MIG_ERR",
		EventDeviceFatal: "DEVICE_FATAL", EventPortActive: "PORT_ACTIVE", EventPortError: "PORT_ERR", EventLIDChange: "LID_CHANGE",
		EventPKeyChange: "PKEY_CHANGE", EventSMChange: "SM_CHANGE", EventSRQError: "SRQ_ERR", EventSRQLimit: "SRQ_LIMIT_REACHED",
		EventLastWQEReached: "QP_LAST_WQE_REACHED", EventClientReregister: "CLIENT_REREGISTER", EventGIDChange: "GID_CHANGE",
	}
	if len(names) != len(events) || len(eventNames) != len(events) {
		t.Fatalf("%d names, %d in the table, %d events", len(names), len(eventNames), len(events))
	}
	for e, want := range names {
		if e.String() != want {
			t.Errorf("event %d is %v, want %s", uint8(e), e, want)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	for got, want := range map[string]string{
		EventType(200).String(): "EVENT_200",
		PortState(0).String():   "STATE_0",
		OnDemand{Supported: true, Implicit: true, RC: OnDemandSend | OnDemandWrite}.String(): "implicit|SEND|WRITE",
		OnDemand{RC: 1}.String():                              "",
		PhysState(5).String():                                 "LINK_UP",
		PhysState(0).String():                                 "PHYS_STATE_0",
		Speed(128).String():                                   "NDR",
		Speed(512).String():                                   "SPEED_512",
		DeviceFlags(0).String():                               "0x0",
		(FlagMemWindow2B | FlagSRQResize | 1).String():        "SRQ_RESIZE|MEM_WINDOW_TYPE_2B|0x1",
		LinkLayer(7).String():                                 "unspecified",
		GIDType(9).String():                                   "TYPE_9",
		GIDInfiniBand.String():                                "IB",
		GIDRoCEv1.String():                                    "RoCE v1",
		GIDRoCEv2.String():                                    "RoCE v2",
		Event{Type: EventPortError, Port: 2}.String():         "PORT_ERR on port 2",
		Event{Type: EventQPFatal, QP: 0x1f}.String():          "QP_FATAL on qp 0x1f",
		Event{Type: EventCQError}.String():                    "CQ_ERR",
		Event{Type: EventDeviceFatal, QP: qp.Num(0)}.String(): "DEVICE_FATAL",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
