package uverbs

// Numbers of the kernel's ABI. TestABI checks each line against what a C compiler
// makes of the kernel's headers.

// The ioctl and its framing (rdma/rdma_user_ioctl_cmds.h).
const (
	ioctlRequest    = 0xc0181b01 // RDMA_VERBS_IOCTL
	flagMandatory   = 1          // UVERBS_ATTR_F_MANDATORY
	flagValidOutput = 2          // UVERBS_ATTR_F_VALID_OUTPUT
)

// Objects (enum uverbs_default_objects).
const (
	objDevice     = 0    // UVERBS_OBJECT_DEVICE
	objPD         = 1    // UVERBS_OBJECT_PD
	objCQ         = 3    // UVERBS_OBJECT_CQ
	objQP         = 4    // UVERBS_OBJECT_QP
	objSRQ        = 5    // UVERBS_OBJECT_SRQ
	objMR         = 7    // UVERBS_OBJECT_MR
	objMW         = 8    // UVERBS_OBJECT_MW
	objAsyncEvent = 16   // UVERBS_OBJECT_ASYNC_EVENT
	objMLX5UAR    = 4104 // MLX5_IB_OBJECT_UAR
)

// Methods (rdma/ib_user_ioctl_cmds.h).
const (
	methInvokeWrite     = 0    // UVERBS_METHOD_INVOKE_WRITE
	methQueryPort       = 2    // UVERBS_METHOD_QUERY_PORT
	methGetContext      = 3    // UVERBS_METHOD_GET_CONTEXT
	methQueryGIDTable   = 5    // UVERBS_METHOD_QUERY_GID_TABLE
	methPDDestroy       = 0    // UVERBS_METHOD_PD_DESTROY
	methCQCreate        = 0    // UVERBS_METHOD_CQ_CREATE
	methCQDestroy       = 1    // UVERBS_METHOD_CQ_DESTROY
	methQPCreate        = 0    // UVERBS_METHOD_QP_CREATE
	methQPDestroy       = 1    // UVERBS_METHOD_QP_DESTROY
	methSRQCreate       = 0    // UVERBS_METHOD_SRQ_CREATE
	methSRQDestroy      = 1    // UVERBS_METHOD_SRQ_DESTROY
	methMRDestroy       = 1    // UVERBS_METHOD_MR_DESTROY
	methAdviseMR        = 2    // UVERBS_METHOD_ADVISE_MR
	methRegDMABufMR     = 4    // UVERBS_METHOD_REG_DMABUF_MR
	methMWDestroy       = 0    // UVERBS_METHOD_MW_DESTROY
	methAsyncEventAlloc = 0    // UVERBS_METHOD_ASYNC_EVENT_ALLOC
	methMLX5UARAlloc    = 4096 // MLX5_IB_METHOD_UAR_OBJ_ALLOC
	methMLX5UARDestroy  = 4097 // MLX5_IB_METHOD_UAR_OBJ_DESTROY
)

