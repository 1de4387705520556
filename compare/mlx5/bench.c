/*
 * The benchmarks of provider/mlx5 (bench_test.go) for Debian's libmlx5, over memory of
 * the same kind: same queues, same requests, same entries, same names, in the format
 * of "go test -bench".
 */
#include "fakekernel.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REQUESTS 256 /* the queue's capacity asked for, as in the Go benchmark */
#define MOST 16

static double seconds = 1; /* a benchmark; the program's argument */
static struct ibv_qp *qp;
static struct ibv_cq *cq;
static uint32_t next;	/* entries written ever */
static uint32_t blocks; /* posted ever */
static char payload[64];

static const struct kind {
	const char *name;
	enum ibv_wr_opcode opcode;
	int flags;
	uint32_t length;
	uint32_t code;	 /* of the entry */
	uint32_t blocks; /* a request */
} kinds[] = {
	{ "inline64", IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_INLINE, sizeof(payload), 10, 2 },
	{ "write1sge", IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 4096, 8, 1 },
	{ "writeimm", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED, 4096, 9, 1 },
};

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static void setup(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;
	struct ibv_pd *pd;

	check(list && list[0], "no device: libmlx5 of rdma-core is needed");
	ctx = ibv_open_device(list[0]);
	check(!!ctx, "ibv_open_device");
	pd = ibv_alloc_pd(ctx);
	check(!!pd, "ibv_alloc_pd");
	cq = ibv_create_cq(ctx, 1023, NULL, NULL, 0);
	check(!!cq, "ibv_create_cq");
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = REQUESTS, .max_recv_wr = 1, .max_send_sge = 4, .max_recv_sge = 1, .max_inline_data = 124 },
	};
	qp = ibv_create_qp(pd, &init);
	check(!!qp, "ibv_create_qp");
	for (enum ibv_qp_state s = IBV_QPS_INIT; s <= IBV_QPS_RTS; s++) {
		struct ibv_qp_attr attr = { .qp_state = s, .port_num = 1 };

		check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ibv_modify_qp");
	}
}

/* Writes the NIC's entries for n requests of which the first begins at a block. */
static void complete(const struct kind *k, int n, uint32_t first)
{
	for (int i = 0; i < n; i++, next++, first += k->blocks) {
		uint8_t *e = fake.cq + (next & (fake.cq_slots - 1)) * 64;
		uint32_t uidx = htonl(fake.uidx), qpn = htonl(k->code << 24 | fake.qpn);
		uint16_t counter = htons(first);

		memcpy(e + 32, &uidx, 4);
		memcpy(e + 56, &qpn, 4);
		memcpy(e + 60, &counter, 2);
		((volatile uint8_t *)e)[63] = (next & fake.cq_slots) != 0;
	}
}

static void poll_all(int n)
{
	struct ibv_wc wc[MOST];

	check(ibv_poll_cq(cq, MOST, wc) == n && wc[0].status == IBV_WC_SUCCESS, "ibv_poll_cq");
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static struct ibv_send_wr wr[MOST];

static void requests(const struct kind *k, int n)
{
	static struct ibv_sge sge;

	sge = (struct ibv_sge){ (uintptr_t)payload, k->length, 9 };
	for (int i = 0; i < n; i++)
		wr[i] = (struct ibv_send_wr){
			.next = i + 1 < n ? &wr[i + 1] : NULL, .sg_list = &sge, .num_sge = 1, .opcode = k->opcode,
			.send_flags = k->flags, .imm_data = htonl(3), .wr.rdma = { 1ull << 32, 7 },
		};
}

static void post(const struct kind *k, int n)
{
	struct ibv_send_wr *bad;

	check(!ibv_post_send(qp, wr, &bad), "ibv_post_send");
	blocks += k->blocks * n;
}

static void report(const char *name, const struct kind *k, int n, long rounds, double t)
{
	printf("Benchmark%s/kind=%s/wrs=%d \t%ld\t%.2f ns/op\t%.2f ns/wr\n", name, k->name, n, rounds, t * 1e9 / rounds, t * 1e9 / rounds / n);
	fflush(stdout);
}

/* Posting; one completion empties the queue whenever it is full, and is part of it. */
static void bench_post(const struct kind *k, int n)
{
	const int calls = REQUESTS / n;
	double start = now(), t;
	long rounds = 0;

	requests(k, n);
	do {
		for (int i = 0; i < 1000; i++) {
			for (int j = 0; j < calls; j++)
				post(k, n);
			complete(k, 1, blocks - k->blocks);
			poll_all(1);
		}
		rounds += 1000 * calls;
		t = now() - start;
	} while (t < seconds);
	report("PostSend", k, n, rounds, t);
}

/* Polling entries; writing them is part of it. */
static void bench_poll(const struct kind *k, int n)
{
	double start = now(), t;
	long rounds = 0;

	do {
		for (int i = 0; i < 1000; i++) {
			complete(k, n, next);
			poll_all(n);
		}
		rounds += 1000;
		t = now() - start;
	} while (t < seconds);
	report("Poll", k, n, rounds, t);
}

/* Posting, and polling the entries that are written for it. */
static void bench_both(const struct kind *k, int n)
{
	double start = now(), t;
	long rounds = 0;

	requests(k, n);
	do {
		for (int i = 0; i < 1000; i++) {
			uint32_t first = blocks;

			post(k, n);
			complete(k, n, first);
			poll_all(n);
		}
		rounds += 1000;
		t = now() - start;
	} while (t < seconds);
	report("PostPoll", k, n, rounds, t);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		seconds = atof(argv[1]);
	fake_start();
	setup();
	printf("pkg: github.com/byteexpress/byteexpress/provider/mlx5\n");
	void (*const benches[])(const struct kind *, int) = { bench_post, bench_both, bench_poll };

	for (size_t b = 0; b < sizeof(benches) / sizeof(*benches); b++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			for (int n = 1; n <= MOST; n *= MOST)
				benches[b](&kinds[k], n);
	return 0;
}
