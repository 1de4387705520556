package uverbs

// attrKind says how an attribute's 8 data bytes and its length are used. The kind
// of each attribute is fixed by the kernel's definition of the method.
type attrKind uint8

const (
	kindIn        attrKind = iota // bytes to the kernel: in place up to 8, else by address
	kindConst                     // a 64-bit number, length 8
	kindFlags                     // a 32-bit set of flags, length 4
	kindOut                       // bytes from the kernel, always by address
	kindHandle                    // an object's handle, length 0
	kindNewHandle                 // the kernel writes the new object's handle back
	kindFD                        // a file descriptor, length 0
	kindNewFD                     // the kernel writes a new descriptor back
)

// attrSpec describes one attribute of a method.
type attrSpec struct {
	id   uint16
	name string
	kind attrKind
	size int  // bytes of kindIn and kindOut; 0: any
	must bool // the kernel refuses the method without it
	soft bool // a kernel that does not know it may ignore it
}

// method describes one request: its number and attributes. It is the one place
// that says so: the request builder, Decode and the tests read it.
type method struct {
	op     string // for errors: "create queue pair"
	object uint16
	id     uint16
	cmd    uint32              // of INVOKE_WRITE
	since  string              // first kernel release with it
	pins   bool                // it may pin user memory: ENOMEM is often RLIMIT_MEMLOCK
	driver map[DriverID]string // first release whose driver has it, where that is later and known
	attrs  []attrSpec
}

// driverData are the attributes by which every method carries driver-private bytes.
var driverData = []attrSpec{
	{id: attrUHWIn, name: "UHW_IN", kind: kindIn},
	{id: attrUHWOut, name: "UHW_OUT", kind: kindOut},
}

func native(op string, object, id uint16, since string, attrs ...attrSpec) *method {
	return &method{op: op, object: object, id: id, since: since, attrs: append(attrs, driverData...)}
}

// write describes a command of the older ABI carried by INVOKE_WRITE; in and out
// are the sizes of its structs without the old header.
func write(op string, cmd uint32, in, out int) *method {
	m := native(op, objDevice, methInvokeWrite, "kernel 5.0", attrSpec{id: attrWriteCmd, name: "WRITE_CMD", kind: kindConst, must: true})
	m.cmd = cmd
	if in > 0 {
		m.attrs = append(m.attrs, attrSpec{id: attrCoreIn, name: "CORE_IN", kind: kindIn, size: in, must: true})
	}
	if out > 0 {
		m.attrs = append(m.attrs, attrSpec{id: attrCoreOut, name: "CORE_OUT", kind: kindOut, size: out, must: true})
	}
	return m
}

func pinning(m *method) *method {
	m.pins = true
	return m
}

// since says in which release a driver got the request, if later than the kernel.
func since(m *method, d DriverID, release string) *method {
	m.driver = map[DriverID]string{d: release}
	return m
}

