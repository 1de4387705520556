package mlx5

import "github.com/byteexpress/byteexpress/internal/abi"

// Layout of the driver's and the NIC's structs as bytes. TestABI checks each line
// against what a C compiler makes of the headers.

// struct mlx5_ib_alloc_ucontext_req_v2 (rdma/mlx5-abi.h).
const (
	contextReqSize                      = 32 // mlx5_ib_alloc_ucontext_req_v2
	contextReqTotalBFRegs       abi.U32 = 0  // mlx5_ib_alloc_ucontext_req_v2.total_num_bfregs
	contextReqLowLatencyBFRegs  abi.U32 = 4  // mlx5_ib_alloc_ucontext_req_v2.num_low_latency_bfregs
	contextReqFlags             abi.U32 = 8  // mlx5_ib_alloc_ucontext_req_v2.flags
	contextReqMaxCQEVersion     abi.U8  = 16 // mlx5_ib_alloc_ucontext_req_v2.max_cqe_version
	contextReqLibCaps           abi.U64 = 24 // mlx5_ib_alloc_ucontext_req_v2.lib_caps
	contextReqAllocDevx                 = 1  // MLX5_IB_ALLOC_UCTX_DEVX
	contextReqLibCap4KUAR               = 1  // MLX5_LIB_CAP_4K_UAR
	contextReqLibCapDynamicUARs         = 2  // MLX5_LIB_CAP_DYN_UAR
	contextReqDefaultBFRegs             = 16 // MLX5_DEF_TOT_UUARS
	cqeVersionUIDX                      = 1  // MLX5_CQE_VERSION_V1
)

// struct mlx5_ib_alloc_ucontext_resp (rdma/mlx5-abi.h).
const (
	contextRespSize                   = 72 // mlx5_ib_alloc_ucontext_resp
	contextRespBFRegSize      abi.U32 = 4  // mlx5_ib_alloc_ucontext_resp.bf_reg_size
	contextRespTotBFRegs      abi.U32 = 8  // mlx5_ib_alloc_ucontext_resp.tot_bfregs
	contextRespMaxSQDescSize  abi.U16 = 16 // mlx5_ib_alloc_ucontext_resp.max_sq_desc_sz
	contextRespMaxRQDescSize  abi.U16 = 18 // mlx5_ib_alloc_ucontext_resp.max_rq_desc_sz
	contextRespMaxSendBlocks  abi.U32 = 20 // mlx5_ib_alloc_ucontext_resp.max_send_wqebb
	contextRespMaxRecvWR      abi.U32 = 24 // mlx5_ib_alloc_ucontext_resp.max_recv_wr
	contextRespMaxSRQRecvWR   abi.U32 = 28 // mlx5_ib_alloc_ucontext_resp.max_srq_recv_wr
	contextRespCQEVersion     abi.U8  = 44 // mlx5_ib_alloc_ucontext_resp.cqe_version
	contextRespUARsPerPage    abi.U32 = 60 // mlx5_ib_alloc_ucontext_resp.num_uars_per_page
	contextRespBFRegsPerUAR           = 2  // MLX5_NUM_NON_FP_BFREGS_PER_UAR
	contextMmapRegularPage            = 0  // MLX5_IB_MMAP_REGULAR_PAGE
	contextRespLengthReported abi.U32 = 40 // mlx5_ib_alloc_ucontext_resp.response_length
)

// struct mlx5_ib_alloc_pd_resp, mlx5_ib_create_cq and its answer (rdma/mlx5-abi.h).
const (
	allocPDRespSize              = 4  // mlx5_ib_alloc_pd_resp
	createCQSize                 = 32 // mlx5_ib_create_cq
	createCQBufAddr      abi.U64 = 0  // mlx5_ib_create_cq.buf_addr
	createCQDBAddr       abi.U64 = 8  // mlx5_ib_create_cq.db_addr
	createCQCQESize      abi.U32 = 16 // mlx5_ib_create_cq.cqe_size
	createCQFlags        abi.U16 = 22 // mlx5_ib_create_cq.flags
	createCQUARPageIndex abi.U16 = 24 // mlx5_ib_create_cq.uar_page_index
	createCQFlagUARIndex         = 2  // MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX
	createCQRespSize             = 8  // mlx5_ib_create_cq_resp
	createCQRespCQN      abi.U32 = 0  // mlx5_ib_create_cq_resp.cqn
)

