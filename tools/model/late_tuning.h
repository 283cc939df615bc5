/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_MODEL_LATE_TUNING_H
#define TERN_TOOLS_MODEL_LATE_TUNING_H

/* What a command that answers does for the next start, when its answer is out (docs/tuning.md). */

#include "tools/model/loader.h"

/* Whether this command tunes after its answer; others do it while they open the model. */
bool late_tuning_wanted(const options *o);

/* Tells the tuner how fast the session's latest answer was decoded: n tokens, half of them within
 * so many milliseconds each, of which n_drafted were guessed. */
void late_tuning_note(const loaded *l, size_t n, double p50_ms, uint64_t n_drafted);

/* Measures what is left to measure, once; with --verbose it says so. `stop` NULL: until a signal
 * asks for the end. What was stopped may be gone on with. */
void late_tuning_run(const options *o, loaded *l, tern_tune_stop *stop);

#endif
