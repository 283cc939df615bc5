/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_SPEED_BANDWIDTH_H
#define TERN_TOOLS_SPEED_BANDWIDTH_H

/*
 * Measures how fast this machine's memory can be read, repeatedly while something else is measured.
 * A child process does it, so that its buffer does not count in this process's peak memory; it does
 * not use the processor while it waits.
 */

#include <stdint.h>
#include <sys/types.h>

typedef struct bandwidth_meter {
    pid_t child; /* 0: none */
    int socket;  /* requests: a number of threads; replies: GB/s */
} bandwidth_meter;

/* Starts the child; call it while this process has no other threads. If it fails, every measurement
 * is 0. */
bandwidth_meter bandwidth_open(void);

/*
 * GB/s (1e9 bytes) that `threads` threads read together: the best of six passes over 256 MiB, in
 * which each thread reads its own part once, forwards. Three passes sum words, three multiply a
 * matrix of int8 codes with this machine's kernel. Passes cycle through a buffer of more than four
 * last-level caches. Takes about 0.1 s, the first time more. 0 if it could not be measured.
 */
double bandwidth_measure(const bandwidth_meter *m, uint32_t threads);

/* Ends the child. */
void bandwidth_close(bandwidth_meter *m);

#endif