// struct mlx5_ib_resize_cq, mlx5_ib_create_srq and its answer (rdma/mlx5-abi.h).
const (
	resizeCQSize              = 16 // mlx5_ib_resize_cq
	resizeCQBufAddr   abi.U64 = 0  // mlx5_ib_resize_cq.buf_addr
	resizeCQCQESize   abi.U16 = 8  // mlx5_ib_resize_cq.cqe_size
	createSRQSize             = 32 // mlx5_ib_create_srq
	createSRQBufAddr  abi.U64 = 0  // mlx5_ib_create_srq.buf_addr
	createSRQDBAddr   abi.U64 = 8  // mlx5_ib_create_srq.db_addr
	createSRQUIDX     abi.U32 = 24 // mlx5_ib_create_srq.uidx
	createSRQRespSize         = 8  // mlx5_ib_create_srq_resp
	createSRQRespSRQN abi.U32 = 0  // mlx5_ib_create_srq_resp.srqn
)

// struct mlx5_ib_create_qp and its answer (rdma/mlx5-abi.h).
const (
	createQPSize                   = 56   // mlx5_ib_create_qp
	createQPBufAddr        abi.U64 = 0    // mlx5_ib_create_qp.buf_addr
	createQPDBAddr         abi.U64 = 8    // mlx5_ib_create_qp.db_addr
	createQPSQCount        abi.U32 = 16   // mlx5_ib_create_qp.sq_wqe_count
	createQPRQCount        abi.U32 = 20   // mlx5_ib_create_qp.rq_wqe_count
	createQPRQShift        abi.U32 = 24   // mlx5_ib_create_qp.rq_wqe_shift
	createQPFlags          abi.U32 = 28   // mlx5_ib_create_qp.flags
	createQPUIDX           abi.U32 = 32   // mlx5_ib_create_qp.uidx
	createQPBFRegIndex     abi.U32 = 36   // mlx5_ib_create_qp.bfreg_index
	createQPFlagUARIndex           = 1024 // MLX5_QP_FLAG_UAR_PAGE_INDEX
	createQPFlagScatterCQE         = 2    // MLX5_QP_FLAG_SCATTER_CQE
	createQPRespSize               = 40   // mlx5_ib_create_qp_resp
	createQPRespBFReg      abi.U32 = 0    // mlx5_ib_create_qp_resp.bfreg_index
)

// struct mlx5_wqe_ctrl_seg (rdma-core, providers/mlx5/mlx5dv.h), its opcodes and bits.
const (
	ctrlSize                      = 16  // mlx5_wqe_ctrl_seg
	ctrlOpmodIdxOpcode   abi.BE32 = 0   // mlx5_wqe_ctrl_seg.opmod_idx_opcode
	ctrlQPNDS            abi.BE32 = 4   // mlx5_wqe_ctrl_seg.qpn_ds
	ctrlImm              abi.BE32 = 12  // mlx5_wqe_ctrl_seg.imm
	ctrlCQUpdate                  = 8   // MLX5_WQE_CTRL_CQ_UPDATE
	ctrlSolicited                 = 2   // MLX5_WQE_CTRL_SOLICITED
	ctrlFence                     = 128 // MLX5_WQE_CTRL_FENCE
	ctrlSmallFence                = 32  // MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE
	blockSize                     = 64  // MLX5_SEND_WQE_BB
	blockShift                    = 6   // MLX5_SEND_WQE_SHIFT
	opcodeSendInvalidate          = 1   // MLX5_OPCODE_SEND_INVAL
	opcodeWrite                   = 8   // MLX5_OPCODE_RDMA_WRITE
	opcodeWriteImm                = 9   // MLX5_OPCODE_RDMA_WRITE_IMM
	opcodeSend                    = 10  // MLX5_OPCODE_SEND
	opcodeSendImm                 = 11  // MLX5_OPCODE_SEND_IMM
	opcodeRead                    = 16  // MLX5_OPCODE_RDMA_READ
	opcodeCompareSwap             = 17  // MLX5_OPCODE_ATOMIC_CS
	opcodeFetchAdd                = 18  // MLX5_OPCODE_ATOMIC_FA
	opcodeUMR                     = 37  // MLX5_OPCODE_UMR
)

