/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_TUNE_CORES_H
#define TERN_RUNTIME_MODEL_TUNE_CORES_H

/* Speeds of kinds of cores, where there are several: kept with the tuner's choices. */

#include "runtime/model/tune/guard.h"
#include "threads/topology.h"

/*
 * Replaces the announced speeds of *t by those that the cache folder has for these kinds, else by
 * measured ones, which are then kept there; folder may be NULL. Nothing is measured unless
 * `measure`, and nothing at all is done for one kind of core or another machine's topology.
 */
void tern_tune_cores(const tern_guard *guard, const char *folder, bool measure, tern_topology *t);

#endif
