//go:build linux

package mlx5dev

import "github.com/byteexpress/byteexpress/internal/abi"

// Layout of the kernel's structs that requests and answers consist of. TestABI
// checks each line against what a C compiler makes of the headers.
//
// Packages uverbs and provider/mlx5 have tables of the same structs, and these repeat
// them on purpose: a model that shared an encoding with what it judges would share its
// faults, and agree with them.

// struct ib_uverbs_query_device_resp (rdma/ib_user_verbs.h).
const (
	deviceFwVer           abi.U64  = 0   // ib_uverbs_query_device_resp.fw_ver
	deviceNodeGuid        abi.BE64 = 8   // ib_uverbs_query_device_resp.node_guid
	deviceMaxMRSize       abi.U64  = 24  // ib_uverbs_query_device_resp.max_mr_size
	devicePageSizeCap     abi.U64  = 32  // ib_uverbs_query_device_resp.page_size_cap
	deviceVendorID        abi.U32  = 40  // ib_uverbs_query_device_resp.vendor_id
	deviceVendorPartID    abi.U32  = 44  // ib_uverbs_query_device_resp.vendor_part_id
	deviceHWVer           abi.U32  = 48  // ib_uverbs_query_device_resp.hw_ver
	deviceMaxQP           abi.U32  = 52  // ib_uverbs_query_device_resp.max_qp
	deviceMaxQPWR         abi.U32  = 56  // ib_uverbs_query_device_resp.max_qp_wr
	deviceMaxSGE          abi.U32  = 64  // ib_uverbs_query_device_resp.max_sge
	deviceMaxCQ           abi.U32  = 72  // ib_uverbs_query_device_resp.max_cq
	deviceMaxCQE          abi.U32  = 76  // ib_uverbs_query_device_resp.max_cqe
	deviceMaxMR           abi.U32  = 80  // ib_uverbs_query_device_resp.max_mr
	deviceMaxPD           abi.U32  = 84  // ib_uverbs_query_device_resp.max_pd
	deviceMaxQPRdAtom     abi.U32  = 88  // ib_uverbs_query_device_resp.max_qp_rd_atom
	deviceMaxQPInitRdAtom abi.U32  = 100 // ib_uverbs_query_device_resp.max_qp_init_rd_atom
	deviceAtomicCap       abi.U32  = 108 // ib_uverbs_query_device_resp.atomic_cap
	deviceCapFlags        abi.U32  = 60  // ib_uverbs_query_device_resp.device_cap_flags
	deviceMaxMW           abi.U32  = 120 // ib_uverbs_query_device_resp.max_mw
	deviceMaxSRQ          abi.U32  = 156 // ib_uverbs_query_device_resp.max_srq
	deviceMaxSRQWR        abi.U32  = 160 // ib_uverbs_query_device_resp.max_srq_wr
	deviceMaxSRQSGE       abi.U32  = 164 // ib_uverbs_query_device_resp.max_srq_sge
	devicePhysPortCnt     abi.U8   = 171 // ib_uverbs_query_device_resp.phys_port_cnt
)

