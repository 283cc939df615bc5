/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_MODEL_TOGETHER_H
#define TERN_RUNTIME_MODEL_MODEL_TOGETHER_H

/* Models that ranks open together (tern/ranks.h). */

#include "runtime/model/model.h"

/*
 * Called by every rank when it has opened the model, or has failed to: m is NULL then, and *err
 * says why. The outcome is the same for all: TERN_OK if all opened models of the same weights,
 * options and version of tern; else the failure of the first rank that has one, or TERN_ERR_RANKS,
 * which names what differs.
 */
TERN_MUST_CHECK tern_status tern_model_agree(tern_model *m, tern_ranks *ranks, tern_status status,
                                             tern_error *err);

/* Tells the other ranks that the model is being freed, where they follow this one. */
void tern_model_part(tern_model *m);

#endif
