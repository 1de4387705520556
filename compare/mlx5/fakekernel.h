/* A kernel with one mlx5 device and no hardware, inside the process: see fakekernel.c. */
#ifndef FAKEKERNEL_H
#define FAKEKERNEL_H

#include <stdint.h>

/* What the provider told the kernel last. */
struct fake_queues {
	uint8_t *cq;	   /* ring of 64-byte completion entries */
	uint32_t cq_slots; /* a power of two */
	uint32_t uidx;	   /* by which completions name the queue pair */
	uint32_t qpn;
};

extern struct fake_queues fake;

/* fake_start makes the device visible to ibv_get_device_list. Call it first. */
void fake_start(void);

#endif
