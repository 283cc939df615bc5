/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_TILES_EMULATOR_H
#define TERN_TESTS_TILES_EMULATOR_H

/*
 * AMX for processors without it. There the instructions fault; a handler of SIGILL executes them
 * and continues after them. So the library's kernels run as compiled on any processor with AVX-512
 * VBMI. On a processor with AMX nothing is emulated.
 *
 * A program that contains it is linked with --wrap of sigaction, syscall and tern_cpu_announced
 * (tests/tiles/CMakeLists.txt). To the library, AMX then seems announced, and Linux seems to allow
 * tiles; PRETEND_TILES=refused makes it refuse them. An instruction that a processor would refuse
 * (tiles that are not open, or have other shapes) faults, as it does there.
 */

#include <stdbool.h>
#include <stdint.h>

/* True if tiles are emulated. A processor with AMX executes them itself. */
bool tile_emulated(void);

/* True if this thread's tiles are open, so that the system would have to save 8 KB. */
bool tile_open(void);

/* Number of tile multiplications by this thread, and of permission requests by the process. */
uint64_t tile_multiplications(void);
uint64_t tile_requests(void);

#endif
