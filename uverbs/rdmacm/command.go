package rdmacm

import (
	"runtime"
	"syscall"

	"github.com/byteexpress/byteexpress/internal/abi"
	"github.com/byteexpress/byteexpress/mr"
)

// command is one of the kernel's commands.
type command struct {
	code     uint32
	op       string  // for people
	size     int     // bytes of its struct
	respSize int     // bytes of the response, or of the option's value; 0 for none
	response abi.U64 // field with its address
}

var (
	cmdCreateID     = &command{ucmaCreateID, "create id", createIDSize, createIDRespSize, createIDResponse}
	cmdDestroyID    = &command{ucmaDestroyID, "destroy id", destroyIDSize, destroyIDRespSize, destroyIDResponse}
	cmdBindIP       = &command{code: ucmaBindIP, op: "bind", size: bindIPSize}
	cmdResolveIP    = &command{code: ucmaResolveIP, op: "resolve address", size: resolveIPSize}
	cmdResolveRoute = &command{code: ucmaResolveRoute, op: "resolve route", size: resolveRouteSize}
	cmdQueryRoute   = &command{ucmaQueryRoute, "query route", querySize, routeSize, queryResponse}
	cmdConnect      = &command{code: ucmaConnect, op: "connect", size: int(connectSize)}
	cmdListen       = &command{code: ucmaListen, op: "listen", size: listenSize}
	cmdAccept       = &command{code: ucmaAccept, op: "accept", size: int(acceptSize)}
	cmdEstablish    = &command{code: ucmaAccept, op: "establish", size: int(acceptSize)}
	cmdReject       = &command{code: ucmaReject, op: "reject", size: rejectSize}
	cmdDisconnect   = &command{code: ucmaDisconnect, op: "disconnect", size: disconnectSize}
	cmdInitQPAttr   = &command{ucmaInitQPAttr, "get queue pair attributes", initQPAttrSize, qpAttrSize, initQPAttrResponse}
	cmdSetOption    = &command{ucmaSetOption, "set option", setOptionSize, optionRoom, setOptionValue}
	cmdGetEvent     = &command{ucmaGetEvent, "get event", getEventSize, int(eventSize), getEventResponse}
)

// optionRoom is the size of the longest option.
const optionRoom = 4

// buffer holds a command and its response. It lies on the heap and is pinned while the
// kernel has its address.
type buffer struct {
	cmd  []byte // header and struct
	resp []byte
}

func newBuffer(c *command) *buffer {
	b := &buffer{cmd: make([]byte, hdrSize+c.size), resp: make([]byte, c.respSize)}
	hdrCmd.Put(b.cmd, c.code)
	hdrIn.Put(b.cmd, uint16(c.size))
	hdrOut.Put(b.cmd, uint16(c.respSize))
	return b
}

// arg is the command's struct.
func (b *buffer) arg() []byte { return b.cmd[hdrSize:] }

// do makes the command.
func (b *buffer) do(s *System, c *command, fd int) syscall.Errno {
	if c.respSize > 0 {
		var pin runtime.Pinner
		pin.Pin(&b.resp[0])
		defer pin.Unpin()
		c.response.Put(b.arg(), mr.Addr(b.resp))
	}
	return s.write(fd, b.cmd, b.resp)
}