// Attributes (rdma/ib_user_ioctl_cmds.h).
const (
	attrUHWIn           = 0x1000 // UVERBS_ATTR_UHW_IN
	attrUHWOut          = 0x1001 // UVERBS_ATTR_UHW_OUT
	attrCoreIn          = 0      // UVERBS_ATTR_CORE_IN
	attrCoreOut         = 1      // UVERBS_ATTR_CORE_OUT
	attrWriteCmd        = 2      // UVERBS_ATTR_WRITE_CMD
	attrPortNum         = 0      // UVERBS_ATTR_QUERY_PORT_PORT_NUM
	attrPortResp        = 1      // UVERBS_ATTR_QUERY_PORT_RESP
	attrNumCompVectors  = 0      // UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS
	attrCoreSupport     = 1      // UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT
	attrGIDEntrySize    = 0      // UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE
	attrGIDFlags        = 1      // UVERBS_ATTR_QUERY_GID_TABLE_FLAGS
	attrGIDEntries      = 2      // UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES
	attrGIDNumEntries   = 3      // UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES
	attrAsyncFD         = 0      // UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE
	attrPDHandle        = 0      // UVERBS_ATTR_DESTROY_PD_HANDLE
	attrMRHandle        = 0      // UVERBS_ATTR_DESTROY_MR_HANDLE
	attrMWHandle        = 0      // UVERBS_ATTR_DESTROY_MW_HANDLE
	attrAdvisePD        = 0      // UVERBS_ATTR_ADVISE_MR_PD_HANDLE
	attrAdviseAdvice    = 1      // UVERBS_ATTR_ADVISE_MR_ADVICE
	attrAdviseFlags     = 2      // UVERBS_ATTR_ADVISE_MR_FLAGS
	attrAdviseSGEs      = 3      // UVERBS_ATTR_ADVISE_MR_SGE_LIST
	attrDMABufHandle    = 0      // UVERBS_ATTR_REG_DMABUF_MR_HANDLE
	attrDMABufPD        = 1      // UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE
	attrDMABufOffset    = 2      // UVERBS_ATTR_REG_DMABUF_MR_OFFSET
	attrDMABufLength    = 3      // UVERBS_ATTR_REG_DMABUF_MR_LENGTH
	attrDMABufIOVA      = 4      // UVERBS_ATTR_REG_DMABUF_MR_IOVA
	attrDMABufFD        = 5      // UVERBS_ATTR_REG_DMABUF_MR_FD
	attrDMABufAccess    = 6      // UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS
	attrDMABufRespLkey  = 7      // UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY
	attrDMABufRespRkey  = 8      // UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY
	attrCQHandle        = 0      // UVERBS_ATTR_CREATE_CQ_HANDLE
	attrCQCQE           = 1      // UVERBS_ATTR_CREATE_CQ_CQE
	attrCQUserHandle    = 2      // UVERBS_ATTR_CREATE_CQ_USER_HANDLE
	attrCQCompChannel   = 3      // UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL
	attrCQCompVector    = 4      // UVERBS_ATTR_CREATE_CQ_COMP_VECTOR
	attrCQFlags         = 5      // UVERBS_ATTR_CREATE_CQ_FLAGS
	attrCQRespCQE       = 6      // UVERBS_ATTR_CREATE_CQ_RESP_CQE
	attrCQEventFD       = 7      // UVERBS_ATTR_CREATE_CQ_EVENT_FD
	attrCQDestroyHandle = 0      // UVERBS_ATTR_DESTROY_CQ_HANDLE
	attrCQDestroyResp   = 1      // UVERBS_ATTR_DESTROY_CQ_RESP
	attrQPHandle        = 0      // UVERBS_ATTR_CREATE_QP_HANDLE
	attrQPPDHandle      = 2      // UVERBS_ATTR_CREATE_QP_PD_HANDLE
	attrQPSRQHandle     = 3      // UVERBS_ATTR_CREATE_QP_SRQ_HANDLE
	attrQPSendCQHandle  = 4      // UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE
	attrQPRecvCQHandle  = 5      // UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE
	attrQPUserHandle    = 7      // UVERBS_ATTR_CREATE_QP_USER_HANDLE
	attrQPCap           = 8      // UVERBS_ATTR_CREATE_QP_CAP
	attrQPType          = 9      // UVERBS_ATTR_CREATE_QP_TYPE
	attrQPFlags         = 10     // UVERBS_ATTR_CREATE_QP_FLAGS
	attrQPEventFD       = 12     // UVERBS_ATTR_CREATE_QP_EVENT_FD
	attrQPRespCap       = 13     // UVERBS_ATTR_CREATE_QP_RESP_CAP
	attrQPRespQPNum     = 14     // UVERBS_ATTR_CREATE_QP_RESP_QP_NUM
	attrQPDestroyHandle = 0      // UVERBS_ATTR_DESTROY_QP_HANDLE
	attrQPDestroyResp   = 1      // UVERBS_ATTR_DESTROY_QP_RESP

	attrSRQHandle        = 0  // UVERBS_ATTR_CREATE_SRQ_HANDLE
	attrSRQPDHandle      = 1  // UVERBS_ATTR_CREATE_SRQ_PD_HANDLE
	attrSRQUserHandle    = 4  // UVERBS_ATTR_CREATE_SRQ_USER_HANDLE
	attrSRQMaxWR         = 5  // UVERBS_ATTR_CREATE_SRQ_MAX_WR
	attrSRQMaxSGE        = 6  // UVERBS_ATTR_CREATE_SRQ_MAX_SGE
	attrSRQLimit         = 7  // UVERBS_ATTR_CREATE_SRQ_LIMIT
	attrSRQType          = 9  // UVERBS_ATTR_CREATE_SRQ_TYPE
	attrSRQEventFD       = 10 // UVERBS_ATTR_CREATE_SRQ_EVENT_FD
	attrSRQRespMaxWR     = 11 // UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR
	attrSRQRespMaxSGE    = 12 // UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE
	attrSRQDestroyHandle = 0  // UVERBS_ATTR_DESTROY_SRQ_HANDLE
	attrSRQDestroyResp   = 1  // UVERBS_ATTR_DESTROY_SRQ_RESP

	attrMLX5UARHandle        = 4096 // MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE
	attrMLX5UARType          = 4097 // MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE
	attrMLX5UARMmapOffset    = 4098 // MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET
	attrMLX5UARMmapLength    = 4099 // MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH
	attrMLX5UARPageID        = 4100 // MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID
	attrMLX5UARDestroyHandle = 4096 // MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE
)

