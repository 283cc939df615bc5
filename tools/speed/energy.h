/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_SPEED_ENERGY_H
#define TERN_TOOLS_SPEED_ENERGY_H

/*
 * Energy that the processor packages use, by the counters of RAPL (running average power limit).
 * The kernel shows them in a folder: each package NAME is a folder with the files `name`
 * ("package-0"), `energy_uj` (a counter of microjoules that wraps around) and `max_energy_range_uj`
 * (its largest value). Everything that runs on the machine counts. Often only the administrator may
 * read them, and most virtual machines have none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENERGY_FOLDER "/sys/class/powercap"

enum { ENERGY_PACKAGES = 16 };

/* The packages of a machine, and the previous values of their counters. */
typedef struct energy_meter {
    char path[ENERGY_PACKAGES][128]; /* of each package's folder */
    uint64_t range[ENERGY_PACKAGES];
    uint64_t last[ENERGY_PACKAGES];
    size_t n; /* 0: cannot be read here */
} energy_meter;

/* Finds the packages in a folder such as ENERGY_FOLDER and starts the measurement. False, with n ==
 * 0, if there are none or one cannot be read: a partial sum would be wrong. */
bool energy_open(energy_meter *m, const char *folder);

/*
 * Joules since energy_open or the previous call. One wrap of a counter in between is handled, so
 * call it at least every few minutes (the range lasts for half an hour at 100 W). Negative if a
 * counter could not be read.
 */
double energy_joules(energy_meter *m);

#endif
