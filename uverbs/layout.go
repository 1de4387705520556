package uverbs

import "github.com/byteexpress/byteexpress/internal/abi"

// Layout of the kernel's structs as bytes: the offsets of the fields that this
// package uses, and sizes. TestABI checks each line against what a C compiler
// makes of the kernel's headers.

// struct ib_uverbs_ioctl_hdr (rdma/rdma_user_ioctl_cmds.h).
const (
	hdrSize             = 24 // ib_uverbs_ioctl_hdr
	hdrLength   abi.U16 = 0  // ib_uverbs_ioctl_hdr.length
	hdrObjectID abi.U16 = 2  // ib_uverbs_ioctl_hdr.object_id
	hdrMethodID abi.U16 = 4  // ib_uverbs_ioctl_hdr.method_id
	hdrNumAttrs abi.U16 = 6  // ib_uverbs_ioctl_hdr.num_attrs
	hdrDriverID abi.U32 = 16 // ib_uverbs_ioctl_hdr.driver_id
)

// struct ib_uverbs_attr (rdma/rdma_user_ioctl_cmds.h).
const (
	attrSize           = 16 // ib_uverbs_attr
	attrAttrID abi.U16 = 0  // ib_uverbs_attr.attr_id
	attrLen    abi.U16 = 2  // ib_uverbs_attr.len
	attrFlags  abi.U16 = 4  // ib_uverbs_attr.flags
	attrData   abi.U64 = 8  // ib_uverbs_attr.data
)

// struct ib_uverbs_get_context (rdma/ib_user_verbs.h).
const (
	getContextSize = 8 // ib_uverbs_get_context
)

// struct ib_uverbs_get_context_resp (rdma/ib_user_verbs.h).
const (
	getContextRespSize                   = 8 // ib_uverbs_get_context_resp
	getContextRespAsyncFD        abi.U32 = 0 // ib_uverbs_get_context_resp.async_fd
	getContextRespNumCompVectors abi.U32 = 4 // ib_uverbs_get_context_resp.num_comp_vectors
)

// struct ib_uverbs_ex_query_device (rdma/ib_user_verbs.h).
const (
	queryDeviceSize = 8 // ib_uverbs_ex_query_device
)

// struct ib_uverbs_ex_query_device_resp (rdma/ib_user_verbs.h).
const (
	queryDeviceRespSize                     = 304 // ib_uverbs_ex_query_device_resp
	queryDeviceRespBase          abi.Struct = 0   // ib_uverbs_ex_query_device_resp.base
	queryDeviceRespODP           abi.Struct = 184 // ib_uverbs_ex_query_device_resp.odp_caps
	queryDeviceRespTimestampMask abi.U64    = 208 // ib_uverbs_ex_query_device_resp.timestamp_mask
	queryDeviceRespClock         abi.U64    = 216 // ib_uverbs_ex_query_device_resp.hca_core_clock
	queryDeviceRespCapFlags      abi.U64    = 224 // ib_uverbs_ex_query_device_resp.device_cap_flags_ex
)

// struct ib_uverbs_odp_caps (rdma/ib_user_verbs.h).
const (
	odpCapsSize            = 24 // ib_uverbs_odp_caps
	odpCapsGeneral abi.U64 = 0  // ib_uverbs_odp_caps.general_caps
	odpCapsRC      abi.U32 = 8  // ib_uverbs_odp_caps.per_transport_caps.rc_odp_caps
)

