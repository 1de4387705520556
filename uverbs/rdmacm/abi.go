package rdmacm

import "github.com/byteexpress/byteexpress/internal/abi"

// Numbers and structs of rdma/rdma_user_cm.h and of what it includes. TestABI checks
// each line against what a C compiler makes of the kernel's headers.

// The ABI and its commands.
const (
	abiVersion       = 4  // RDMA_USER_CM_ABI_VERSION
	ucmaCreateID     = 0  // RDMA_USER_CM_CMD_CREATE_ID
	ucmaDestroyID    = 1  // RDMA_USER_CM_CMD_DESTROY_ID
	ucmaBindIP       = 2  // RDMA_USER_CM_CMD_BIND_IP
	ucmaResolveIP    = 3  // RDMA_USER_CM_CMD_RESOLVE_IP
	ucmaResolveRoute = 4  // RDMA_USER_CM_CMD_RESOLVE_ROUTE
	ucmaQueryRoute   = 5  // RDMA_USER_CM_CMD_QUERY_ROUTE
	ucmaConnect      = 6  // RDMA_USER_CM_CMD_CONNECT
	ucmaListen       = 7  // RDMA_USER_CM_CMD_LISTEN
	ucmaAccept       = 8  // RDMA_USER_CM_CMD_ACCEPT
	ucmaReject       = 9  // RDMA_USER_CM_CMD_REJECT
	ucmaDisconnect   = 10 // RDMA_USER_CM_CMD_DISCONNECT
	ucmaInitQPAttr   = 11 // RDMA_USER_CM_CMD_INIT_QP_ATTR
	ucmaGetEvent     = 12 // RDMA_USER_CM_CMD_GET_EVENT
	ucmaSetOption    = 14 // RDMA_USER_CM_CMD_SET_OPTION
)

// Values inside the commands.
const (
	psTCP    = 0x106 // RDMA_PS_TCP
	qpTypeRC = 2     // IB_UVERBS_QPT_RC
	optionID = 0     // RDMA_OPTION_ID
	idTOS    = 0     // RDMA_OPTION_ID_TOS
	idAfonly = 2     // RDMA_OPTION_ID_AFONLY
)

// struct rdma_ucm_cmd_hdr.
const (
	hdrSize         = 8 // rdma_ucm_cmd_hdr
	hdrCmd  abi.U32 = 0 // rdma_ucm_cmd_hdr.cmd
	hdrIn   abi.U16 = 4 // rdma_ucm_cmd_hdr.in
	hdrOut  abi.U16 = 6 // rdma_ucm_cmd_hdr.out
)

// struct rdma_ucm_create_id and its response.
const (
	createIDSize             = 24 // rdma_ucm_create_id
	createIDUID      abi.U64 = 0  // rdma_ucm_create_id.uid
	createIDResponse abi.U64 = 8  // rdma_ucm_create_id.response
	createIDPS       abi.U16 = 16 // rdma_ucm_create_id.ps
	createIDQPType   abi.U8  = 18 // rdma_ucm_create_id.qp_type
	createIDRespSize         = 4  // rdma_ucm_create_id_resp
	createIDRespID   abi.U32 = 0  // rdma_ucm_create_id_resp.id
)

// struct rdma_ucm_destroy_id and its response.
const (
	destroyIDSize               = 16 // rdma_ucm_destroy_id
	destroyIDResponse   abi.U64 = 0  // rdma_ucm_destroy_id.response
	destroyIDID         abi.U32 = 8  // rdma_ucm_destroy_id.id
	destroyIDRespSize           = 4  // rdma_ucm_destroy_id_resp
	destroyIDRespEvents abi.U32 = 0  // rdma_ucm_destroy_id_resp.events_reported
)

// struct rdma_ucm_bind_ip.
const (
	bindIPSize            = 40 // rdma_ucm_bind_ip
	bindIPAddr abi.Struct = 8  // rdma_ucm_bind_ip.addr
	bindIPID   abi.U32    = 36 // rdma_ucm_bind_ip.id
)

// struct rdma_ucm_resolve_ip.
const (
	resolveIPSize               = 64 // rdma_ucm_resolve_ip
	resolveIPSrc     abi.Struct = 0  // rdma_ucm_resolve_ip.src_addr
	resolveIPDst     abi.Struct = 28 // rdma_ucm_resolve_ip.dst_addr
	resolveIPID      abi.U32    = 56 // rdma_ucm_resolve_ip.id
	resolveIPTimeout abi.U32    = 60 // rdma_ucm_resolve_ip.timeout_ms
)

