/* SPDX-License-Identifier: Apache-2.0 */
/* tern verify-determinism --schedules N: random schedules of many sequences, each compared with the
 * sequence alone. */

#include <inttypes.h>
#include <stdio.h>

#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/commands/determinism.h"
#include "tools/eval/schedules.h"

enum { ISAS = 32, OPEN = 2 }; /* a schedule needs two models; large ones fill the memory */

typedef struct opened {
    tern_model *model;
    size_t isa;
} opened;

typedef struct trial {
    const options *o;
    const char *path;
    const char *isas[ISAS];
    opened models[OPEN]; /* the latest one first */
    int status;          /* of the last model that failed to open */
} trial;

static void swap(trial *t) {
    const opened first = t->models[0];
    t->models[0] = t->models[1];
    t->models[1] = first;
}

/* The model for an instruction set. It replaces the less recently used of the two models. */
static const tern_model *model_of(void *user, uint64_t number, size_t isa, tern_error *err) {
    trial *t = user;
    (void)number; /* one model for all */
    if (t->models[0].model == NULL || t->models[0].isa != isa)
        swap(t);
    opened *m = &t->models[0];
    if (m->model == NULL || m->isa != isa) {
        tern_model_free(&m->model);
        m->isa = isa;
        t->status =
            determinism_open(t->o, t->path, &(determinism_place){.isa = t->isas[isa]}, &m->model);
    }
    if (m->model == NULL)
        (void)tern_fail(err, TERN_ERR_STATE, "%s does not open for %s", t->path, t->isas[isa]);
    return m->model;
}

static int check_context(trial *t, schedules *s) {
    tern_error err = {0};
    tern_model_info info;
    const tern_model *model = model_of(t, 0, 0, &err);
    if (model == NULL)
        return t->status;
    tern_model_describe(model, &info);
    if (info.n_ctx_train < SCHEDULES_MIN_CTX) {
        complain("%s: a context of %" PRIu32 " positions, schedules need %d", t->path,
                 info.n_ctx_train, SCHEDULES_MIN_CTX);
        return EXIT_FAILED;
    }
    s->only = s->n_isas;
    return EXIT_DONE;
}

static void print_totals(const schedules_totals *t, uint64_t asked) {
    out_print("%" PRIu64 " of %" PRIu64 " schedules: the same  (%" PRIu64 " sequences, %" PRIu64
              " tokens, %" PRIu64 " cancelled, %" PRIu64 " tokens shared, %" PRIu64
              " set aside, %" PRIu64 " guesses right)\n",
              t->schedules, asked, t->sequences, t->tokens, t->cancelled, t->shared_tokens,
              t->set_aside, t->guesses_right);
}

/* Runs schedules until one differs or a signal comes. */
static int run_all(const options *o, schedules *s) {
    const uint64_t first = options_integer(o, OPT_SEED);
    const uint64_t n = options_integer(o, OPT_SCHEDULES);
    const bool remarks = wants_remarks(options_switch(o, OPT_VERBOSE));
    interrupt_catch();
    for (uint64_t i = 0; i < n && !interrupt_seen(); i++) {
        if (remarks) {
            (void)fprintf(stderr, "\rschedule %" PRIu64 " of %" PRIu64 "%s", i + 1, n,
                          i + 1 < n ? "" : "\n");
        }
        if (!schedules_run(s, first + i)) {
            complain("not one answer: %s (again: --schedules 1 --seed %" PRIu64 ")", s->message,
                     first + i);
            return EXIT_FAILED;
        }
    }
    print_totals(&s->totals, n);
    return interrupt_status(EXIT_DONE);
}

int determinism_schedules(const options *o, const char *path, uint64_t mask) {
    trial t = {.o = o, .path = path};
    schedules s = {.model = model_of, .user = &t};
    for (size_t i = 0; tern_isa_name(i) != NULL && s.n_isas < ISAS; i++)
        if (tern_isa_runs(i, mask))
            t.isas[s.n_isas++] = tern_isa_name(i);
    int status = check_context(&t, &s);
    if (status == EXIT_DONE)
        status = run_all(o, &s);
    for (size_t i = 0; i < OPEN; i++)
        tern_model_free(&t.models[i].model);
    return status;
}