// struct ib_uverbs_query_device_resp (rdma/ib_user_verbs.h).
const (
	deviceSize                     = 176 // ib_uverbs_query_device_resp
	deviceFwVer           abi.U64  = 0   // ib_uverbs_query_device_resp.fw_ver
	deviceNodeGuid        abi.BE64 = 8   // ib_uverbs_query_device_resp.node_guid
	deviceSysImageGUID    abi.BE64 = 16  // ib_uverbs_query_device_resp.sys_image_guid
	deviceMaxMRSize       abi.U64  = 24  // ib_uverbs_query_device_resp.max_mr_size
	devicePageSizeCap     abi.U64  = 32  // ib_uverbs_query_device_resp.page_size_cap
	deviceVendorID        abi.U32  = 40  // ib_uverbs_query_device_resp.vendor_id
	deviceVendorPartID    abi.U32  = 44  // ib_uverbs_query_device_resp.vendor_part_id
	deviceHWVer           abi.U32  = 48  // ib_uverbs_query_device_resp.hw_ver
	deviceMaxQP           abi.U32  = 52  // ib_uverbs_query_device_resp.max_qp
	deviceMaxQPWR         abi.U32  = 56  // ib_uverbs_query_device_resp.max_qp_wr
	deviceCapFlags        abi.U32  = 60  // ib_uverbs_query_device_resp.device_cap_flags
	deviceMaxSGE          abi.U32  = 64  // ib_uverbs_query_device_resp.max_sge
	deviceMaxCQ           abi.U32  = 72  // ib_uverbs_query_device_resp.max_cq
	deviceMaxCQE          abi.U32  = 76  // ib_uverbs_query_device_resp.max_cqe
	deviceMaxMR           abi.U32  = 80  // ib_uverbs_query_device_resp.max_mr
	deviceMaxPD           abi.U32  = 84  // ib_uverbs_query_device_resp.max_pd
	deviceMaxQPRdAtom     abi.U32  = 88  // ib_uverbs_query_device_resp.max_qp_rd_atom
	deviceMaxQPInitRdAtom abi.U32  = 100 // ib_uverbs_query_device_resp.max_qp_init_rd_atom
	deviceAtomicCap       abi.U32  = 108 // ib_uverbs_query_device_resp.atomic_cap
	deviceMaxMW           abi.U32  = 120 // ib_uverbs_query_device_resp.max_mw
	deviceMaxPKeys        abi.U16  = 168 // ib_uverbs_query_device_resp.max_pkeys
	deviceLocalCAAckDelay abi.U8   = 170 // ib_uverbs_query_device_resp.local_ca_ack_delay
	devicePhysPortCnt     abi.U8   = 171 // ib_uverbs_query_device_resp.phys_port_cnt
	deviceMaxSRQ          abi.U32  = 156 // ib_uverbs_query_device_resp.max_srq
	deviceMaxSRQWR        abi.U32  = 160 // ib_uverbs_query_device_resp.max_srq_wr
	deviceMaxSRQSGE       abi.U32  = 164 // ib_uverbs_query_device_resp.max_srq_sge
)

// struct ib_uverbs_query_port_resp_ex (rdma/ib_user_ioctl_verbs.h).
const (
	portRespSize              = 48 // ib_uverbs_query_port_resp_ex
	portActiveSpeedEx abi.U32 = 44 // ib_uverbs_query_port_resp_ex.active_speed_ex
)

// struct ib_uverbs_query_port_resp (rdma/ib_user_verbs.h).
const (
	portSize                = 40 // ib_uverbs_query_port_resp
	portMaxMsgSz    abi.U32 = 4  // ib_uverbs_query_port_resp.max_msg_sz
	portGIDTblLen   abi.U32 = 16 // ib_uverbs_query_port_resp.gid_tbl_len
	portPKeyTblLen  abi.U16 = 20 // ib_uverbs_query_port_resp.pkey_tbl_len
	portLID         abi.U16 = 22 // ib_uverbs_query_port_resp.lid
	portSMLID       abi.U16 = 24 // ib_uverbs_query_port_resp.sm_lid
	portState       abi.U8  = 26 // ib_uverbs_query_port_resp.state
	portMaxMTU      abi.U8  = 27 // ib_uverbs_query_port_resp.max_mtu
	portActiveMTU   abi.U8  = 28 // ib_uverbs_query_port_resp.active_mtu
	portLMC         abi.U8  = 29 // ib_uverbs_query_port_resp.lmc
	portSMSL        abi.U8  = 31 // ib_uverbs_query_port_resp.sm_sl
	portActiveWidth abi.U8  = 34 // ib_uverbs_query_port_resp.active_width
	portActiveSpeed abi.U8  = 35 // ib_uverbs_query_port_resp.active_speed
	portPhysState   abi.U8  = 36 // ib_uverbs_query_port_resp.phys_state
	portLinkLayer   abi.U8  = 37 // ib_uverbs_query_port_resp.link_layer
)

