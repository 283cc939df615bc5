/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_TILES_EMULATOR_H
#define TERN_TESTS_TILES_EMULATOR_H

/*
 * AMX for processors that have none. The instructions fault there; a handler of SIGILL does what
 * they say and goes on after them. So the rows of the library run as they are compiled, on any
 * processor with AVX-512 VBMI. Where AMX is, nothing is emulated.
 *
 * A program that contains it is linked with --wrap of sigaction, syscall and tern_cpu_announced
 * (tests/tiles/CMakeLists.txt): the library sees AMX as if it were announced, and Linux as if it
 * allowed tiles; PRETEND_TILES=refused makes it refuse them. An instruction that a processor would
 * refuse (tiles that are not open, or of other shapes) faults as it does there.
 */

#include <stdbool.h>
#include <stdint.h>

/* Whether tiles are emulated: false where the processor has AMX. */
bool tile_emulated(void);

/* Whether this thread's tiles are open: 8 KB that the system would have to save. */
bool tile_open(void);

/* Multiplications of tiles by this thread so far, and requests of permission by the process. */
uint64_t tile_multiplications(void);
uint64_t tile_requests(void);

#endif
