//go:build linux

package uverbs

import (
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/verbs"
)

// Context is an opened device: one descriptor of its node. Its methods may be
// called from any goroutine unless they say otherwise.
type Context struct {
	sys     *System
	dev     Device
	driver  DriverID
	fd      int
	pages   pages
	vectors int
	core    uint64 // what the kernel's core announced

	async    *eventFile
	asyncFD  int
	asyncBuf [asyncEventSize]byte

	// old: the kernel lacks some native method; use the write command.
	old sync.Map // *method

	mu     sync.RWMutex // held for reading by requests: Close waits for them
	closed atomic.Bool
}

// Open opens the device and makes the context. The driver's part, if it has one,
// is in uhw.
func (s *System) Open(d Device, uhw *UHW) (*Context, error) {
	if d.Err != nil {
		return nil, d.Err
	}
	fd, err := s.openNode(d)
	if err != nil {
		return nil, err
	}
	c := &Context{sys: s, dev: d, driver: d.Driver, fd: fd, asyncFD: -1}
	if err := c.start(uhw); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Context) start(uhw *UHW) error {
	err := c.getContext(uhw)
	if isMissing(err) {
		err = c.getContextByWrite(uhw)
	}
	if err != nil {
		return err
	}
	if c.async, err = newEventFile(c.asyncFD, c.dev.Name, c.dev.Name+" events"); err != nil {
		c.asyncFD = -1 // closed
		return c.fail(mAsyncAlloc, c.dev.Path, err)
	}
	return nil
}

// getContext also opens the async event file: objects made before it exists would
// lose their events.
func (c *Context) getContext(uhw *UHW) error {
	r, err := c.begin(mGetContext, 16+uhw.room())
	if err != nil {
		return err
	}
	defer r.release()
	vectors := r.out(attrNumCompVectors, 4)
	core := r.out(attrCoreSupport, 8)
	reply := r.uhw(uhw)
	if errno := r.do(); errno != 0 {
		return c.fail(r.m, c.dev.Path, errno)
	}
	uhw.reply(reply)
	c.vectors, c.core = int(u32(vectors)), u64(core)

	a, err := c.begin(mAsyncAlloc, 0)
	if err != nil {
		return err
	}
	defer a.release()
	fd := a.result(attrAsyncFD, kindNewFD)
	if errno := a.do(); errno != 0 {
		return c.fail(a.m, c.dev.Path, errno)
	}
	c.asyncFD = int(int32(attrData.Get(fd)))
	return nil
}

func (c *Context) getContextByWrite(uhw *UHW) error {
	r, err := c.begin(wGetContext, getContextRespSize+uhw.room())
	if err != nil {
		return err
	}
	defer r.release()
	r.in(attrCoreIn, getContextSize)
	out := r.out(attrCoreOut, getContextRespSize)
	reply := r.uhw(uhw)
	if errno := r.do(); errno != 0 {
		return c.fail(r.m, c.dev.Path, errno)
	}
	uhw.reply(reply)
	c.vectors = int(getContextRespNumCompVectors.Get(out))
	c.asyncFD = int(int32(getContextRespAsyncFD.Get(out)))
	return nil
}

// Device is the device as it was found.
func (c *Context) Device() Device { return c.dev }

// FD is the command descriptor, for mapping what the driver hands out. It is the
// context's: do not close it.
func (c *Context) FD() int { return c.fd }

// ioctl makes the request in a command page, again if a signal interrupted it.
func (c *Context) ioctl(page []byte) syscall.Errno {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed.Load() {
		return unix.EBADF
	}
	for {
		if errno := c.sys.ioctl(c.fd, page); errno != unix.EINTR {
			return errno
		}
	}
}

// writeCommand makes the request by writing a command, which is memory from mmap. rxe
// does not sleep over it: newer kernels leave the work to another thread, older ones do
// it here until its window is full. siw sends on a TCP socket before it returns.
func (c *Context) writeCommand(command []byte) syscall.Errno {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed.Load() {
		return unix.EBADF
	}
	for {
		if errno := writeCommand(c.fd, command, c.driver == DriverRXE); errno != unix.EINTR {
			return errno
		}
	}
}

// withFallback makes a request by the native method, and on a kernel without it by
// the write command, from then on at once.
func (c *Context) withFallback(m *method, byMethod, byWrite func() error) error {
	if _, old := c.old.Load(m); old {
		return byWrite()
	}
	err := byMethod()
	if isMissing(err) {
		c.old.Store(m, true)
		return byWrite()
	}
	return err
}

// Close closes the descriptors. Whatever objects the kernel still has for the
// context it destroys.
func (c *Context) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Swap(true) {
		return verbs.ErrClosed
	}
	if c.async != nil {
		c.async.close()
	} else if c.asyncFD >= 0 {
		unix.Close(c.asyncFD)
	}
	c.pages.close()
	return c.sys.close(c.fd)
}