// struct ib_uverbs_gid_entry (rdma/ib_user_ioctl_verbs.h).
const (
	gidEntrySize                     = 32 // ib_uverbs_gid_entry
	gidEntryGID           abi.Struct = 0  // ib_uverbs_gid_entry.gid
	gidEntryGIDIndex      abi.U32    = 16 // ib_uverbs_gid_entry.gid_index
	gidEntryPortNum       abi.U32    = 20 // ib_uverbs_gid_entry.port_num
	gidEntryGIDType       abi.U32    = 24 // ib_uverbs_gid_entry.gid_type
	gidEntryNetdevIfindex abi.U32    = 28 // ib_uverbs_gid_entry.netdev_ifindex
)

// struct ib_uverbs_alloc_pd (rdma/ib_user_verbs.h).
const (
	allocPDSize = 8 // ib_uverbs_alloc_pd
)

// struct ib_uverbs_alloc_pd_resp (rdma/ib_user_verbs.h).
const (
	allocPDRespSize             = 4 // ib_uverbs_alloc_pd_resp
	allocPDRespPDHandle abi.U32 = 0 // ib_uverbs_alloc_pd_resp.pd_handle
)

// struct ib_uverbs_reg_mr (rdma/ib_user_verbs.h).
const (
	regMRSize                = 40 // ib_uverbs_reg_mr
	regMRStart       abi.U64 = 8  // ib_uverbs_reg_mr.start
	regMRLength      abi.U64 = 16 // ib_uverbs_reg_mr.length
	regMRHcaVA       abi.U64 = 24 // ib_uverbs_reg_mr.hca_va
	regMRPDHandle    abi.U32 = 32 // ib_uverbs_reg_mr.pd_handle
	regMRAccessFlags abi.U32 = 36 // ib_uverbs_reg_mr.access_flags
)

// struct ib_uverbs_reg_mr_resp (rdma/ib_user_verbs.h).
const (
	regMRRespSize             = 12 // ib_uverbs_reg_mr_resp
	regMRRespMRHandle abi.U32 = 0  // ib_uverbs_reg_mr_resp.mr_handle
	regMRRespLkey     abi.U32 = 4  // ib_uverbs_reg_mr_resp.lkey
	regMRRespRkey     abi.U32 = 8  // ib_uverbs_reg_mr_resp.rkey
)

// struct ib_uverbs_rereg_mr (rdma/ib_user_verbs.h).
const (
	reregMRSize                = 48 // ib_uverbs_rereg_mr
	reregMRHandle      abi.U32 = 8  // ib_uverbs_rereg_mr.mr_handle
	reregMRFlags       abi.U32 = 12 // ib_uverbs_rereg_mr.flags
	reregMRStart       abi.U64 = 16 // ib_uverbs_rereg_mr.start
	reregMRLength      abi.U64 = 24 // ib_uverbs_rereg_mr.length
	reregMRHcaVA       abi.U64 = 32 // ib_uverbs_rereg_mr.hca_va
	reregMRPDHandle    abi.U32 = 40 // ib_uverbs_rereg_mr.pd_handle
	reregMRAccessFlags abi.U32 = 44 // ib_uverbs_rereg_mr.access_flags
)

