/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_MODEL_REPLICAS_H
#define TERN_RUNTIME_MODEL_MODEL_REPLICAS_H

/*
 * Copies of a model's hot weights on every node (threads/replica.h), for models that are opened
 * with `replicate`. tern_load_list_hot lists the hot weights of m->list, first without their data
 * and then with it. Workers find the copies through tern_model_weights (model.h).
 */

#include "runtime/model/model.h"

/* Call after planning. Chooses the pieces that fit into `limit` bytes, and computes the bytes of a
 * replica and how many there would be for the workers of that many threads. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_model_plan_replicas(tern_model *m, uint64_t limit,
                                                     uint32_t threads, tern_error *err);

/*
 * Call after everything has been loaded. Makes the planned replicas, for the nodes of the team.
 * Nodes that lack memory for one are left out and reported in tern_model_loading.replica_problem; a
 * strict model, and the NUMA policy "strict", refuse that (TERN_ERR_STRICT).
 */
TERN_MUST_CHECK tern_status tern_model_make_replicas(tern_model *m, uint64_t limit, tern_team *team,
                                                     tern_error *err);

void tern_model_free_replicas(tern_model *m);

#endif