// Commands of the older write ABI, carried by INVOKE_WRITE (rdma/ib_user_verbs.h).
const (
	cmdGetContext        = 0          // IB_USER_VERBS_CMD_GET_CONTEXT
	cmdQueryDevice       = 1          // IB_USER_VERBS_CMD_QUERY_DEVICE
	cmdAllocPD           = 3          // IB_USER_VERBS_CMD_ALLOC_PD
	cmdRegMR             = 9          // IB_USER_VERBS_CMD_REG_MR
	cmdReregMR           = 11         // IB_USER_VERBS_CMD_REREG_MR
	cmdAllocMW           = 14         // IB_USER_VERBS_CMD_ALLOC_MW
	cmdCreateCompChannel = 17         // IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL
	cmdCreateCQ          = 18         // IB_USER_VERBS_CMD_CREATE_CQ
	cmdResizeCQ          = 19         // IB_USER_VERBS_CMD_RESIZE_CQ
	cmdDestroyCQ         = 20         // IB_USER_VERBS_CMD_DESTROY_CQ
	cmdReqNotifyCQ       = 23         // IB_USER_VERBS_CMD_REQ_NOTIFY_CQ
	cmdCreateQP          = 24         // IB_USER_VERBS_CMD_CREATE_QP
	cmdQueryQP           = 25         // IB_USER_VERBS_CMD_QUERY_QP
	cmdModifyQP          = 26         // IB_USER_VERBS_CMD_MODIFY_QP
	cmdDestroyQP         = 27         // IB_USER_VERBS_CMD_DESTROY_QP
	cmdPostSend          = 28         // IB_USER_VERBS_CMD_POST_SEND
	cmdCreateSRQ         = 32         // IB_USER_VERBS_CMD_CREATE_SRQ
	cmdModifySRQ         = 33         // IB_USER_VERBS_CMD_MODIFY_SRQ
	cmdQuerySRQ          = 34         // IB_USER_VERBS_CMD_QUERY_SRQ
	cmdDestroySRQ        = 35         // IB_USER_VERBS_CMD_DESTROY_SRQ
	cmdExtended          = 0x80000000 // IB_USER_VERBS_CMD_FLAG_EXTENDED
)