// struct ib_uverbs_rereg_mr_resp (rdma/ib_user_verbs.h).
const (
	reregMRRespSize         = 8 // ib_uverbs_rereg_mr_resp
	reregMRRespLkey abi.U32 = 0 // ib_uverbs_rereg_mr_resp.lkey
	reregMRRespRkey abi.U32 = 4 // ib_uverbs_rereg_mr_resp.rkey
)

// struct ib_uverbs_alloc_mw (rdma/ib_user_verbs.h).
const (
	allocMWSize             = 16 // ib_uverbs_alloc_mw
	allocMWPDHandle abi.U32 = 8  // ib_uverbs_alloc_mw.pd_handle
	allocMWType     abi.U8  = 12 // ib_uverbs_alloc_mw.mw_type
)

// struct ib_uverbs_alloc_mw_resp (rdma/ib_user_verbs.h).
const (
	allocMWRespSize             = 8 // ib_uverbs_alloc_mw_resp
	allocMWRespMWHandle abi.U32 = 0 // ib_uverbs_alloc_mw_resp.mw_handle
	allocMWRespRkey     abi.U32 = 4 // ib_uverbs_alloc_mw_resp.rkey
)

// struct ib_uverbs_sge (rdma/ib_user_verbs.h).
const (
	sgeSize           = 16 // ib_uverbs_sge
	sgeAddr   abi.U64 = 0  // ib_uverbs_sge.addr
	sgeLength abi.U32 = 8  // ib_uverbs_sge.length
	sgeLkey   abi.U32 = 12 // ib_uverbs_sge.lkey
)

// struct ib_uverbs_create_comp_channel (rdma/ib_user_verbs.h).
const (
	createCompChannelSize = 8 // ib_uverbs_create_comp_channel
)

// struct ib_uverbs_create_comp_channel_resp (rdma/ib_user_verbs.h).
const (
	createCompChannelRespSize         = 4 // ib_uverbs_create_comp_channel_resp
	createCompChannelRespFD   abi.U32 = 0 // ib_uverbs_create_comp_channel_resp.fd
)

// struct ib_uverbs_comp_event_desc (rdma/ib_user_verbs.h).
const (
	compEventSize             = 8 // ib_uverbs_comp_event_desc
	compEventCQHandle abi.U64 = 0 // ib_uverbs_comp_event_desc.cq_handle
)

// struct ib_uverbs_async_event_desc (rdma/ib_user_verbs.h).
const (
	asyncEventSize              = 16 // ib_uverbs_async_event_desc
	asyncEventElement   abi.U64 = 0  // ib_uverbs_async_event_desc.element
	asyncEventEventType abi.U32 = 8  // ib_uverbs_async_event_desc.event_type
)

// struct ib_uverbs_create_cq (rdma/ib_user_verbs.h).
const (
	createCQSize                = 32 // ib_uverbs_create_cq
	createCQUserHandle  abi.U64 = 8  // ib_uverbs_create_cq.user_handle
	createCQCQE         abi.U32 = 16 // ib_uverbs_create_cq.cqe
	createCQCompVector  abi.U32 = 20 // ib_uverbs_create_cq.comp_vector
	createCQCompChannel abi.U32 = 24 // ib_uverbs_create_cq.comp_channel
)

// struct ib_uverbs_create_cq_resp (rdma/ib_user_verbs.h).
const (
	createCQRespSize             = 8 // ib_uverbs_create_cq_resp
	createCQRespCQHandle abi.U32 = 0 // ib_uverbs_create_cq_resp.cq_handle
	createCQRespCQE      abi.U32 = 4 // ib_uverbs_create_cq_resp.cqe
)

// struct ib_uverbs_req_notify_cq (rdma/ib_user_verbs.h).
const (
	reqNotifyCQSize                  = 8 // ib_uverbs_req_notify_cq
	reqNotifyCQCQHandle      abi.U32 = 0 // ib_uverbs_req_notify_cq.cq_handle
	reqNotifyCQSolicitedOnly abi.U32 = 4 // ib_uverbs_req_notify_cq.solicited_only
)

