/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DISPATCH_PROOF_H
#define TERN_DISPATCH_PROOF_H

/*
 * Hypervisors and emulators announce instructions that they then refuse, and a program that
 * believes them dies with an illegal instruction. So every instruction set of the table is executed
 * once, under a fault guard, before its kernels may be selected.
 */

#include "dispatch/select.h"

/*
 * The features of `announced` that survive: instruction sets are executed in the order given,
 * weakest first; when one faults (SIGILL) or gives a wrong result, the features that no sound set
 * needs and this one does are taken out. Installs a handler for SIGILL and restores the old one;
 * other threads that hit an illegal instruction meanwhile are handled as if it were not there.
 */
uint64_t tern_prove_features(uint64_t announced, const tern_isa_info *isas, size_t count);

#endif
