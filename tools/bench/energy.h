/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_BENCH_ENERGY_H
#define TERN_TOOLS_BENCH_ENERGY_H

/*
 * Energy that the processor packages take, by the counters of RAPL (running average power limit)
 * as the kernel shows them in a folder: for each package NAME a folder with the files `name`
 * ("package-0"), `energy_uj` (a counter of microjoules that wraps around) and
 * `max_energy_range_uj` (its largest value). Everything that runs on the machine counts. Often only
 * the administrator may read them, and most virtual machines have none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENERGY_FOLDER "/sys/class/powercap"

enum { ENERGY_PACKAGES = 16 };

/* The packages of a machine, and where their counters stood. */
typedef struct energy_meter {
    char path[ENERGY_PACKAGES][128]; /* of each package's folder */
    uint64_t range[ENERGY_PACKAGES];
    uint64_t last[ENERGY_PACKAGES];
    size_t n; /* 0: not readable here */
} energy_meter;

/* Finds the packages in a folder such as ENERGY_FOLDER and starts the measurement. False, with
 * n == 0, when there is none or one of them cannot be read: a sum of some would be wrong. */
bool energy_open(energy_meter *m, const char *folder);

/*
 * Joules since energy_open or the last call; a counter that ran over once in between is right, so
 * ask at least every few minutes (the range lasts for half an hour at 100 W). Below 0 when a
 * counter could not be read.
 */
double energy_joules(energy_meter *m);

#endif