// struct ib_uverbs_resize_cq (rdma/ib_user_verbs.h).
const (
	resizeCQSize             = 16 // ib_uverbs_resize_cq
	resizeCQCQHandle abi.U32 = 8  // ib_uverbs_resize_cq.cq_handle
	resizeCQCQE      abi.U32 = 12 // ib_uverbs_resize_cq.cqe
)

// struct ib_uverbs_resize_cq_resp (rdma/ib_user_verbs.h).
const (
	resizeCQRespSize         = 8 // ib_uverbs_resize_cq_resp
	resizeCQRespCQE  abi.U32 = 0 // ib_uverbs_resize_cq_resp.cqe
)

// struct ib_uverbs_destroy_cq (rdma/ib_user_verbs.h).
const (
	destroyCQSize             = 16 // ib_uverbs_destroy_cq
	destroyCQCQHandle abi.U32 = 8  // ib_uverbs_destroy_cq.cq_handle
)

// struct ib_uverbs_destroy_cq_resp (rdma/ib_user_verbs.h).
const (
	destroyCQRespSize                        = 8 // ib_uverbs_destroy_cq_resp
	destroyCQRespCompEventsReported  abi.U32 = 0 // ib_uverbs_destroy_cq_resp.comp_events_reported
	destroyCQRespAsyncEventsReported abi.U32 = 4 // ib_uverbs_destroy_cq_resp.async_events_reported
)

// struct ib_uverbs_qp_cap (rdma/ib_user_ioctl_verbs.h).
const (
	qpCapSize                  = 20 // ib_uverbs_qp_cap
	qpCapMaxSendWR     abi.U32 = 0  // ib_uverbs_qp_cap.max_send_wr
	qpCapMaxRecvWR     abi.U32 = 4  // ib_uverbs_qp_cap.max_recv_wr
	qpCapMaxSendSGE    abi.U32 = 8  // ib_uverbs_qp_cap.max_send_sge
	qpCapMaxRecvSGE    abi.U32 = 12 // ib_uverbs_qp_cap.max_recv_sge
	qpCapMaxInlineData abi.U32 = 16 // ib_uverbs_qp_cap.max_inline_data
)

// struct ib_uverbs_create_qp (rdma/ib_user_verbs.h).
const (
	createQPSize                  = 56 // ib_uverbs_create_qp
	createQPUserHandle    abi.U64 = 8  // ib_uverbs_create_qp.user_handle
	createQPPDHandle      abi.U32 = 16 // ib_uverbs_create_qp.pd_handle
	createQPSendCQHandle  abi.U32 = 20 // ib_uverbs_create_qp.send_cq_handle
	createQPRecvCQHandle  abi.U32 = 24 // ib_uverbs_create_qp.recv_cq_handle
	createQPSRQHandle     abi.U32 = 28 // ib_uverbs_create_qp.srq_handle
	createQPMaxSendWR     abi.U32 = 32 // ib_uverbs_create_qp.max_send_wr
	createQPMaxRecvWR     abi.U32 = 36 // ib_uverbs_create_qp.max_recv_wr
	createQPMaxSendSGE    abi.U32 = 40 // ib_uverbs_create_qp.max_send_sge
	createQPMaxRecvSGE    abi.U32 = 44 // ib_uverbs_create_qp.max_recv_sge
	createQPMaxInlineData abi.U32 = 48 // ib_uverbs_create_qp.max_inline_data
	createQPSQSigAll      abi.U8  = 52 // ib_uverbs_create_qp.sq_sig_all
	createQPQPType        abi.U8  = 53 // ib_uverbs_create_qp.qp_type
	createQPIsSRQ         abi.U8  = 54 // ib_uverbs_create_qp.is_srq
)