// Values inside the requests.
const (
	abiVersion           = 6      // IB_USER_VERBS_ABI_VERSION
	qpTypeRC             = 2      // IB_UVERBS_QPT_RC
	srqTypeBasic         = 0      // IB_UVERBS_SRQT_BASIC
	srqMaskLimit         = 2      // IBV_SRQ_LIMIT
	qpCreateSigAll       = 0x1000 // IB_UVERBS_QP_CREATE_SQ_SIG_ALL
	coreOptionalMRAccess = 1      // IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS
	reregTranslation     = 1      // IBV_REREG_MR_CHANGE_TRANSLATION
	reregAccess          = 4      // IBV_REREG_MR_CHANGE_ACCESS
	mwType2              = 2      // IBV_MW_TYPE_2
	adviseFlush          = 1      // IB_UVERBS_ADVISE_MR_FLAG_FLUSH
	mlx5UARBlueFlame     = 0      // MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF
	mlx5UARNonCached     = 1      // MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC
)

// What a device can do with on-demand paging (rdma/ib_user_verbs.h).
const (
	odpSupport         = 1 // IB_UVERBS_ODP_SUPPORT
	odpSupportImplicit = 2 // IB_UVERBS_ODP_SUPPORT_IMPLICIT
)

// RDMA netlink (rdma/rdma_netlink.h).
const (
	netlinkRDMA       = 20 // NETLINK_RDMA
	nlClientNLDev     = 5  // RDMA_NL_NLDEV
	nlGet             = 1  // RDMA_NLDEV_CMD_GET
	nlSysGet          = 6  // RDMA_NLDEV_CMD_SYS_GET
	nlGetChardev      = 15 // RDMA_NLDEV_CMD_GET_CHARDEV
	nlAttrDevIndex    = 1  // RDMA_NLDEV_ATTR_DEV_INDEX
	nlAttrDevName     = 2  // RDMA_NLDEV_ATTR_DEV_NAME
	nlAttrPortIndex   = 3  // RDMA_NLDEV_ATTR_PORT_INDEX
	nlAttrNodeGUID    = 6  // RDMA_NLDEV_ATTR_NODE_GUID
	nlAttrNodeType    = 14 // RDMA_NLDEV_ATTR_DEV_NODE_TYPE
	nlAttrNetNSMode   = 66 // RDMA_NLDEV_SYS_ATTR_NETNS_MODE
	nlAttrChardevType = 69 // RDMA_NLDEV_ATTR_CHARDEV_TYPE
	nlAttrChardevName = 70 // RDMA_NLDEV_ATTR_CHARDEV_NAME
	nlAttrChardevABI  = 71 // RDMA_NLDEV_ATTR_CHARDEV_ABI
	nlAttrChardev     = 72 // RDMA_NLDEV_ATTR_CHARDEV
	nlAttrDriverID    = 73 // RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID
)

// DriverID says which kernel driver a device has (enum rdma_driver_id). Every
// request carries it.
type DriverID uint32

// The drivers (rdma/rdma_user_ioctl_cmds.h).
const (
	DriverUnknown DriverID = 0  // RDMA_DRIVER_UNKNOWN
	DriverMLX5    DriverID = 1  // RDMA_DRIVER_MLX5
	DriverMLX4    DriverID = 2  // RDMA_DRIVER_MLX4
	DriverCXGB4   DriverID = 4  // RDMA_DRIVER_CXGB4
	DriverBNXTRE  DriverID = 6  // RDMA_DRIVER_BNXT_RE
	DriverIRDMA   DriverID = 9  // RDMA_DRIVER_IRDMA
	DriverPVRDMA  DriverID = 10 // RDMA_DRIVER_VMW_PVRDMA
	DriverQEDR    DriverID = 11 // RDMA_DRIVER_QEDR
	DriverHNS     DriverID = 12 // RDMA_DRIVER_HNS
	DriverRXE     DriverID = 14 // RDMA_DRIVER_RXE
	DriverHFI1    DriverID = 15 // RDMA_DRIVER_HFI1
	DriverEFA     DriverID = 17 // RDMA_DRIVER_EFA
	DriverSIW     DriverID = 18 // RDMA_DRIVER_SIW
	DriverERDMA   DriverID = 19 // RDMA_DRIVER_ERDMA
	DriverMANA    DriverID = 20 // RDMA_DRIVER_MANA
	DriverIONIC   DriverID = 21 // RDMA_DRIVER_IONIC
)
