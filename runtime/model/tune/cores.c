/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/tune/cores.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/model/tune/file.h"
#include "runtime/model/tune/measure.h"
#include "threads/speed.h"

/*
 * The measured work: a ternary matrix that fits into any core's own cache, times a batch of tokens.
 */
enum { ROWS = 64, COLS = 1024, STREAM_BYTES = 64 << 10 };

/* Long enough for an idle core to reach its clock while the sample is calibrated. */
static const tern_tune_effort effort = {.rounds = 3, .sample_seconds = 0.0005};

/* The part of the topology that has this speed, as a machine of its own. */
static tern_topology *cores_of(const tern_topology *t, uint32_t speed) {
    tern_topology *part = NULL;
    tern_processor *list = malloc(t->n * sizeof *list);
    uint32_t n = 0;
    for (uint32_t i = 0; list != NULL && i < t->n; i++)
        if (t->processors[i].speed == speed)
            list[n++] = t->processors[i];
    if (n == 0 || tern_topology_of(list, n, t->node_os, t->n_nodes, &part, NULL) != TERN_OK)
        part = NULL;
    free(list);
    return part;
}

/*
 * Times the work on the calling thread, bound to the first core of the kind. 0: it cannot be timed.
 */
static double clock_kind(void *user, const tern_topology *t, uint32_t announced) {
    const tern_guard *const *guard = user;
    const tern_places compact = {.affinity = TERN_AFFINITY_COMPACT};
    tern_topology *part = cores_of(t, announced);
    tern_team *team = NULL;
    tern_tuner *tuner = NULL;
    double seconds = 0.0;
    if (part != NULL && tern_team_new_placed(1, part, &compact, &team, NULL) == TERN_OK &&
        tern_team_refused(team) == 0 &&
        tern_tuner_new(*guard, team, STREAM_BYTES, &effort, &tuner, NULL) == TERN_OK)
        seconds = tern_tuner_batch_seconds(tuner, TERN_FORMAT_I2_S, ROWS, COLS);
    tern_tuner_free(&tuner);
    tern_team_free(&team);
    tern_topology_free(&part);
    return seconds;
}

void tern_tune_cores(const tern_guard *guard, const char *path, bool measure, tern_topology *t) {
    tern_core_speeds speeds = tern_core_kinds(t);
    tern_cache_folder *folder = NULL;
    tern_tuning known = {.n = 0};
    if (speeds.n == 0 || t->foreign)
        return;
    if (path != NULL && tern_cache_folder_open(path, &folder, NULL) == TERN_OK)
        tern_tune_load(folder, guard, &known);
    const bool kept = known.cores.n == speeds.n &&
                      memcmp(known.cores.announced, speeds.announced, sizeof speeds.announced) == 0;
    if (kept)
        speeds = known.cores;
    if (!kept && measure && tern_core_measure(t, clock_kind, &guard, &speeds) && folder != NULL) {
        known.cores = speeds;
        (void)tern_tune_save(folder, guard, &known, NULL);
    }
    tern_topology_set_speeds(t, &speeds);
    tern_tuning_free(&known);
    tern_cache_folder_close(&folder);
}
