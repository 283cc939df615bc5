/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_TUNE_MODEL_H
#define TERN_RUNTIME_MODEL_TUNE_MODEL_H

/* The matrices of a model and what is chosen for them. */

#include "runtime/model/model.h"
#include "runtime/model/tune/measure.h"

enum { TERN_TUNE_KEYS = 64 };

/* The measured choice that decides the layout and kernels of a linear map. NULL: they are the
 * table's, or the layout was asked for. Valid as long as the model. */
const tern_tune_choice *tern_model_tuned(const tern_model *m, const tern_linear *linear);

/* The `stream` of the model's keys. */
uint64_t tern_tune_stream_of(const tern_model *m);

/*
 * The distinct keys of a model whose linear maps are planned, without those of ternary matrices if
 * their layout was asked for. Writes at most TERN_TUNE_KEYS and returns how many. Models have four
 * to eight kinds of matrices; kinds beyond the limit are not tuned.
 */
size_t tern_tune_keys(const tern_model *m, uint32_t threads, tern_tune_key keys[TERN_TUNE_KEYS]);

/*
 * Fills m->tuning, and sets m->ternary if a probe decides it, for a model whose linear maps are
 * planned. Takes the choices that the folder (NULL: none) holds. With a team it also measures what
 * the folder lacks, and keeps that there; `later`: only what decides the layout. If anything fails,
 * the table's choice stays.
 */
void tern_tune_model(tern_model *m, uint32_t threads, tern_team *team, const char *folder,
                     bool later);

/* True if one of the keys has no choice. */
bool tern_tune_lacks(const tern_tuning *known, const tern_tune_key *keys, size_t n);

/* Measures the keys that have no choice in *known, and adds their choices. Returns how many it
 * added. */
size_t tern_tune_missing(tern_tuner *tuner, const tern_tune_key *keys, size_t n,
                         tern_tuning *known);

#endif