// struct ib_uverbs_create_qp_resp (rdma/ib_user_verbs.h).
const (
	createQPRespSize                  = 32 // ib_uverbs_create_qp_resp
	createQPRespQPHandle      abi.U32 = 0  // ib_uverbs_create_qp_resp.qp_handle
	createQPRespQPN           abi.U32 = 4  // ib_uverbs_create_qp_resp.qpn
	createQPRespMaxSendWR     abi.U32 = 8  // ib_uverbs_create_qp_resp.max_send_wr
	createQPRespMaxRecvWR     abi.U32 = 12 // ib_uverbs_create_qp_resp.max_recv_wr
	createQPRespMaxSendSGE    abi.U32 = 16 // ib_uverbs_create_qp_resp.max_send_sge
	createQPRespMaxRecvSGE    abi.U32 = 20 // ib_uverbs_create_qp_resp.max_recv_sge
	createQPRespMaxInlineData abi.U32 = 24 // ib_uverbs_create_qp_resp.max_inline_data
)

// struct ib_uverbs_qp_dest (rdma/ib_user_verbs.h).
const (
	qpDestSize                    = 32 // ib_uverbs_qp_dest
	qpDestDGID         abi.Struct = 0  // ib_uverbs_qp_dest.dgid
	qpDestFlowLabel    abi.U32    = 16 // ib_uverbs_qp_dest.flow_label
	qpDestDLID         abi.U16    = 20 // ib_uverbs_qp_dest.dlid
	qpDestSgidIndex    abi.U8     = 24 // ib_uverbs_qp_dest.sgid_index
	qpDestHopLimit     abi.U8     = 25 // ib_uverbs_qp_dest.hop_limit
	qpDestTrafficClass abi.U8     = 26 // ib_uverbs_qp_dest.traffic_class
	qpDestSL           abi.U8     = 27 // ib_uverbs_qp_dest.sl
	qpDestSrcPathBits  abi.U8     = 28 // ib_uverbs_qp_dest.src_path_bits
	qpDestStaticRate   abi.U8     = 29 // ib_uverbs_qp_dest.static_rate
	qpDestIsGlobal     abi.U8     = 30 // ib_uverbs_qp_dest.is_global
	qpDestPortNum      abi.U8     = 31 // ib_uverbs_qp_dest.port_num
)

// struct ib_uverbs_modify_qp (rdma/ib_user_verbs.h).
const (
	modifyQPSize                        = 112 // ib_uverbs_modify_qp
	modifyQPDest             abi.Struct = 0   // ib_uverbs_modify_qp.dest
	modifyQPQPHandle         abi.U32    = 64  // ib_uverbs_modify_qp.qp_handle
	modifyQPAttrMask         abi.U32    = 68  // ib_uverbs_modify_qp.attr_mask
	modifyQPRQPSN            abi.U32    = 76  // ib_uverbs_modify_qp.rq_psn
	modifyQPSQPSN            abi.U32    = 80  // ib_uverbs_modify_qp.sq_psn
	modifyQPDestQPNum        abi.U32    = 84  // ib_uverbs_modify_qp.dest_qp_num
	modifyQPQPAccessFlags    abi.U32    = 88  // ib_uverbs_modify_qp.qp_access_flags
	modifyQPPKeyIndex        abi.U16    = 92  // ib_uverbs_modify_qp.pkey_index
	modifyQPQPState          abi.U8     = 96  // ib_uverbs_modify_qp.qp_state
	modifyQPCurQPState       abi.U8     = 97  // ib_uverbs_modify_qp.cur_qp_state
	modifyQPPathMTU          abi.U8     = 98  // ib_uverbs_modify_qp.path_mtu
	modifyQPEnSqdAsyncNotify abi.U8     = 100 // ib_uverbs_modify_qp.en_sqd_async_notify
	modifyQPMaxRdAtomic      abi.U8     = 101 // ib_uverbs_modify_qp.max_rd_atomic
	modifyQPMaxDestRdAtomic  abi.U8     = 102 // ib_uverbs_modify_qp.max_dest_rd_atomic
	modifyQPMinRNRTimer      abi.U8     = 103 // ib_uverbs_modify_qp.min_rnr_timer
	modifyQPPortNum          abi.U8     = 104 // ib_uverbs_modify_qp.port_num
	modifyQPTimeout          abi.U8     = 105 // ib_uverbs_modify_qp.timeout
	modifyQPRetryCnt         abi.U8     = 106 // ib_uverbs_modify_qp.retry_cnt
	modifyQPRNRRetry         abi.U8     = 107 // ib_uverbs_modify_qp.rnr_retry
)

