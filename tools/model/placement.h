/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_MODEL_PLACEMENT_H
#define TERN_TOOLS_MODEL_PLACEMENT_H

/* --affinity, --numa, --replicate and what became of them. */

#include "tern/tern.h"
#include "tools/cli/options.h"
#include "tools/model/json.h"

/* What the options ask for, into places, replicate and its limit. TERN_ERR_ARG when --numa is no
 * policy. */
TERN_MUST_CHECK tern_status placement_read(const options *o, tern_model_params *params,
                                           tern_error *err);

/*
 * Whether tern_model_open refused params for a node that the machine lacks, which is wrong usage;
 * the message then names the option.
 */
bool placement_lack_node(const tern_model_params *params, tern_error *err);

/* A line on standard error where the system refused to bind something; refused: errno, 0 for none.
 */
void placement_report(int refused);

/* A line on standard error where a node was left without a replica. */
void placement_report_replicas(const tern_model_loading *loading);

/* Lines for people: the machine, and where the threads of a session would run. False, here and
 * below, after a complaint. */
bool placement_print(const tern_model *model);

/* affinity, numa, nodes_online */
void placement_set_json(json_t *root, const tern_model *model);

/* machine: processors, cores, sockets, nodes, and where the threads of a session would run */
bool placement_set_machine_json(json_t *root, const tern_model *model);

#endif