// Requests with a native method. The release is the first with the method.
var (
	mGetContext = native("open context", objDevice, methGetContext, "kernel 5.6",
		attrSpec{id: attrNumCompVectors, name: "NUM_COMP_VECTORS", kind: kindOut, size: 4},
		attrSpec{id: attrCoreSupport, name: "CORE_SUPPORT", kind: kindOut, size: 8})
	mAsyncAlloc = native("open async event file", objAsyncEvent, methAsyncEventAlloc, "kernel 5.6",
		attrSpec{id: attrAsyncFD, name: "FD_HANDLE", kind: kindNewFD, must: true})
	mQueryPort = native("query port", objDevice, methQueryPort, "kernel 5.0",
		attrSpec{id: attrPortNum, name: "PORT_NUM", kind: kindConst, must: true},
		attrSpec{id: attrPortResp, name: "RESP", kind: kindOut, size: portRespSize, must: true})
	mQueryGIDTable = native("query GID table", objDevice, methQueryGIDTable, "kernel 5.10",
		attrSpec{id: attrGIDEntrySize, name: "ENTRY_SIZE", kind: kindConst, must: true},
		attrSpec{id: attrGIDFlags, name: "FLAGS", kind: kindFlags},
		attrSpec{id: attrGIDEntries, name: "RESP_ENTRIES", kind: kindOut, must: true},
		attrSpec{id: attrGIDNumEntries, name: "RESP_NUM_ENTRIES", kind: kindOut, size: 8, must: true})
	mPDDestroy = native("deallocate protection domain", objPD, methPDDestroy, "kernel 5.0",
		attrSpec{id: attrPDHandle, name: "HANDLE", kind: kindHandle, must: true})
	mMRDestroy = native("deregister memory region", objMR, methMRDestroy, "kernel 5.0",
		attrSpec{id: attrMRHandle, name: "HANDLE", kind: kindHandle, must: true})
	mAdviseMR = since(native("advise on memory region", objMR, methAdviseMR, "kernel 5.0",
		attrSpec{id: attrAdvisePD, name: "PD_HANDLE", kind: kindHandle, must: true},
		attrSpec{id: attrAdviseAdvice, name: "ADVICE", kind: kindConst, must: true},
		attrSpec{id: attrAdviseFlags, name: "FLAGS", kind: kindFlags, must: true},
		attrSpec{id: attrAdviseSGEs, name: "SGE_LIST", kind: kindIn, must: true}), DriverRXE, "kernel 6.15")
	mRegDMABufMR = pinning(native("register dmabuf memory region", objMR, methRegDMABufMR, "kernel 5.12",
		attrSpec{id: attrDMABufHandle, name: "HANDLE", kind: kindNewHandle, must: true},
		attrSpec{id: attrDMABufPD, name: "PD_HANDLE", kind: kindHandle, must: true},
		attrSpec{id: attrDMABufOffset, name: "OFFSET", kind: kindIn, size: 8, must: true},
		attrSpec{id: attrDMABufLength, name: "LENGTH", kind: kindIn, size: 8, must: true},
		attrSpec{id: attrDMABufIOVA, name: "IOVA", kind: kindIn, size: 8, must: true},
		attrSpec{id: attrDMABufFD, name: "FD", kind: kindIn, size: 4, must: true},
		attrSpec{id: attrDMABufAccess, name: "ACCESS_FLAGS", kind: kindFlags, must: true},
		attrSpec{id: attrDMABufRespLkey, name: "RESP_LKEY", kind: kindOut, size: 4, must: true},
		attrSpec{id: attrDMABufRespRkey, name: "RESP_RKEY", kind: kindOut, size: 4, must: true}))
	mMWDestroy = native("free memory window", objMW, methMWDestroy, "kernel 5.0",
		attrSpec{id: attrMWHandle, name: "HANDLE", kind: kindHandle, must: true})
	mCQCreate = pinning(native("create completion queue", objCQ, methCQCreate, "kernel 5.8",
		attrSpec{id: attrCQHandle, name: "HANDLE", kind: kindNewHandle, must: true},
		attrSpec{id: attrCQCQE, name: "CQE", kind: kindIn, size: 4, must: true},
		attrSpec{id: attrCQUserHandle, name: "USER_HANDLE", kind: kindIn, size: 8, must: true},
		attrSpec{id: attrCQCompChannel, name: "COMP_CHANNEL", kind: kindFD},
		attrSpec{id: attrCQCompVector, name: "COMP_VECTOR", kind: kindIn, size: 4, must: true},
		attrSpec{id: attrCQFlags, name: "FLAGS", kind: kindFlags},
		attrSpec{id: attrCQRespCQE, name: "RESP_CQE", kind: kindOut, size: 4, must: true},
		attrSpec{id: attrCQEventFD, name: "EVENT_FD", kind: kindFD, soft: true}))
	mCQDestroy = native("destroy completion queue", objCQ, methCQDestroy, "kernel 5.8",
		attrSpec{id: attrCQDestroyHandle, name: "HANDLE", kind: kindHandle, must: true},
		attrSpec{id: attrCQDestroyResp, name: "RESP", kind: kindOut, size: destroyCQRespSize, must: true})
	mQPCreate = pinning(native("create queue pair", objQP, methQPCreate, "kernel 5.8",
		attrSpec{id: attrQPHandle, name: "HANDLE", kind: kindNewHandle, must: true},
		attrSpec{id: attrQPPDHandle, name: "PD_HANDLE", kind: kindHandle},
		attrSpec{id: attrQPSRQHandle, name: "SRQ_HANDLE", kind: kindHandle},
		attrSpec{id: attrQPSendCQHandle, name: "SEND_CQ_HANDLE", kind: kindHandle},
		attrSpec{id: attrQPRecvCQHandle, name: "RECV_CQ_HANDLE", kind: kindHandle},
		attrSpec{id: attrQPUserHandle, name: "USER_HANDLE", kind: kindIn, size: 8, must: true},
		attrSpec{id: attrQPCap, name: "CAP", kind: kindIn, size: qpCapSize, must: true},
		attrSpec{id: attrQPType, name: "TYPE", kind: kindConst, must: true},
		attrSpec{id: attrQPFlags, name: "FLAGS", kind: kindFlags},
		attrSpec{id: attrQPEventFD, name: "EVENT_FD", kind: kindFD},
		attrSpec{id: attrQPRespCap, name: "RESP_CAP", kind: kindOut, size: qpCapSize, must: true},
		attrSpec{id: attrQPRespQPNum, name: "RESP_QP_NUM", kind: kindOut, size: 4, must: true}))
	mQPDestroy = native("destroy queue pair", objQP, methQPDestroy, "kernel 5.8",
		attrSpec{id: attrQPDestroyHandle, name: "HANDLE", kind: kindHandle, must: true},
		attrSpec{id: attrQPDestroyResp, name: "RESP", kind: kindOut, size: destroyQPRespSize, must: true})
	mSRQCreate = pinning(native("create shared receive queue", objSRQ, methSRQCreate, "kernel 5.8",
		attrSpec{id: attrSRQHandle, name: "HANDLE", kind: kindNewHandle, must: true},
		attrSpec{id: attrSRQPDHandle, name: "PD_HANDLE", kind: kindHandle, must: true},
		attrSpec{id: attrSRQUserHandle, name: "USER_HANDLE", kind: kindIn, size: 8, must: true},
		attrSpec{id: attrSRQMaxWR, name: "MAX_WR", kind: kindIn, size: 4, must: true},
		attrSpec{id: attrSRQMaxSGE, name: "MAX_SGE", kind: kindIn, size: 4, must: true},
		attrSpec{id: attrSRQLimit, name: "LIMIT", kind: kindIn, size: 4, must: true},
		attrSpec{id: attrSRQType, name: "TYPE", kind: kindConst, must: true},
		attrSpec{id: attrSRQEventFD, name: "EVENT_FD", kind: kindFD},
		attrSpec{id: attrSRQRespMaxWR, name: "RESP_MAX_WR", kind: kindOut, size: 4, must: true},
		attrSpec{id: attrSRQRespMaxSGE, name: "RESP_MAX_SGE", kind: kindOut, size: 4, must: true}))
	mSRQDestroy = native("destroy shared receive queue", objSRQ, methSRQDestroy, "kernel 5.8",
		attrSpec{id: attrSRQDestroyHandle, name: "HANDLE", kind: kindHandle, must: true},
		attrSpec{id: attrSRQDestroyResp, name: "RESP", kind: kindOut, size: destroySRQRespSize, must: true})
)