// struct ib_uverbs_query_qp (rdma/ib_user_verbs.h).
const (
	queryQPSize             = 16 // ib_uverbs_query_qp
	queryQPQPHandle abi.U32 = 8  // ib_uverbs_query_qp.qp_handle
	queryQPAttrMask abi.U32 = 12 // ib_uverbs_query_qp.attr_mask
)

// struct ib_uverbs_query_qp_resp (rdma/ib_user_verbs.h).
const (
	queryQPRespSize                       = 128 // ib_uverbs_query_qp_resp
	queryQPRespDest            abi.Struct = 0   // ib_uverbs_query_qp_resp.dest
	queryQPRespRQPSN           abi.U32    = 88  // ib_uverbs_query_qp_resp.rq_psn
	queryQPRespSQPSN           abi.U32    = 92  // ib_uverbs_query_qp_resp.sq_psn
	queryQPRespDestQPNum       abi.U32    = 96  // ib_uverbs_query_qp_resp.dest_qp_num
	queryQPRespQPAccessFlags   abi.U32    = 100 // ib_uverbs_query_qp_resp.qp_access_flags
	queryQPRespPKeyIndex       abi.U16    = 104 // ib_uverbs_query_qp_resp.pkey_index
	queryQPRespQPState         abi.U8     = 108 // ib_uverbs_query_qp_resp.qp_state
	queryQPRespCurQPState      abi.U8     = 109 // ib_uverbs_query_qp_resp.cur_qp_state
	queryQPRespPathMTU         abi.U8     = 110 // ib_uverbs_query_qp_resp.path_mtu
	queryQPRespMaxRdAtomic     abi.U8     = 113 // ib_uverbs_query_qp_resp.max_rd_atomic
	queryQPRespMaxDestRdAtomic abi.U8     = 114 // ib_uverbs_query_qp_resp.max_dest_rd_atomic
	queryQPRespMinRNRTimer     abi.U8     = 115 // ib_uverbs_query_qp_resp.min_rnr_timer
	queryQPRespPortNum         abi.U8     = 116 // ib_uverbs_query_qp_resp.port_num
	queryQPRespTimeout         abi.U8     = 117 // ib_uverbs_query_qp_resp.timeout
	queryQPRespRetryCnt        abi.U8     = 118 // ib_uverbs_query_qp_resp.retry_cnt
	queryQPRespRNRRetry        abi.U8     = 119 // ib_uverbs_query_qp_resp.rnr_retry
)

// struct ib_uverbs_destroy_qp (rdma/ib_user_verbs.h).
const (
	destroyQPSize             = 16 // ib_uverbs_destroy_qp
	destroyQPQPHandle abi.U32 = 8  // ib_uverbs_destroy_qp.qp_handle
)

// struct ib_uverbs_destroy_qp_resp (rdma/ib_user_verbs.h).
const (
	destroyQPRespSize                   = 4 // ib_uverbs_destroy_qp_resp
	destroyQPRespEventsReported abi.U32 = 0 // ib_uverbs_destroy_qp_resp.events_reported
)

