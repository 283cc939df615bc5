/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_PEAKS_H
#define TERN_BENCH_PEAKS_H

/*
 * The peak rate of multiply-accumulates of each instruction set, measured by the probes of
 * bench/probe.h. Each probe checks its sum. Threads may measure at the same time.
 */

#include "bench/probe.h"

/* Multiply-adds a second of an instruction set's unit, by this thread's processor time; 0 when the
 * set has no such unit, or when a sum was wrong. */
double tern_roof_macs(const char *isa, tern_unit unit);

/* Processor time of this thread. Other load on the machine does not count. */
double tern_thread_seconds(void);

#endif
