package rxe

import "github.com/byteexpress/byteexpress/internal/abi"

// Layout of the driver's structs as bytes. TestABI checks each line against what a
// C compiler makes of the kernel's headers.

// struct mminfo (rdma/rdma_user_rxe.h).
const (
	mapInfoSize           = 16 // mminfo
	mapInfoOffset abi.U64 = 0  // mminfo.offset
	mapInfoLength abi.U32 = 8  // mminfo.size
)

// struct rxe_create_cq_resp (rdma/rdma_user_rxe.h).
const (
	createCQRespSize            = 16 // rxe_create_cq_resp
	createCQRespMI   abi.Struct = 0  // rxe_create_cq_resp.mi
)

// struct rxe_resize_cq_resp (rdma/rdma_user_rxe.h).
const (
	resizeCQRespSize            = 16 // rxe_resize_cq_resp
	resizeCQRespMI   abi.Struct = 0  // rxe_resize_cq_resp.mi
)

// struct rxe_create_srq_resp (rdma/rdma_user_rxe.h).
const (
	createSRQRespSize            = 24 // rxe_create_srq_resp
	createSRQRespMI   abi.Struct = 0  // rxe_create_srq_resp.mi
)

// struct rxe_modify_srq_cmd (rdma/rdma_user_rxe.h). Its address counts only for a
// resize.
const (
	modifySRQSize = 8 // rxe_modify_srq_cmd
)

// struct rxe_create_qp_resp (rdma/rdma_user_rxe.h).
const (
	createQPRespSize            = 32 // rxe_create_qp_resp
	createQPRespRQMI abi.Struct = 0  // rxe_create_qp_resp.rq_mi
	createQPRespSQMI abi.Struct = 16 // rxe_create_qp_resp.sq_mi
)

// struct rxe_queue_buf (rdma/rdma_user_rxe.h).
const (
	queueSize                  = 384 // rxe_queue_buf
	queueLog2ElemSize  abi.U32 = 0   // rxe_queue_buf.log2_elem_size
	queueIndexMask     abi.U32 = 4   // rxe_queue_buf.index_mask
	queueProducerIndex abi.U32 = 128 // rxe_queue_buf.producer_index
	queueConsumerIndex abi.U32 = 256 // rxe_queue_buf.consumer_index
)

// struct rxe_send_wr (rdma/rdma_user_rxe.h).
const (
	sendWRSize                      = 144 // rxe_send_wr
	sendWRWRID             abi.U64  = 0   // rxe_send_wr.wr_id
	sendWROpcode           abi.U32  = 12  // rxe_send_wr.opcode
	sendWRSendFlags        abi.U32  = 16  // rxe_send_wr.send_flags
	sendWRImmData          abi.BE32 = 20  // rxe_send_wr.ex.imm_data
	sendWRRdmaRemoteAddr   abi.U64  = 24  // rxe_send_wr.wr.rdma.remote_addr
	sendWRRdmaRkey         abi.U32  = 32  // rxe_send_wr.wr.rdma.rkey
	sendWRAtomicRemoteAddr abi.U64  = 24  // rxe_send_wr.wr.atomic.remote_addr
	sendWRCompareAdd       abi.U64  = 32  // rxe_send_wr.wr.atomic.compare_add
	sendWRSwap             abi.U64  = 40  // rxe_send_wr.wr.atomic.swap
	sendWRAtomicRkey       abi.U32  = 48  // rxe_send_wr.wr.atomic.rkey
	sendWRInvalidateRkey   abi.U32  = 20  // rxe_send_wr.ex.invalidate_rkey
	sendWRMWAddr           abi.U64  = 24  // rxe_send_wr.wr.mw.addr
	sendWRMWLength         abi.U64  = 32  // rxe_send_wr.wr.mw.length
	sendWRMWMRLkey         abi.U32  = 40  // rxe_send_wr.wr.mw.mr_lkey
	sendWRMWRkey           abi.U32  = 44  // rxe_send_wr.wr.mw.mw_rkey
	sendWRMWNewRkey        abi.U32  = 48  // rxe_send_wr.wr.mw.rkey
	sendWRMWAccess         abi.U32  = 52  // rxe_send_wr.wr.mw.access
)

// struct rxe_send_wqe (rdma/rdma_user_rxe.h).
const (
	sendWQESize             = 208 // rxe_send_wqe
	sendWQEState abi.U32    = 148 // rxe_send_wqe.state
	sendWQEIova  abi.U64    = 152 // rxe_send_wqe.iova
	sendWQEDma   abi.Struct = 184 // rxe_send_wqe.dma
)

// struct rxe_recv_wqe (rdma/rdma_user_rxe.h).
const (
	recvWQESize            = 40 // rxe_recv_wqe
	recvWQEWRID abi.U64    = 0  // rxe_recv_wqe.wr_id
	recvWQEDma  abi.Struct = 16 // rxe_recv_wqe.dma
)

// struct rxe_dma_info (rdma/rdma_user_rxe.h).
const (
	dmaSize              = 24 // rxe_dma_info
	dmaLength    abi.U32 = 0  // rxe_dma_info.length
	dmaResid     abi.U32 = 4  // rxe_dma_info.resid
	dmaCurSGE    abi.U32 = 8  // rxe_dma_info.cur_sge
	dmaNumSGE    abi.U32 = 12 // rxe_dma_info.num_sge
	dmaSGEOffset abi.U32 = 16 // rxe_dma_info.sge_offset
)

// struct rxe_sge (rdma/rdma_user_rxe.h).
const (
	sgeSize           = 16 // rxe_sge
	sgeAddr   abi.U64 = 0  // rxe_sge.addr
	sgeLength abi.U32 = 8  // rxe_sge.length
	sgeLkey   abi.U32 = 12 // rxe_sge.lkey
)

// struct ib_uverbs_wc (rdma/ib_user_verbs.h).
const (
	wcSize                    = 48 // ib_uverbs_wc
	wcWRID           abi.U64  = 0  // ib_uverbs_wc.wr_id
	wcStatus         abi.U32  = 8  // ib_uverbs_wc.status
	wcOpcode         abi.U32  = 12 // ib_uverbs_wc.opcode
	wcVendorErr      abi.U32  = 16 // ib_uverbs_wc.vendor_err
	wcByteLen        abi.U32  = 20 // ib_uverbs_wc.byte_len
	wcImmData        abi.BE32 = 24 // ib_uverbs_wc.ex.imm_data
	wcInvalidateRkey abi.U32  = 24 // ib_uverbs_wc.ex.invalidate_rkey
	wcQPNum          abi.U32  = 28 // ib_uverbs_wc.qp_num
	wcWcFlags        abi.U32  = 36 // ib_uverbs_wc.wc_flags
)
