/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_PROCESSOR_H
#define TERN_PROCESSOR_H

/*
 * The abilities of this machine: the processor's features, and the instruction sets of the kernel
 * table. Features are bits of a mask; kernels say in theirs what they need.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

TERN_API_BEGIN

/*
 * The features of this machine that were proven to work, as bits of dispatch/cpu.h, restricted to
 * instruction set `isa` (a name of the table; NULL: the environment's TERN_ISA, else everything)
 * and without those of `disable` (comma-separated names; NULL: TERN_DISABLE, else none). An unknown
 * name, or one that this machine cannot run or that is disabled, is TERN_ERR_ISA; the message lists
 * the valid names. TERN_PROCESSOR of the environment takes away what that processor lacks.
 */
TERN_MUST_CHECK tern_status tern_cpu_mask(const char *isa, const char *disable, uint64_t *mask,
                                          tern_error *err);

/*
 * Names of the instruction sets that the processor announces but that faulted or gave a wrong
 * result when they were executed here, so that no kernel of them is used. Writes at most capacity
 * names (static storage), returns how many there are.
 */
size_t tern_cpu_refused(const char **names, size_t capacity);

/*
 * The announced features whose instruction sets have been executed here and gave the right result;
 * executed at the first call. Thread-safe; the same value every time.
 */
uint64_t tern_cpu_features(void);

/*
 * Features that the processor announces and the system refuses to this process, as it may refuse
 * AMX's tiles: none of them is in tern_cpu_features. Thread-safe.
 */
uint64_t tern_cpu_forbidden(void);

/* Name of the lowest feature in a mask that is not 0, as kernels.toml has it ("AVX512F"); NULL for
 * a bit that is not a feature. Static storage. */
const char *tern_cpu_feature_name(uint64_t features);

/* Processor name for reports ("AMD EPYC", ...); static storage, never NULL. */
const char *tern_cpu_name(void);

/* Instruction set i of the kernel table, weakest first; NULL past the last one. Static storage. */
const char *tern_isa_name(size_t i);

/* Architecture of set i as uname calls it ("x86_64", "aarch64"), "any" for the set that all have;
 * NULL past the last one. Static storage. */
const char *tern_isa_architecture(size_t i);

/* True if set i is compiled for this architecture and needs none but these features. */
bool tern_isa_runs(size_t i, uint64_t features);

TERN_API_END

#endif