// struct ib_uverbs_query_port_resp (rdma/ib_user_verbs.h).
const (
	portMaxMsgSz    abi.U32 = 4  // ib_uverbs_query_port_resp.max_msg_sz
	portGIDTblLen   abi.U32 = 16 // ib_uverbs_query_port_resp.gid_tbl_len
	portPKeyTblLen  abi.U16 = 20 // ib_uverbs_query_port_resp.pkey_tbl_len
	portLID         abi.U16 = 22 // ib_uverbs_query_port_resp.lid
	portState       abi.U8  = 26 // ib_uverbs_query_port_resp.state
	portMaxMTU      abi.U8  = 27 // ib_uverbs_query_port_resp.max_mtu
	portActiveMTU   abi.U8  = 28 // ib_uverbs_query_port_resp.active_mtu
	portActiveWidth abi.U8  = 34 // ib_uverbs_query_port_resp.active_width
	portActiveSpeed abi.U8  = 35 // ib_uverbs_query_port_resp.active_speed
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

// struct ib_uverbs_reg_mr (rdma/ib_user_verbs.h).
const (
	regMRStart       abi.U64 = 8  // ib_uverbs_reg_mr.start
	regMRLength      abi.U64 = 16 // ib_uverbs_reg_mr.length
	regMRHcaVA       abi.U64 = 24 // ib_uverbs_reg_mr.hca_va
	regMRPDHandle    abi.U32 = 32 // ib_uverbs_reg_mr.pd_handle
	regMRAccessFlags abi.U32 = 36 // ib_uverbs_reg_mr.access_flags
)

// struct ib_uverbs_reg_mr_resp (rdma/ib_user_verbs.h).
const (
	regMRRespMRHandle abi.U32 = 0 // ib_uverbs_reg_mr_resp.mr_handle
	regMRRespLkey     abi.U32 = 4 // ib_uverbs_reg_mr_resp.lkey
	regMRRespRkey     abi.U32 = 8 // ib_uverbs_reg_mr_resp.rkey
)

// struct ib_uverbs_rereg_mr and its answer (rdma/ib_user_verbs.h).
const (
	reregMRHandle      abi.U32 = 8  // ib_uverbs_rereg_mr.mr_handle
	reregMRFlags       abi.U32 = 12 // ib_uverbs_rereg_mr.flags
	reregMRStart       abi.U64 = 16 // ib_uverbs_rereg_mr.start
	reregMRLength      abi.U64 = 24 // ib_uverbs_rereg_mr.length
	reregMRHcaVA       abi.U64 = 32 // ib_uverbs_rereg_mr.hca_va
	reregMRPDHandle    abi.U32 = 40 // ib_uverbs_rereg_mr.pd_handle
	reregMRAccessFlags abi.U32 = 44 // ib_uverbs_rereg_mr.access_flags
	reregMRRespLkey    abi.U32 = 0  // ib_uverbs_rereg_mr_resp.lkey
	reregMRRespRkey    abi.U32 = 4  // ib_uverbs_rereg_mr_resp.rkey
	reregTranslation           = 1  // IBV_REREG_MR_CHANGE_TRANSLATION
	reregAccess                = 4  // IBV_REREG_MR_CHANGE_ACCESS
)

// struct ib_uverbs_alloc_mw and its answer (rdma/ib_user_verbs.h).
const (
	allocMWPDHandle     abi.U32 = 8  // ib_uverbs_alloc_mw.pd_handle
	allocMWType         abi.U8  = 12 // ib_uverbs_alloc_mw.mw_type
	allocMWRespMWHandle abi.U32 = 0  // ib_uverbs_alloc_mw_resp.mw_handle
	allocMWRespRkey     abi.U32 = 4  // ib_uverbs_alloc_mw_resp.rkey
	windowType2                 = 2  // IBV_MW_TYPE_2
)

// struct ib_uverbs_async_event_desc (rdma/ib_user_verbs.h).
const (
	asyncEventSize              = 16 // ib_uverbs_async_event_desc
	asyncEventElement   abi.U64 = 0  // ib_uverbs_async_event_desc.element
	asyncEventEventType abi.U32 = 8  // ib_uverbs_async_event_desc.event_type
)

// struct ib_uverbs_resize_cq and its answer, ib_uverbs_modify_srq,
// ib_uverbs_query_srq_resp (rdma/ib_user_verbs.h).
const (
	resizeCQCQHandle   abi.U32 = 8  // ib_uverbs_resize_cq.cq_handle
	resizeCQCQE        abi.U32 = 12 // ib_uverbs_resize_cq.cqe
	resizeCQRespCQE    abi.U32 = 0  // ib_uverbs_resize_cq_resp.cqe
	modifySRQSRQHandle abi.U32 = 0  // ib_uverbs_modify_srq.srq_handle
	modifySRQAttrMask  abi.U32 = 4  // ib_uverbs_modify_srq.attr_mask
	modifySRQLimit     abi.U32 = 12 // ib_uverbs_modify_srq.srq_limit
	querySRQHandle     abi.U32 = 8  // ib_uverbs_query_srq.srq_handle
	querySRQRespMaxWR  abi.U32 = 0  // ib_uverbs_query_srq_resp.max_wr
	querySRQRespMaxSGE abi.U32 = 4  // ib_uverbs_query_srq_resp.max_sge
	querySRQRespLimit  abi.U32 = 8  // ib_uverbs_query_srq_resp.srq_limit
)

// struct ib_uverbs_qp_cap (rdma/ib_user_ioctl_verbs.h).
const (
	qpCapMaxSendSGE    abi.U32 = 8  // ib_uverbs_qp_cap.max_send_sge
	qpCapMaxInlineData abi.U32 = 16 // ib_uverbs_qp_cap.max_inline_data
)

// struct ib_uverbs_qp_dest (rdma/ib_user_verbs.h).
const (
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
	modifyQPDest            abi.Struct = 0   // ib_uverbs_modify_qp.dest
	modifyQPQPHandle        abi.U32    = 64  // ib_uverbs_modify_qp.qp_handle
	modifyQPAttrMask        abi.U32    = 68  // ib_uverbs_modify_qp.attr_mask
	modifyQPRQPSN           abi.U32    = 76  // ib_uverbs_modify_qp.rq_psn
	modifyQPSQPSN           abi.U32    = 80  // ib_uverbs_modify_qp.sq_psn
	modifyQPDestQPNum       abi.U32    = 84  // ib_uverbs_modify_qp.dest_qp_num
	modifyQPQPAccessFlags   abi.U32    = 88  // ib_uverbs_modify_qp.qp_access_flags
	modifyQPPKeyIndex       abi.U16    = 92  // ib_uverbs_modify_qp.pkey_index
	modifyQPQPState         abi.U8     = 96  // ib_uverbs_modify_qp.qp_state
	modifyQPCurQPState      abi.U8     = 97  // ib_uverbs_modify_qp.cur_qp_state
	modifyQPPathMTU         abi.U8     = 98  // ib_uverbs_modify_qp.path_mtu
	modifyQPMaxRdAtomic     abi.U8     = 101 // ib_uverbs_modify_qp.max_rd_atomic
	modifyQPMaxDestRdAtomic abi.U8     = 102 // ib_uverbs_modify_qp.max_dest_rd_atomic
	modifyQPMinRNRTimer     abi.U8     = 103 // ib_uverbs_modify_qp.min_rnr_timer
	modifyQPPortNum         abi.U8     = 104 // ib_uverbs_modify_qp.port_num
	modifyQPTimeout         abi.U8     = 105 // ib_uverbs_modify_qp.timeout
	modifyQPRetryCnt        abi.U8     = 106 // ib_uverbs_modify_qp.retry_cnt
	modifyQPRNRRetry        abi.U8     = 107 // ib_uverbs_modify_qp.rnr_retry
)

// struct ib_uverbs_query_qp and its answer (rdma/ib_user_verbs.h).
const (
	queryQPQPHandle            abi.U32    = 8   // ib_uverbs_query_qp.qp_handle
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

// The driver's part of requests and answers (rdma/mlx5-abi.h).
const (
	ctxReqBFRegs        abi.U32 = 0    // mlx5_ib_alloc_ucontext_req_v2.total_num_bfregs
	ctxReqMaxCQEVersion abi.U8  = 16   // mlx5_ib_alloc_ucontext_req_v2.max_cqe_version
	ctxReqLibCaps       abi.U64 = 24   // mlx5_ib_alloc_ucontext_req_v2.lib_caps
	ctxDynamicUARs              = 2    // MLX5_LIB_CAP_DYN_UAR
	ctxRespBFRegSize    abi.U32 = 4    // mlx5_ib_alloc_ucontext_resp.bf_reg_size
	ctxRespBFRegs       abi.U32 = 8    // mlx5_ib_alloc_ucontext_resp.tot_bfregs
	ctxRespCacheLine    abi.U32 = 12   // mlx5_ib_alloc_ucontext_resp.cache_line_size
	ctxRespSendDesc     abi.U16 = 16   // mlx5_ib_alloc_ucontext_resp.max_sq_desc_sz
	ctxRespRecvDesc     abi.U16 = 18   // mlx5_ib_alloc_ucontext_resp.max_rq_desc_sz
	ctxRespSendBlocks   abi.U32 = 20   // mlx5_ib_alloc_ucontext_resp.max_send_wqebb
	ctxRespRecvWR       abi.U32 = 24   // mlx5_ib_alloc_ucontext_resp.max_recv_wr
	ctxRespSharedWR     abi.U32 = 28   // mlx5_ib_alloc_ucontext_resp.max_srq_recv_wr
	ctxRespPorts        abi.U16 = 32   // mlx5_ib_alloc_ucontext_resp.num_ports
	ctxRespLength       abi.U32 = 40   // mlx5_ib_alloc_ucontext_resp.response_length
	ctxRespCQEVersion   abi.U8  = 44   // mlx5_ib_alloc_ucontext_resp.cqe_version
	ctxRespLogUARSize   abi.U32 = 56   // mlx5_ib_alloc_ucontext_resp.log_uar_size
	ctxRespUARsPerPage  abi.U32 = 60   // mlx5_ib_alloc_ucontext_resp.num_uars_per_page
	ctxRespDynBFRegs    abi.U32 = 64   // mlx5_ib_alloc_ucontext_resp.num_dyn_bfregs
	cqReqBuf            abi.U64 = 0    // mlx5_ib_create_cq.buf_addr
	cqReqRecord         abi.U64 = 8    // mlx5_ib_create_cq.db_addr
	cqReqEntrySize      abi.U32 = 16   // mlx5_ib_create_cq.cqe_size
	cqReqCompressed     abi.U8  = 20   // mlx5_ib_create_cq.cqe_comp_en
	cqReqFlags          abi.U16 = 22   // mlx5_ib_create_cq.flags
	cqReqUAR            abi.U16 = 24   // mlx5_ib_create_cq.uar_page_index
	cqFlagUAR                   = 2    // MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX
	resizeReqBuf        abi.U64 = 0    // mlx5_ib_resize_cq.buf_addr
	resizeReqEntrySize  abi.U16 = 8    // mlx5_ib_resize_cq.cqe_size
	srqReqBuf           abi.U64 = 0    // mlx5_ib_create_srq.buf_addr
	srqReqRecord        abi.U64 = 8    // mlx5_ib_create_srq.db_addr
	srqReqFlags         abi.U32 = 16   // mlx5_ib_create_srq.flags
	srqRespNumber       abi.U32 = 0    // mlx5_ib_create_srq_resp.srqn
	qpFlagInside                = 2    // MLX5_QP_FLAG_SCATTER_CQE
	cqRespNumber        abi.U32 = 0    // mlx5_ib_create_cq_resp.cqn
	qpReqBuf            abi.U64 = 0    // mlx5_ib_create_qp.buf_addr
	qpReqRecord         abi.U64 = 8    // mlx5_ib_create_qp.db_addr
	qpReqSendBlocks     abi.U32 = 16   // mlx5_ib_create_qp.sq_wqe_count
	qpReqRecvSlots      abi.U32 = 20   // mlx5_ib_create_qp.rq_wqe_count
	qpReqRecvShift      abi.U32 = 24   // mlx5_ib_create_qp.rq_wqe_shift
	qpReqFlags          abi.U32 = 28   // mlx5_ib_create_qp.flags
	qpReqUIDX           abi.U32 = 32   // mlx5_ib_create_qp.uidx
	qpReqUAR            abi.U32 = 36   // mlx5_ib_create_qp.bfreg_index
	qpFlagUAR                   = 1024 // MLX5_QP_FLAG_UAR_PAGE_INDEX
	qpRespBFReg         abi.U32 = 0    // mlx5_ib_create_qp_resp.bfreg_index
)
