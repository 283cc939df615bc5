/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_TUNE_MODEL_H
#define TERN_RUNTIME_MODEL_TUNE_MODEL_H

/* The matrices of a model and what is chosen for them. */

#include "runtime/model/model.h"
#include "runtime/model/tune/measure.h"

enum { TERN_TUNE_KEYS = 64 };

/*
 * What was measured for a linear map of the model and decides its layout and kernels; NULL: they
 * are the table's, or the layout was asked for. Valid as long as the model.
 */
const tern_tune_choice *tern_model_tuned(const tern_model *m, const tern_linear *linear);

/* The `stream` of the model's keys. */
uint64_t tern_tune_stream_of(const tern_model *m);

/*
 * The different keys of a model whose linear maps are planned: without ternary matrices if their
 * layout was asked for. Writes at most TERN_TUNE_KEYS (models have four to eight kinds of
 * matrices; what goes beyond is not tuned), returns how many.
 */
size_t tern_tune_keys(const tern_model *m, uint32_t threads, tern_tune_key keys[TERN_TUNE_KEYS]);

/*
 * Fills m->tuning, for models whose linear maps are planned: with what the folder (NULL: none)
 * holds, and, when there is a team, with measurements of what it lacks, which are kept there;
 * `later`: of these only what decides the layout. Whatever fails leaves the table's choice.
 */
void tern_tune_model(tern_model *m, uint32_t threads, tern_team *team, const char *folder,
                     bool later);

/* Whether one of the keys has no choice. */
bool tern_tune_lacks(const tern_tuning *known, const tern_tune_key *keys, size_t n);

/* Measures with the tuner the keys that have no choice in *known; returns how many have one now. */
size_t tern_tune_missing(tern_tuner *tuner, const tern_tune_key *keys, size_t n,
                         tern_tuning *known);

#endif
