/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_BENCH_BANDWIDTH_H
#define TERN_TOOLS_BENCH_BANDWIDTH_H

/*
 * How fast this machine's memory can be read, asked again and again while something else is
 * measured. A child process does it, so that its buffer is not part of this process's peak memory,
 * and waits without using the processor in between.
 */

#include <stdint.h>
#include <sys/types.h>

typedef struct bandwidth_meter {
    pid_t child; /* 0: none */
    int socket;  /* to it: a number of threads; from it: GB/s */
} bandwidth_meter;

/* Starts the child; call it while this process has no other threads. Where that fails every
 * measurement is 0. */
bandwidth_meter bandwidth_open(void);

/*
 * GB/s (1e9 bytes) that `threads` threads read together: the best of six passes over 256 MiB, each
 * thread its own part, once, forwards. Three passes add up words, three multiply a matrix of int8
 * codes by the kernel of this machine. Passes go round a buffer of more than four last-level
 * caches. Takes 0.1 s or so, the first time more. 0 when it could not be measured.
 */
double bandwidth_measure(const bandwidth_meter *m, uint32_t threads);

/* Ends the child. */
void bandwidth_close(bandwidth_meter *m);

#endif
