/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_LOAD_LATE_TUNING_H
#define TERN_TOOLS_LOAD_LATE_TUNING_H

/* Tuning for the next start, which answering commands do after their answer is printed
 * (docs/tuning.md). */

#include "tools/load/loader.h"

/* True if this command tunes after its answer; other commands tune while they open the model. */
bool late_tuning_wanted(const options *o);

/* Tells the tuner how fast the session's latest answer was decoded: n tokens, of which half took at
 * most so many milliseconds each and n_drafted were guessed. */
void late_tuning_note(const loaded *l, size_t n, double p50_ms, uint64_t n_drafted);

/* Makes the remaining measurements, once; with --verbose it says so. `stop` NULL: it runs until a
 * signal asks for the end. A stopped run can be continued. */
void late_tuning_run(const options *o, loaded *l, tern_tune_stop *stop);

#endif