// struct rdma_ucm_resolve_route.
const (
	resolveRouteSize            = 8 // rdma_ucm_resolve_route
	resolveRouteID      abi.U32 = 0 // rdma_ucm_resolve_route.id
	resolveRouteTimeout abi.U32 = 4 // rdma_ucm_resolve_route.timeout_ms
)

// struct rdma_ucm_query and rdma_ucm_query_route_resp.
const (
	querySize                  = 16  // rdma_ucm_query
	queryResponse   abi.U64    = 0   // rdma_ucm_query.response
	queryID         abi.U32    = 8   // rdma_ucm_query.id
	routeSize                  = 208 // rdma_ucm_query_route_resp
	routeNodeGUID   abi.BE64   = 0   // rdma_ucm_query_route_resp.node_guid
	routePath       abi.Struct = 8   // rdma_ucm_query_route_resp.ib_route
	routeSrc        abi.Struct = 136 // rdma_ucm_query_route_resp.src_addr
	routeDst        abi.Struct = 164 // rdma_ucm_query_route_resp.dst_addr
	routePort       abi.U8     = 196 // rdma_ucm_query_route_resp.port_num
	routeIbdevIndex abi.U32    = 200 // rdma_ucm_query_route_resp.ibdev_index
)

// struct ib_user_path_rec (rdma/ib_user_sa.h).
const (
	pathDGID abi.Struct = 0  // ib_user_path_rec.dgid
	pathSGID abi.Struct = 16 // ib_user_path_rec.sgid
)

// struct rdma_ucm_conn_param.
const (
	connParamSize                    = 272 // rdma_ucm_conn_param
	connParamQPNum        abi.U32    = 0   // rdma_ucm_conn_param.qp_num
	connParamPrivate      abi.Struct = 8   // rdma_ucm_conn_param.private_data
	connParamPrivateLen   abi.U8     = 264 // rdma_ucm_conn_param.private_data_len
	connParamMaxDestReads abi.U8     = 266 // rdma_ucm_conn_param.responder_resources
	connParamMaxReads     abi.U8     = 267 // rdma_ucm_conn_param.initiator_depth
	connParamFlowControl  abi.U8     = 268 // rdma_ucm_conn_param.flow_control
	connParamRetry        abi.U8     = 269 // rdma_ucm_conn_param.retry_count
	connParamRNRRetry     abi.U8     = 270 // rdma_ucm_conn_param.rnr_retry_count
	connParamValid        abi.U8     = 271 // rdma_ucm_conn_param.valid
)

// struct rdma_ucm_connect. It is sent up to the vendor's extension (ece), which older
// kernels do not have; so are the next structs that end with one.
const (
	connectParam abi.Struct = 0   // rdma_ucm_connect.conn_param
	connectID    abi.U32    = 272 // rdma_ucm_connect.id
	connectSize  abi.Struct = 280 // rdma_ucm_connect.ece
)

// struct rdma_ucm_listen.
const (
	listenSize            = 8 // rdma_ucm_listen
	listenID      abi.U32 = 0 // rdma_ucm_listen.id
	listenBacklog abi.U32 = 4 // rdma_ucm_listen.backlog
)

// struct rdma_ucm_accept.
const (
	acceptUID   abi.U64    = 0   // rdma_ucm_accept.uid
	acceptParam abi.Struct = 8   // rdma_ucm_accept.conn_param
	acceptID    abi.U32    = 280 // rdma_ucm_accept.id
	acceptSize  abi.Struct = 288 // rdma_ucm_accept.ece
)

// struct rdma_ucm_reject.
const (
	rejectSize                  = 264 // rdma_ucm_reject
	rejectID         abi.U32    = 0   // rdma_ucm_reject.id
	rejectPrivateLen abi.U8     = 4   // rdma_ucm_reject.private_data_len
	rejectPrivate    abi.Struct = 8   // rdma_ucm_reject.private_data
)

// struct rdma_ucm_disconnect.
const (
	disconnectSize         = 4 // rdma_ucm_disconnect
	disconnectID   abi.U32 = 0 // rdma_ucm_disconnect.id
)

// struct rdma_ucm_set_option.
const (
	setOptionSize           = 24 // rdma_ucm_set_option
	setOptionValue  abi.U64 = 0  // rdma_ucm_set_option.optval
	setOptionID     abi.U32 = 8  // rdma_ucm_set_option.id
	setOptionLevel  abi.U32 = 12 // rdma_ucm_set_option.level
	setOptionName   abi.U32 = 16 // rdma_ucm_set_option.optname
	setOptionLength abi.U32 = 20 // rdma_ucm_set_option.optlen
)

