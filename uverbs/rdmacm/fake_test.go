//go:build linux

package rdmacm

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
)

// fakeKernel is a connection manager: channels are pipes that hold a byte for each
// event that waits, and peers are IDs of the same fake.
type fakeKernel struct {
	t *testing.T

	mu       sync.Mutex
	fail     func(n int, cmd uint32) syscall.Errno // n counts commands from 0, without GET_EVENT
	silent   map[uint32]bool                       // commands that give no event
	status   map[EventType]int32                   // status of events instead of 0
	calls    []uint32
	sizes    map[uint32][2]int // bytes in and out of each command
	channels map[int]*fakeChannel
	ids      map[uint32]*fakeID
	next     uint32
	lie      uint32 // added to the number of events reported
	tos      []byte // of the option
}

type fakeChannel struct {
	w      *os.File
	events []*fakeEvent
}

type fakeID struct {
	handle   uint32
	uid      uint64
	ch       int // descriptor
	local    netip.AddrPort
	remote   netip.AddrPort
	peer     *fakeID
	param    ConnParam // our last
	listens  bool
	reported uint32
}

type fakeEvent struct {
	id     *fakeID // that it is reported to
	typ    EventType
	status int32
	param  []byte  // struct rdma_ucm_conn_param
	conn   *fakeID // of a connect request
}

const fakeGUID = 0x0200_0aff_fe09_0001

func newFake(t *testing.T) *fakeKernel {
	return &fakeKernel{
		t: t, sizes: map[uint32][2]int{}, silent: map[uint32]bool{}, status: map[EventType]int32{},
		channels: map[int]*fakeChannel{}, ids: map[uint32]*fakeID{}, next: 40,
	}
}

