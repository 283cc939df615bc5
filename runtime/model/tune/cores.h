/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_TUNE_CORES_H
#define TERN_RUNTIME_MODEL_TUNE_CORES_H

/* Speeds of the kinds of cores of a machine that has several, kept with the tuner's choices. */

#include "runtime/model/tune/guard.h"
#include "threads/topology.h"

/*
 * Replaces the announced speeds of *t by those that the cache folder has for these kinds, else by
 * measured ones, which are then kept there; `folder` may be NULL. Measures nothing unless
 * `measure`. Does nothing at all if there is one kind of core, or the topology is another
 * machine's.
 */
void tern_tune_cores(const tern_guard *guard, const char *folder, bool measure, tern_topology *t);

#endif
