/*
 * Stands between libibverbs and the kernel: the program's own open, fstat, stat,
 * socket, ioctl and mmap come before the C library's, so that Debian's libmlx5 finds
 * one ConnectX device, gets plain memory for its doorbell registers, and an answer
 * to each request. Nothing of it is hardware; what the provider's code costs the
 * processor is what is measured.
 */
#define _GNU_SOURCE
#include "fakekernel.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#define NODE "/dev/infiniband/uverbs0"
#define NODE_MAJOR 231
#define NODE_MINOR 192
#define NETLINK_RDMA 20

/* A register that only one queue pair has, so that ringing it takes no lock. */
#define OWN_REGISTER 28

struct fake_queues fake;
static int node = -1;
static uint32_t handles;

static void put(const char *dir, const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f)) {
		perror(path);
		exit(1);
	}
}

static char root[] = "/tmp/fakekernel.XXXXXX";

static int drop(const char *path, const struct stat *st, int type, struct FTW *w)
{
	(void)st, (void)type, (void)w;
	return remove(path);
}

static void drop_all(void)
{
	nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

void fake_start(void)
{
	char dir[256];

	if (!mkdtemp(root)) {
		perror(root);
		exit(1);
	}
	atexit(drop_all);
	for (const char **p = (const char *[]){ "", "/class", "/class/infiniband", "/class/infiniband/mlx5_0",
						"/class/infiniband/mlx5_0/device", "/class/infiniband_verbs",
						"/class/infiniband_verbs/uverbs0", NULL };
	     *p; p++) {
		snprintf(dir, sizeof(dir), "%s%s", root, *p);
		mkdir(dir, 0700);
	}
	snprintf(dir, sizeof(dir), "%s/class/infiniband_verbs", root);
	put(dir, "abi_version", "6\n");
	put(dir, "uverbs0/ibdev", "mlx5_0\n");
	put(dir, "uverbs0/dev", "231:192\n");
	put(dir, "uverbs0/abi_version", "1\n");
	snprintf(dir, sizeof(dir), "%s/class/infiniband/mlx5_0", root);
	put(dir, "node_type", "1: CA\n");
	put(dir, "node_guid", "0000:0000:0000:0001\n");
	put(dir, "fw_ver", "16.35.1000\n");
	put(dir, "device/modalias", "pci:v000015B3d00001017sv000015B3sd00000007bc02sc00i00\n");
	put(dir, "device/vendor", "0x15b3\n");
	put(dir, "device/device", "0x1017\n");
	setenv("SYSFS_PATH", root, 1);
}

int socket(int domain, int type, int protocol)
{
	if (protocol == NETLINK_RDMA) { /* devices are found in sysfs instead */
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return syscall(SYS_socket, domain, type, protocol);
}

int open(const char *path, int flags, ...)
{
	va_list a;
	int mode;

	if (!strcmp(path, NODE))
		return node = memfd_create("uverbs0", MFD_CLOEXEC);
	va_start(a, flags);
	mode = va_arg(a, int);
	va_end(a);
	return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void as_node(struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFCHR | 0600;
	st->st_rdev = makedev(NODE_MAJOR, NODE_MINOR);
}

int stat(const char *path, struct stat *st)
{
	if (strcmp(path, NODE))
		return fstatat(AT_FDCWD, path, st, 0);
	as_node(st);
	return 0;
}

int fstat(int fd, struct stat *st)
{
	if (fd != node || node < 0)
		return fstatat(fd, "", st, AT_EMPTY_PATH);
	as_node(st);
	return 0;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (fd >= 0 && fd == node) { /* doorbell registers */
		fd = -1;
		off = 0;
		flags = MAP_PRIVATE | MAP_ANONYMOUS;
		prot |= PROT_READ;
	}
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

static struct ib_uverbs_attr *attr(struct ib_uverbs_ioctl_hdr *h, int id)
{
	for (int i = 0; i < h->num_attrs; i++)
		if (h->attrs[i].attr_id == id)
			return &h->attrs[i];
	return NULL;
}

/* What an attribute points to; short input lies in the attribute itself. */
static void *data(struct ib_uverbs_attr *a, int in)
{
	return in && a->len <= 8 ? (void *)&a->data : (void *)(uintptr_t)a->data;
}

static void put32(struct ib_uverbs_attr *a, uint32_t v)
{
	if (a)
		memcpy(data(a, 0), &v, sizeof(v));
}

static void get_context(struct ib_uverbs_ioctl_hdr *h)
{
	struct mlx5_ib_alloc_ucontext_resp r = {
		.bf_reg_size = 512, .tot_bfregs = 16, .cache_line_size = 64, .max_sq_desc_sz = 1024, .max_rq_desc_sz = 512,
		.max_send_wqebb = 32768, .max_recv_wr = 32768, .max_srq_recv_wr = 32768, .num_ports = 1,
		.response_length = sizeof(r), .cqe_version = 1, .log_uar_size = 12, .num_uars_per_page = 1,
	};
	struct ib_uverbs_attr *out = attr(h, UVERBS_ATTR_UHW_OUT);

	put32(attr(h, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS), 1);
	memcpy(data(out, 0), &r, out->len < sizeof(r) ? out->len : sizeof(r));
}

static void create_cq(struct ib_uverbs_ioctl_hdr *h)
{
	struct mlx5_ib_create_cq *in = data(attr(h, UVERBS_ATTR_UHW_IN), 1);
	uint32_t cqe;

	memcpy(&cqe, data(attr(h, UVERBS_ATTR_CREATE_CQ_CQE), 1), sizeof(cqe));
	attr(h, UVERBS_ATTR_CREATE_CQ_HANDLE)->data = ++handles;
	put32(attr(h, UVERBS_ATTR_CREATE_CQ_RESP_CQE), cqe);
	put32(attr(h, UVERBS_ATTR_UHW_OUT), handles);
	fake.cq = (void *)(uintptr_t)in->buf_addr;
	fake.cq_slots = cqe + 1;
}

static void create_qp(struct ib_uverbs_ioctl_hdr *h)
{
	struct mlx5_ib_create_qp *in = data(attr(h, UVERBS_ATTR_UHW_IN), 1);
	struct ib_uverbs_attr *caps = attr(h, UVERBS_ATTR_CREATE_QP_CAP), *out = attr(h, UVERBS_ATTR_CREATE_QP_RESP_CAP);

	attr(h, UVERBS_ATTR_CREATE_QP_HANDLE)->data = ++handles;
	memcpy(data(out, 0), data(caps, 1), out->len);
	fake.qpn = 0x123;
	fake.uidx = in->uidx;
	put32(attr(h, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM), fake.qpn);
	put32(attr(h, UVERBS_ATTR_UHW_OUT), OWN_REGISTER);
}

/* A request of the older interface inside the newer: most need no answer. */
static void invoke_write(struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_attr *cmd = attr(h, UVERBS_ATTR_WRITE_CMD), *out = attr(h, UVERBS_ATTR_CORE_OUT);

	if (out)
		memset(data(out, 0), 0, out->len);
	if (cmd->data == IB_USER_VERBS_CMD_ALLOC_PD) {
		put32(out, ++handles);
		put32(attr(h, UVERBS_ATTR_UHW_OUT), handles);
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	struct ib_uverbs_ioctl_hdr *h;
	va_list a;

	va_start(a, request);
	h = va_arg(a, void *);
	va_end(a);
	if (fd != node || request != RDMA_VERBS_IOCTL)
		return syscall(SYS_ioctl, fd, request, h);
	switch (h->object_id << 16 | h->method_id) {
	case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_GET_CONTEXT:
		get_context(h);
		return 0;
	case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_INVOKE_WRITE:
		invoke_write(h);
		return 0;
	case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_QUERY_PORT:
		return 0;
	case UVERBS_OBJECT_ASYNC_EVENT << 16 | UVERBS_METHOD_ASYNC_EVENT_ALLOC:
		attr(h, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE)->data_s64 = memfd_create("events", MFD_CLOEXEC);
		return 0;
	case UVERBS_OBJECT_CQ << 16 | UVERBS_METHOD_CQ_CREATE:
		create_cq(h);
		return 0;
	case UVERBS_OBJECT_QP << 16 | UVERBS_METHOD_QP_CREATE:
		create_qp(h);
		return 0;
	}
	errno = EOPNOTSUPP;
	return -1;
}