// The other segments of a request (rdma-core, providers/mlx5/mlx5dv.h).
const (
	raddrSize                = 16         // mlx5_wqe_raddr_seg
	raddrAddr       abi.BE64 = 0          // mlx5_wqe_raddr_seg.raddr
	raddrRKey       abi.BE32 = 8          // mlx5_wqe_raddr_seg.rkey
	raddrReserved   abi.BE32 = 12         // mlx5_wqe_raddr_seg.reserved
	atomicSize               = 16         // mlx5_wqe_atomic_seg
	atomicSwapAdd   abi.BE64 = 0          // mlx5_wqe_atomic_seg.swap_add
	atomicCompare   abi.BE64 = 8          // mlx5_wqe_atomic_seg.compare
	dataSize                 = 16         // mlx5_wqe_data_seg
	dataByteCount   abi.BE32 = 0          // mlx5_wqe_data_seg.byte_count
	dataLKey        abi.BE32 = 4          // mlx5_wqe_data_seg.lkey
	dataAddr        abi.BE64 = 8          // mlx5_wqe_data_seg.addr
	dataInvalidLKey          = 256        // MLX5_INVALID_LKEY
	inlineHeader             = 4          // mlx5_wqe_inl_data_seg
	inlineFlag               = 2147483648 // MLX5_INLINE_SEG
	nextSize                 = 16         // mlx5_wqe_srq_next_seg
	nextIndex       abi.BE16 = 2          // mlx5_wqe_srq_next_seg.next_wqe_index
	recordRecv               = 0          // MLX5_RCV_DBR
	recordSend               = 1          // MLX5_SND_DBR
)

// struct mlx5_cqe64, of an error mlx5_err_cqe (rdma-core, providers/mlx5/mlx5dv.h).
const (
	cqeSize                        = 64 // mlx5_cqe64
	cqeFlagsRQPN          abi.BE32 = 24 // mlx5_cqe64.flags_rqpn
	cqeSRQNUIDX           abi.BE32 = 32 // mlx5_cqe64.srqn_uidx
	cqeImmInvalPKey       abi.BE32 = 36 // mlx5_cqe64.imm_inval_pkey
	cqeByteCount          abi.BE32 = 44 // mlx5_cqe64.byte_cnt
	cqeSopDropQPN         abi.BE32 = 56 // mlx5_cqe64.sop_drop_qpn
	cqeVendorSyndrome     abi.U8   = 54 // mlx5_err_cqe.vendor_err_synd
	cqeSyndrome           abi.U8   = 55 // mlx5_err_cqe.syndrome
	cqeOpOwn              abi.U8   = 63 // mlx5_cqe64.op_own
	cqeOwnerMask                   = 1  // MLX5_CQE_OWNER_MASK
	cqeInline32                    = 4  // MLX5_INLINE_SCATTER_32
	cqeInline64                    = 8  // MLX5_INLINE_SCATTER_64
	cqeReq                         = 0  // MLX5_CQE_REQ
	cqeRespWriteImm                = 1  // MLX5_CQE_RESP_WR_IMM
	cqeRespSend                    = 2  // MLX5_CQE_RESP_SEND
	cqeRespSendImm                 = 3  // MLX5_CQE_RESP_SEND_IMM
	cqeRespSendInvalidate          = 4  // MLX5_CQE_RESP_SEND_INV
	cqeResize                      = 5  // MLX5_CQE_RESIZE_CQ
	cqeReqErr                      = 13 // MLX5_CQE_REQ_ERR
	cqeRespErr                     = 14 // MLX5_CQE_RESP_ERR
	cqeInvalid                     = 15 // MLX5_CQE_INVALID
)