// struct ib_uverbs_cmd_hdr (rdma/ib_user_verbs.h): begins what is written to the device
// node. The lengths are in words of 4 bytes, that of the command with this header.
const (
	writeHdrSize             = 8 // ib_uverbs_cmd_hdr
	writeHdrCommand  abi.U32 = 0 // ib_uverbs_cmd_hdr.command
	writeHdrInWords  abi.U16 = 4 // ib_uverbs_cmd_hdr.in_words
	writeHdrOutWords abi.U16 = 6 // ib_uverbs_cmd_hdr.out_words
)

// struct ib_uverbs_post_send (rdma/ib_user_verbs.h).
const (
	postSendSize             = 24 // ib_uverbs_post_send
	postSendResponse abi.U64 = 0  // ib_uverbs_post_send.response
	postSendQPHandle abi.U32 = 8  // ib_uverbs_post_send.qp_handle
	postSendWqeSize  abi.U32 = 20 // ib_uverbs_post_send.wqe_size
)

// struct ib_uverbs_post_send_resp (rdma/ib_user_verbs.h).
const (
	postSendRespSize = 4 // ib_uverbs_post_send_resp
)

// struct ib_uverbs_create_srq (rdma/ib_user_verbs.h).
const (
	createSRQSize               = 32 // ib_uverbs_create_srq
	createSRQUserHandle abi.U64 = 8  // ib_uverbs_create_srq.user_handle
	createSRQPDHandle   abi.U32 = 16 // ib_uverbs_create_srq.pd_handle
	createSRQMaxWR      abi.U32 = 20 // ib_uverbs_create_srq.max_wr
	createSRQMaxSGE     abi.U32 = 24 // ib_uverbs_create_srq.max_sge
)

// struct ib_uverbs_create_srq_resp (rdma/ib_user_verbs.h).
const (
	createSRQRespSize              = 16 // ib_uverbs_create_srq_resp
	createSRQRespSRQHandle abi.U32 = 0  // ib_uverbs_create_srq_resp.srq_handle
	createSRQRespMaxWR     abi.U32 = 4  // ib_uverbs_create_srq_resp.max_wr
	createSRQRespMaxSGE    abi.U32 = 8  // ib_uverbs_create_srq_resp.max_sge
)

// struct ib_uverbs_modify_srq (rdma/ib_user_verbs.h).
const (
	modifySRQSize              = 16 // ib_uverbs_modify_srq
	modifySRQSRQHandle abi.U32 = 0  // ib_uverbs_modify_srq.srq_handle
	modifySRQAttrMask  abi.U32 = 4  // ib_uverbs_modify_srq.attr_mask
	modifySRQLimit     abi.U32 = 12 // ib_uverbs_modify_srq.srq_limit
)

// struct ib_uverbs_query_srq (rdma/ib_user_verbs.h).
const (
	querySRQSize              = 16 // ib_uverbs_query_srq
	querySRQSRQHandle abi.U32 = 8  // ib_uverbs_query_srq.srq_handle
)

// struct ib_uverbs_query_srq_resp (rdma/ib_user_verbs.h).
const (
	querySRQRespSize           = 16 // ib_uverbs_query_srq_resp
	querySRQRespMaxWR  abi.U32 = 0  // ib_uverbs_query_srq_resp.max_wr
	querySRQRespMaxSGE abi.U32 = 4  // ib_uverbs_query_srq_resp.max_sge
	querySRQRespLimit  abi.U32 = 8  // ib_uverbs_query_srq_resp.srq_limit
)

// struct ib_uverbs_destroy_srq (rdma/ib_user_verbs.h).
const (
	destroySRQSize              = 16 // ib_uverbs_destroy_srq
	destroySRQSRQHandle abi.U32 = 8  // ib_uverbs_destroy_srq.srq_handle
)

// struct ib_uverbs_destroy_srq_resp (rdma/ib_user_verbs.h).
const (
	destroySRQRespSize                   = 4 // ib_uverbs_destroy_srq_resp
	destroySRQRespEventsReported abi.U32 = 0 // ib_uverbs_destroy_srq_resp.events_reported
)