// struct rdma_ucm_get_event and rdma_ucm_event_resp. The response's parameters begin
// at 20 and are not aligned to 8 bytes.
const (
	getEventSize                = 8   // rdma_ucm_get_event
	getEventResponse abi.U64    = 0   // rdma_ucm_get_event.response
	eventUID         abi.U64    = 0   // rdma_ucm_event_resp.uid
	eventID          abi.U32    = 8   // rdma_ucm_event_resp.id
	eventEvent       abi.U32    = 12  // rdma_ucm_event_resp.event
	eventStatus      abi.U32    = 16  // rdma_ucm_event_resp.status
	eventConn        abi.Struct = 20  // rdma_ucm_event_resp.param.conn
	eventSize        abi.Struct = 328 // rdma_ucm_event_resp.ece
)

// struct rdma_ucm_init_qp_attr; the response is struct ib_uverbs_qp_attr
// (rdma/ib_user_verbs.h).
const (
	initQPAttrSize                = 16  // rdma_ucm_init_qp_attr
	initQPAttrResponse abi.U64    = 0   // rdma_ucm_init_qp_attr.response
	initQPAttrID       abi.U32    = 8   // rdma_ucm_init_qp_attr.id
	initQPAttrState    abi.U32    = 12  // rdma_ucm_init_qp_attr.qp_state
	qpAttrSize                    = 144 // ib_uverbs_qp_attr
	qpAttrMask         abi.U32    = 0   // ib_uverbs_qp_attr.qp_attr_mask
	qpAttrState        abi.U32    = 4   // ib_uverbs_qp_attr.qp_state
	qpAttrCurState     abi.U32    = 8   // ib_uverbs_qp_attr.cur_qp_state
	qpAttrPathMTU      abi.U32    = 12  // ib_uverbs_qp_attr.path_mtu
	qpAttrRecvPSN      abi.U32    = 24  // ib_uverbs_qp_attr.rq_psn
	qpAttrSendPSN      abi.U32    = 28  // ib_uverbs_qp_attr.sq_psn
	qpAttrDestNum      abi.U32    = 32  // ib_uverbs_qp_attr.dest_qp_num
	qpAttrAccess       abi.U32    = 36  // ib_uverbs_qp_attr.qp_access_flags
	qpAttrAH           abi.Struct = 40  // ib_uverbs_qp_attr.ah_attr
	qpAttrPKeyIndex    abi.U16    = 124 // ib_uverbs_qp_attr.pkey_index
	qpAttrMaxReads     abi.U8     = 130 // ib_uverbs_qp_attr.max_rd_atomic
	qpAttrMaxDestReads abi.U8     = 131 // ib_uverbs_qp_attr.max_dest_rd_atomic
	qpAttrRNRTimer     abi.U8     = 132 // ib_uverbs_qp_attr.min_rnr_timer
	qpAttrPort         abi.U8     = 133 // ib_uverbs_qp_attr.port_num
	qpAttrTimeout      abi.U8     = 134 // ib_uverbs_qp_attr.timeout
	qpAttrRetry        abi.U8     = 135 // ib_uverbs_qp_attr.retry_cnt
	qpAttrRNRRetry     abi.U8     = 136 // ib_uverbs_qp_attr.rnr_retry
)

// struct ib_uverbs_ah_attr (rdma/ib_user_verbs.h).
const (
	ahGRH         abi.Struct = 0  // ib_uverbs_ah_attr.grh
	ahDLID        abi.U16    = 24 // ib_uverbs_ah_attr.dlid
	ahSL          abi.U8     = 26 // ib_uverbs_ah_attr.sl
	ahSrcPathBits abi.U8     = 27 // ib_uverbs_ah_attr.src_path_bits
	ahStaticRate  abi.U8     = 28 // ib_uverbs_ah_attr.static_rate
	ahIsGlobal    abi.U8     = 29 // ib_uverbs_ah_attr.is_global
	ahPort        abi.U8     = 30 // ib_uverbs_ah_attr.port_num
)

// struct ib_uverbs_global_route (rdma/ib_user_verbs.h).
const (
	grhDGID         abi.Struct = 0  // ib_uverbs_global_route.dgid
	grhFlowLabel    abi.U32    = 16 // ib_uverbs_global_route.flow_label
	grhSGIDIndex    abi.U8     = 20 // ib_uverbs_global_route.sgid_index
	grhHopLimit     abi.U8     = 21 // ib_uverbs_global_route.hop_limit
	grhTrafficClass abi.U8     = 22 // ib_uverbs_global_route.traffic_class
)