// What an error completion's syndrome says (rdma-core, providers/mlx5/mlx5dv.h).
const (
	syndromeLocalLength   = 1        // MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR
	syndromeLocalQPOp     = 2        // MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR
	syndromeLocalProt     = 4        // MLX5_CQE_SYNDROME_LOCAL_PROT_ERR
	syndromeFlush         = 5        // MLX5_CQE_SYNDROME_WR_FLUSH_ERR
	syndromeMWBind        = 6        // MLX5_CQE_SYNDROME_MW_BIND_ERR
	syndromeBadResp       = 16       // MLX5_CQE_SYNDROME_BAD_RESP_ERR
	syndromeLocalAccess   = 17       // MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR
	syndromeRemoteInvReq  = 18       // MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR
	syndromeRemoteAccess  = 19       // MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR
	syndromeRemoteOp      = 20       // MLX5_CQE_SYNDROME_REMOTE_OP_ERR
	syndromeRetryExceeded = 21       // MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR
	syndromeRNRExceeded   = 22       // MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR
	syndromeRemoteAborted = 34       // MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR
	armRegister           = 32       // MLX5_CQ_DOORBELL
	armSolicited          = 16777216 // MLX5_CQ_DB_REQ_NOT_SOL
	recordConsumer        = 0        // MLX5_CQ_SET_CI
	recordArm             = 1        // MLX5_CQ_ARM_DB
)

// A UMR request's body: struct mlx5_wqe_umr_ctrl_seg, mlx5_wqe_mkey_context_seg and
// mlx5_wqe_umr_klm_seg (rdma-core, providers/mlx5/mlx5dv.h).
const (
	umrCtrlSize                   = 48        // mlx5_wqe_umr_ctrl_seg
	umrCtrlFlags         abi.U8   = 0         // mlx5_wqe_umr_ctrl_seg.flags
	umrCtrlKLMOctowords  abi.BE16 = 4         // mlx5_wqe_umr_ctrl_seg.klm_octowords
	umrCtrlMkeyMask      abi.BE64 = 8         // mlx5_wqe_umr_ctrl_seg.mkey_mask
	umrInline                     = 128       // MLX5_WQE_UMR_CTRL_FLAG_INLINE
	umrCheckFree                  = 32        // MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE
	umrTranslationOffset          = 16        // MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET
	umrCheckQPN                   = 8         // MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN
	umrMaskLen                    = 1         // MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN
	umrMaskStartAddr              = 64        // MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR
	umrMaskMkey                   = 8192      // MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY
	umrMaskQPN                    = 16384     // MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN
	umrMaskLocalWrite             = 262144    // MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE
	umrMaskRemoteRead             = 524288    // MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ
	umrMaskRemoteWrite            = 1048576   // MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE
	umrMaskAtomic                 = 2097152   // MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC
	umrMaskFree                   = 536870912 // MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE
	keySize                       = 64        // mlx5_wqe_mkey_context_seg
	keyFree              abi.U8   = 0         // mlx5_wqe_mkey_context_seg.free
	keyAccess            abi.U8   = 2         // mlx5_wqe_mkey_context_seg.access_flags
	keyQPNMkey           abi.BE32 = 4         // mlx5_wqe_mkey_context_seg.qpn_mkey
	keyStartAddr         abi.BE64 = 16        // mlx5_wqe_mkey_context_seg.start_addr
	keyLen               abi.BE64 = 24        // mlx5_wqe_mkey_context_seg.len
	keyIsFree                     = 64        // MLX5_WQE_MKEY_CONTEXT_FREE
	keyAtomic                     = 64        // MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC
	keyRemoteWrite                = 32        // MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE
	keyRemoteRead                 = 16        // MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ
	klmByteCount         abi.BE32 = 0         // mlx5_wqe_umr_klm_seg.byte_count
	klmMkey              abi.BE32 = 4         // mlx5_wqe_umr_klm_seg.mkey
	klmAddress           abi.BE64 = 8         // mlx5_wqe_umr_klm_seg.address
)