// Requests about objects that one driver has. Their attributes take the place of
// the driver-private bytes.
var (
	mMLX5UARAlloc = &method{op: "allocate UAR", object: objMLX5UAR, id: methMLX5UARAlloc, since: "kernel 5.7", attrs: []attrSpec{
		{id: attrMLX5UARHandle, name: "HANDLE", kind: kindNewHandle, must: true},
		{id: attrMLX5UARType, name: "TYPE", kind: kindConst, must: true},
		{id: attrMLX5UARMmapOffset, name: "MMAP_OFFSET", kind: kindOut, size: 8, must: true},
		{id: attrMLX5UARMmapLength, name: "MMAP_LENGTH", kind: kindOut, size: 4, must: true},
		{id: attrMLX5UARPageID, name: "PAGE_ID", kind: kindOut, size: 4, must: true}}}
	mMLX5UARDestroy = &method{op: "destroy UAR", object: objMLX5UAR, id: methMLX5UARDestroy, since: "kernel 5.7", attrs: []attrSpec{
		{id: attrMLX5UARDestroyHandle, name: "HANDLE", kind: kindHandle, must: true}}}
)

// Requests by the older command: those without a native method, and the
// fall-backs (named w...) for kernels whose native method is missing.
var (
	wGetContext        = write("open context", cmdGetContext, getContextSize, getContextRespSize)
	wCreateCQ          = pinning(write("create completion queue", cmdCreateCQ, createCQSize, createCQRespSize))
	wDestroyCQ         = write("destroy completion queue", cmdDestroyCQ, destroyCQSize, destroyCQRespSize)
	wCreateQP          = pinning(write("create queue pair", cmdCreateQP, createQPSize, createQPRespSize))
	wDestroyQP         = write("destroy queue pair", cmdDestroyQP, destroyQPSize, destroyQPRespSize)
	wCreateSRQ         = pinning(write("create shared receive queue", cmdCreateSRQ, createSRQSize, createSRQRespSize))
	wDestroySRQ        = write("destroy shared receive queue", cmdDestroySRQ, destroySRQSize, destroySRQRespSize)
	mQueryDevice       = write("query device", cmdQueryDevice|cmdExtended, queryDeviceSize, queryDeviceRespSize)
	mAllocPD           = write("allocate protection domain", cmdAllocPD, allocPDSize, allocPDRespSize)
	mRegMR             = pinning(write("register memory region", cmdRegMR, regMRSize, regMRRespSize))
	mReregMR           = since(pinning(write("change memory region", cmdReregMR, reregMRSize, reregMRRespSize)), DriverRXE, "kernel 6.5")
	mAllocMW           = since(write("allocate memory window", cmdAllocMW, allocMWSize, allocMWRespSize), DriverRXE, "kernel 5.14")
	mCreateCompChannel = write("create completion channel", cmdCreateCompChannel, createCompChannelSize, createCompChannelRespSize)
	mReqNotifyCQ       = write("arm completion queue", cmdReqNotifyCQ, reqNotifyCQSize, 0)
	mResizeCQ          = pinning(write("resize completion queue", cmdResizeCQ, resizeCQSize, resizeCQRespSize))
	mModifySRQ         = write("arm shared receive queue", cmdModifySRQ, modifySRQSize, 0)
	mQuerySRQ          = write("query shared receive queue", cmdQuerySRQ, querySRQSize, querySRQRespSize)
	mModifyQP          = write("modify queue pair", cmdModifyQP, modifyQPSize, 0)
	mQueryQP           = write("query queue pair", cmdQueryQP, queryQPSize, queryQPRespSize)
	mPostSend          = write("ring send queue", cmdPostSend, postSendSize, postSendRespSize)
)

// methods is every request that this package makes.
var methods = []*method{
	mGetContext, mAsyncAlloc, mQueryPort, mQueryGIDTable, mPDDestroy, mMRDestroy, mCQCreate, mCQDestroy, mQPCreate, mQPDestroy,
	wGetContext, wCreateCQ, wDestroyCQ, wCreateQP, wDestroyQP,
	mAdviseMR, mRegDMABufMR, mMWDestroy, mReregMR, mAllocMW,
	mQueryDevice, mAllocPD, mRegMR, mCreateCompChannel, mReqNotifyCQ, mModifyQP, mQueryQP, mPostSend,
	mSRQCreate, mSRQDestroy, wCreateSRQ, wDestroySRQ, mModifySRQ, mQuerySRQ, mResizeCQ,
	mMLX5UARAlloc, mMLX5UARDestroy,
}

// attr finds an attribute of the method.
func (m *method) attr(id uint16) *attrSpec {
	for i := range m.attrs {
		if m.attrs[i].id == id {
			return &m.attrs[i]
		}
	}
	return nil
}