// system gives the fake's System, with one RDMA device in its sysfs.
func (k *fakeKernel) system() *System {
	dir := k.t.TempDir()
	for name, text := range map[string]string{
		"class/misc/rdma_cm/abi_version":             "4\n",
		"class/infiniband/rxe7/node_guid":            "0200:0aff:fe09:0001\n",
		"class/infiniband/rxe7/node_type":            "1: CA\n",
		"class/infiniband/rxe7/node_desc":            "rxe\n",
		"class/infiniband_verbs/uverbs7/ibdev":       "rxe7\n",
		"class/infiniband_verbs/uverbs7/dev":         "231:199\n",
		"class/infiniband_verbs/uverbs7/abi_version": "2\n",
		"class/infiniband_verbs/abi_version":         "6\n",
		"class/infiniband/rxe7/ports/1/state":        "4: ACTIVE\n",
		"dev/infiniband/uverbs7":                     "",
		"class/infiniband/other/node_guid":           "0000:0000:0000:0001\n",
		"class/infiniband_verbs/uverbs8/ibdev":       "other\n",
		"class/infiniband_verbs/uverbs8/abi_version": "2\n",
		"class/infiniband_verbs/uverbs8/dev":         "231:200\n",
		"class/infiniband/other/ports/1/state":       "4: ACTIVE\n",
		"class/infiniband/other/node_type":           "1: CA\n",
	} {
		path := filepath.Join(dir, name)
		must(k.t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(k.t, os.WriteFile(path, []byte(text), 0o644))
	}
	return &System{Verbs: &uverbs.System{SysRoot: dir, DevRoot: filepath.Join(dir, "dev")}, OpenNode: k.open, Write: k.write}
}

func (k *fakeKernel) open(string) (int, error) {
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return -1, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	w := os.NewFile(uintptr(p[1]), "events")
	k.channels[p[0]] = &fakeChannel{w: w}
	k.t.Cleanup(func() { w.Close() })
	return p[0], nil
}

// leaks checks that no ID is left.
func (k *fakeKernel) leaks() {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for h, id := range k.ids {
		k.t.Errorf("id %d is left: %+v", h, id)
		delete(k.ids, h)
	}
}

// push queues an event; the connections of before Accept have none.
func (k *fakeKernel) push(id *fakeID, typ EventType, status int32, p *ConnParam, conn *fakeID) {
	if id == nil || id.uid == 0 {
		return
	}
	if s, ok := k.status[typ]; ok {
		status = s
	}
	e := &fakeEvent{id: id, typ: typ, status: status, param: make([]byte, connParamSize), conn: conn}
	if p != nil {
		room := map[EventType]int{ConnectRequest: MaxRequestPrivate, ConnectResponse: MaxAcceptPrivate, Rejected: MaxRejectPrivate}[typ]
		turned := *p
		turned.MaxReads, turned.MaxDestReads = p.MaxDestReads, p.MaxReads
		turned.put(e.param)
		connParamPrivateLen.Put(e.param, uint8(room))
	}
	ch := k.channels[id.ch]
	ch.events = append(ch.events, e)
	ch.w.Write([]byte{1})
}

func (k *fakeKernel) getEvent(fd int, resp []byte) syscall.Errno {
	ch := k.channels[fd]
	if len(ch.events) == 0 {
		return syscall.EAGAIN
	}
	var one [1]byte
	if n, err := syscall.Read(fd, one[:]); n != 1 {
		k.t.Errorf("event without its byte: %v", err)
	}
	e := ch.events[0]
	ch.events = ch.events[1:]
	e.id.reported++
	eventUID.Put(resp, e.id.uid)
	eventID.Put(resp, e.id.handle)
	if e.conn != nil {
		k.add(e.conn, fd)
		eventID.Put(resp, e.conn.handle)
	}
	eventEvent.Put(resp, uint32(e.typ))
	eventStatus.Put(resp, uint32(e.status))
	copy(eventConn.In(resp), e.param)
	return 0
}

func (k *fakeKernel) add(id *fakeID, fd int) {
	k.next++
	id.handle, id.ch = k.next, fd
	k.ids[id.handle] = id
}

// idField says where a command's struct has the ID.
var idField = map[uint32]int{
	ucmaDestroyID: int(destroyIDID), ucmaBindIP: int(bindIPID), ucmaResolveIP: int(resolveIPID), ucmaResolveRoute: int(resolveRouteID),
	ucmaQueryRoute: int(queryID), ucmaConnect: int(connectID), ucmaListen: int(listenID), ucmaAccept: int(acceptID),
	ucmaReject: int(rejectID), ucmaDisconnect: int(disconnectID), ucmaInitQPAttr: int(initQPAttrID), ucmaSetOption: int(setOptionID),
}

func (k *fakeKernel) write(fd int, cmd, resp []byte) syscall.Errno {
	k.mu.Lock()
	defer k.mu.Unlock()
	code, b := hdrCmd.Get(cmd), cmd[hdrSize:]
	if int(hdrIn.Get(cmd)) != len(b) || int(hdrOut.Get(cmd)) != len(resp) {
		k.t.Errorf("command %d: header says %d and %d bytes, there are %d and %d", code, hdrIn.Get(cmd), hdrOut.Get(cmd), len(b), len(resp))
	}
	k.sizes[code] = [2]int{len(b), len(resp)}
	if len(resp) > 0 {
		at := map[uint32]int{ucmaCreateID: 8}[code]
		if got := binary.NativeEndian.Uint64(b[at:]); got != mr.Addr(resp) {
			k.t.Errorf("command %d: the response goes to %#x, not %#x", code, got, mr.Addr(resp))
		}
	}
	if code == ucmaGetEvent {
		return k.getEvent(fd, resp)
	}
	k.calls = append(k.calls, code)
	if k.fail != nil {
		if errno := k.fail(len(k.calls)-1, code); errno != 0 {
			return errno
		}
	}
	if code == ucmaCreateID {
		id := &fakeID{uid: createIDUID.Get(b)}
		k.add(id, fd)
		createIDRespID.Put(resp, id.handle)
		return 0
	}
	id := k.ids[binary.NativeEndian.Uint32(b[idField[code]:])]
	if id == nil || id.ch != fd {
		return syscall.ENOENT
	}
	return k.command(id, code, b, resp)
}

// command makes a command of an ID.
func (k *fakeKernel) command(id *fakeID, code uint32, b, resp []byte) syscall.Errno {
	if k.silent[code] {
		return 0
	}
	switch code {
	case ucmaDestroyID:
		return k.destroy(id, resp)
	case ucmaBindIP:
		id.local = getAddr(bindIPAddr.In(b)[:sockaddrSize])
		for _, other := range k.ids {
			if other != id && other.local == id.local {
				return syscall.EADDRINUSE
			}
		}
		if id.local.Port() == 0 {
			id.local = netip.AddrPortFrom(id.local.Addr(), 40000)
		}
	case ucmaListen:
		id.listens = true
	case ucmaResolveIP:
		id.remote = getAddr(resolveIPDst.In(b)[:sockaddrSize])
		id.local = netip.MustParseAddrPort("10.9.0.1:50000")
		k.push(id, AddrResolved, 0, nil, nil)
	case ucmaResolveRoute:
		k.push(id, RouteResolved, 0, nil, nil)
	case ucmaQueryRoute:
		putAddr(routeSrc.In(resp), id.local)
		putAddr(routeDst.In(resp), id.remote)
		routeNodeGUID.Put(resp, fakeGUID)
		if id.remote.IsValid() {
			routePort.Put(resp, 1)
		}
	case ucmaInitQPAttr:
		k.attr(id, qp.State(initQPAttrState.Get(b)), resp)
	case ucmaConnect:
		k.connect(id, decodeParam(connectParam.In(b)))
	case ucmaAccept:
		if connParamValid.Get(acceptParam.In(b)) == 0 {
			k.push(id.peer, Established, 0, nil, nil)
			break
		}
		if id.peer == nil {
			return syscall.EINVAL
		}
		id.uid, id.param = acceptUID.Get(b), decodeParam(acceptParam.In(b))
		k.push(id.peer, ConnectResponse, 0, &id.param, nil)
	case ucmaReject:
		private := rejectPrivate.In(b)[:rejectPrivateLen.Get(b)]
		k.push(id.peer, Rejected, int32(ReasonConsumer), &ConnParam{Private: private}, nil)
		k.part(id)
	case ucmaSetOption:
		if setOptionLevel.Get(b) != optionID || int(setOptionLength.Get(b)) > len(resp) {
			return syscall.EINVAL
		}
		switch name, n := setOptionName.Get(b), setOptionLength.Get(b); {
		case name == idTOS && n == 1:
			k.tos = append([]byte(nil), resp[:n]...)
		case name == idAfonly && n == 4 && id.local.IsValid():
			return syscall.EINVAL // too late
		case name != idAfonly || n != 4:
			return syscall.ENOSYS
		}
	case ucmaDisconnect:
		k.push(id.peer, Disconnected, 0, nil, nil)
	default:
		return syscall.ENOSYS
	}
	return 0
}
