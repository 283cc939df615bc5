/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_STAGES_H
#define TERN_RUNTIME_ENGINE_FORWARD_STAGES_H

/* Regions of a pass, with the marks of their stages (threads/stages.h). */

#include "threads/stages.h"

/*
 * Runs tern_team_run and measures it, for a team of s->count workers. The time since the caller's
 * last mark counts as work of the caller alone, during which the others waited. The time of each
 * worker after the body's own marks counts as work on `last`; after the body a worker waits for the
 * others. Without stages (NULL) it is just tern_team_run.
 */
void tern_stages_run(tern_stages *s, tern_team *team, tern_team_body *body, void *argument,
                     tern_stage last);

#endif
