/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/engine/forward/stages.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *what;
} described[TERN_STAGE_COUNT] = {
#define DESCRIBE(constant, name, what) [TERN_STAGE_##constant] = {name, what},
    TERN_STAGE_LIST(DESCRIBE)
#undef DESCRIBE
};

const char *tern_stage_name(tern_stage stage) {
    return described[stage].name;
}

const char *tern_stage_what(tern_stage stage) {
    return described[stage].what;
}

tern_status tern_stages_new(uint32_t threads, tern_stage_clock *clock, void *user,
                            tern_stages **out, tern_error *err) {
    if (clock == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "stages need a clock and a place for them");
    if (threads == 0)
        return tern_fail(err, TERN_ERR_ARG, "stages of no threads");
    tern_stages *s = malloc(sizeof *s);
    tern_stage_record *records = aligned_alloc(TERN_STAGE_LINE, threads * sizeof *records);
    if (s == NULL || records == NULL) {
        free(records);
        free(s);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the stages of %u threads", threads);
    }
    *s = (tern_stages){.clock = clock, .user = user, .count = threads, .records = records};
    tern_stages_begin(s);
    *out = s;
    return TERN_OK;
}

void tern_stages_free(tern_stages **stages) {
    if (stages == NULL || *stages == NULL)
        return;
    free((*stages)->records);
    free(*stages);
    *stages = NULL;
}

void tern_stages_begin(tern_stages *s) {
    memset(s->records, 0, s->count * sizeof *s->records);
    const uint64_t now = s->clock(s->user);
    for (uint32_t i = 0; i < s->count; i++)
        s->records[i].mark = now;
}

typedef struct region {
    tern_stages *stages;
    tern_team_body *body;
    void *argument;
    tern_stage last;
} region;

static void measured_body(tern_worker worker, void *argument) {
    const region *r = argument;
    tern_stages_note_wait(r->stages, worker.index, TERN_STAGE_START);
    r->body(worker, r->argument);
    tern_stages_note_work(r->stages, worker.index, r->last);
}

void tern_stages_run(tern_stages *s, tern_team *team, tern_team_body *body, void *argument,
                     tern_stage last) {
    if (s == NULL) {
        tern_team_run(team, body, argument);
        return;
    }
    region r = {.stages = s, .body = body, .argument = argument, .last = last};
    const uint64_t begin = s->clock(s->user);
    for (uint32_t i = 0; i < s->count; i++) {
        tern_stage_record *record = &s->records[i];
        tern_stage_mark(record,
                        i == 0 ? &record->work[TERN_STAGE_ALONE] : &record->wait[TERN_STAGE_ALONE],
                        begin);
    }
    tern_team_run(team, measured_body, &r);
    const uint64_t end = s->clock(s->user);
    for (uint32_t i = 0; i < s->count; i++)
        tern_stage_mark(&s->records[i], &s->records[i].wait[last], end);
}

double tern_stages_work(const tern_stages *s, tern_stage stage) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->count; i++)
        sum += s->records[i].work[stage];
    return (double)sum / s->count;
}

double tern_stages_wait(const tern_stages *s, tern_stage stage) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->count; i++)
        sum += s->records[i].wait[stage];
    return (double)sum / s->count;
}
