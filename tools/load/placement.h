/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_LOAD_PLACEMENT_H
#define TERN_TOOLS_LOAD_PLACEMENT_H

/* --affinity, --numa, --replicate and their effects. */

#include "base/json_tree/value.h"
#include "tern/tern.h"
#include "tools/cli/options.h"

/* Reads the options into places, replicate and its limit. TERN_ERR_ARG: --numa is not a policy. */
TERN_MUST_CHECK tern_status placement_read(const options *o, tern_model_params *params,
                                           tern_error *err);

/*
 * True if tern_model_open refused params because the machine lacks a node. That is wrong usage; the
 * message then names the option.
 */
bool placement_lack_node(const tern_model_params *params, tern_error *err);

/* Prints a line on standard error if the system refused to bind something; refused: errno, or 0. */
void placement_report(int refused);

/* Prints a line on standard error if a node has no replica. */
void placement_report_replicas(const tern_model_loading *loading);

/* Prints lines for people: the machine, and where the threads of a session would run. This and
 * placement_set_machine_json return false after a complaint. */
bool placement_print(const tern_model *model);

/* Sets "affinity", "numa" and "nodes_online". */
void placement_set_json(json_t *root, const tern_model *model);

/*
 * Sets "machine": processors, cores, sockets, nodes, and where the threads of a session would run.
 */
bool placement_set_machine_json(json_t *root, const tern_model *model);

#endif
