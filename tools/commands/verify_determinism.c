/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tern verify-determinism: the same tokens through every instruction set, packed layout, number of
 * threads and division of the prompt. All must give the keys, values and logits of the first run.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tern/device.h"
#include "tern/tern.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/commands/determinism.h"
#include "tools/load/loader.h"
#include "tools/load/model_hint.h"
#include "tools/load/together.h"

enum { POSITIONS = 48 };

/* The way in which the tokens are evaluated. */
typedef struct feeding {
    uint32_t threads;
    uint32_t split; /* tokens per call; 0: all at once */
    uint32_t batch; /* tokens per pass; 0: the default */
    bool beside;    /* another sequence of the same model advances alternately */
} feeding;

static const feeding feedings[] = {
    {1, 0, 0, false}, {2, 0, 0, false}, {3, 7, 0, false}, {1, 1, 0, false},
    {2, 1, 0, false}, {2, 0, 5, false}, {3, 5, 2, true},  {2, 1, 0, true},
};
static const struct {
    const char *name;
    bool on_devices; /* devices have kernels for it */
} layouts[] = {
#define LAYOUT(name, text, family, accuracy, devices) {text, devices},
    TERN_TERNARY_LAYOUT_LIST(LAYOUT)
#undef LAYOUT
};

enum { FEEDINGS = sizeof feedings / sizeof *feedings, LAYOUTS = sizeof layouts / sizeof *layouts };

typedef struct verification {
    const options *o;
    const char *path;
    tern_format kv;
    uint32_t positions;
    int32_t tokens[POSITIONS];
    record first; /* of the first run; all others are compared with it */
    bool have_first;
    unsigned runs;
} verification;

static tern_status session_for(const verification *v, const tern_model *model, const feeding *f,
                               tern_session **out, tern_error *err) {
    tern_session_params params = tern_session_params_default();
    params.n_ctx = v->positions;
    params.threads = f->threads;
    params.n_batch = f->batch;
    params.kv = v->kv;
    params.keep_all = true;
    return tern_session_new(model, &params, out, err);
}

/*
 * Evaluates the tokens in one session, while a second one, if there is one, evaluates other tokens
 * at the same pace. `logits` is aligned and gets those of all tokens.
 */
static tern_status feed(const verification *v, const feeding *f, tern_session *s,
                        tern_session *other, float *logits, record *r, tern_error *err) {
    const uint32_t piece = f->split > 0 ? f->split : v->positions;
    tern_status status = TERN_OK;
    for (uint32_t at = 0; status == TERN_OK && at < v->positions; at += piece) {
        const uint32_t n = v->positions - at < piece ? v->positions - at : piece;
        if (other != NULL) {
            status = tern_session_eval(other, v->tokens + v->positions - at - n, n,
                                       TERN_LOGITS_NONE, NULL, err);
        }
        if (status == TERN_OK)
            status = tern_session_eval(s, v->tokens + at, n, TERN_LOGITS_ALL, logits, err);
        if (status == TERN_OK) {
            memcpy(r->logits + (size_t)at * r->n_vocab, logits,
                   (size_t)n * r->n_vocab * sizeof *logits);
        }
    }
    if (status == TERN_OK)
        record_cache(r, s);
    return status;
}

/* Reports how the tokens were evaluated, from what the sessions say. */
static void report(const verification *v, const feeding *f, const tern_session *s,
                   const tern_session *other) {
    const tern_session_work work = tern_session_work_done(s);
    remark("  %u threads, %" PRIu64 " passes, %u tokens a call, batches of %u",
           tern_session_threads(s), work.passes, f->split > 0 ? f->split : v->positions,
           tern_session_batch(s));
    if (other != NULL)
        remark(", beside %u tokens of another sequence", tern_session_position(other));
    remark("\n");
}

static int run(const verification *v, const tern_model *model, const feeding *f, record *r) {
    float *logits = record_logits_buffer(r);
    tern_session *s = NULL;
    tern_session *other = NULL;
    tern_error err = {0};
    tern_status status =
        logits == NULL ? tern_fail(&err, TERN_ERR_NOMEM, "no memory for logits") : TERN_OK;
    if (status == TERN_OK)
        status = session_for(v, model, f, &s, &err);
    if (status == TERN_OK && f->beside)
        status = session_for(v, model, f, &other, &err);
    if (status == TERN_OK)
        status = feed(v, f, s, other, logits, r, &err);
    if (status == TERN_OK && options_switch(v->o, OPT_VERBOSE))
        report(v, f, s, other);
    tern_session_free(&s);
    tern_session_free(&other);
    free(logits);
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}

/* Compares a run with the first one. */
static int judge(const verification *v, const char *place, const char *layout, const feeding *f,
                 const record *r) {
    const record_difference d = record_compare(&v->first, r);
    char where[256];
    if (d.part == RECORD_SAME)
        return EXIT_DONE;
    record_describe(r, &d, where, sizeof where);
    complain("not one answer: %s, %s, %u threads, %u tokens a call, batch %u%s: %s", place, layout,
             f->threads, f->split > 0 ? f->split : v->positions, f->batch,
             f->beside ? ", beside another sequence" : "", where);
    return EXIT_FAILED;
}

/* Evaluates the tokens on one opened model in every way. */
static int check_model(verification *v, const tern_model *model, const char *where,
                       const char *layout) {
    record r = {0};
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < FEEDINGS; i++) {
        record *into = v->have_first ? &r : &v->first;
        record_free(into);
        if (!record_new(model, v->kv, v->positions, into)) {
            status = EXIT_FAILED;
            break;
        }
        status = run(v, model, &feedings[i], into);
        if (status == EXIT_DONE && v->have_first)
            status = judge(v, where, layout, &feedings[i], into);
        v->have_first = v->have_first || status == EXIT_DONE;
        v->runs++;
    }
    record_free(&r);
    return status;
}

/* Chooses tokens that are as different as the vocabulary allows. */
static void choose_tokens(verification *v, const tern_model *model) {
    tern_model_info info;
    tern_model_describe(model, &info);
    v->positions = info.n_ctx_train < POSITIONS ? info.n_ctx_train : POSITIONS;
    for (uint32_t i = 0; i < v->positions; i++)
        v->tokens[i] = (int32_t)((i * UINT64_C(2654435761) >> 8) % info.n_vocab);
}

int determinism_open(const options *o, const char *path, const determinism_place *where,
                     tern_model **model) {
    char cache[PATH_MAX];
    tern_model_params params;
    tern_error err = {0};
    if (params_read(o, cache, &params, &err) != TERN_OK) {
        (void)complain_error(&err);
        return EXIT_USAGE;
    }
    params.isa = where->isa;
    params.disable = NULL; /* the place is one of those that --disable allows */
    params.layout = where->layout;
    params.device = where->device;
    if (tern_model_open(path, &params, model, &err) != TERN_OK)
        return complain_of_model(path, o->model_may_be_prompt, &err);
    return EXIT_DONE;
}

static bool is_ternary(const tern_model *model, tern_format kv) {
    const tern_kernel_row *kernels[64];
    const size_t n = tern_model_kernels(model, kv, kernels, 64);
    for (size_t i = 0; i < n && i < 64; i++)
        if (tern_layout_input(kernels[i]->layout) == TERN_INPUT_TOKEN &&
            kernels[i]->op == TERN_OP_GEMV)
            return true;
    return false;
}

/* Checks an instruction set or a device, in every layout that matters for the model. */
static int check_place(verification *v, determinism_place where) {
    const char *name = where.device != NULL ? where.device : where.isa;
    bool ternary = true;
    for (size_t i = 0; i < (ternary ? LAYOUTS : 1); i++) {
        tern_model *model = NULL;
        if (where.device != NULL && !layouts[i].on_devices)
            continue;
        where.layout = layouts[i].name;
        const int opened = determinism_open(v->o, v->path, &where, &model);
        if (opened != EXIT_DONE)
            return opened;
        ternary = is_ternary(model, v->kv);
        choose_tokens(v, model);
        const int status = together_follows() ? together_follow(model)
                                              : check_model(v, model, name, layouts[i].name);
        tern_model_free(&model);
        if (status != EXIT_DONE)
            return status;
        out_print("%-12s %-8s %u runs: the same\n", name, ternary ? layouts[i].name : "", FEEDINGS);
    }
    return EXIT_DONE;
}

/* Checks the device that was asked for; "auto" only if it works. */
static int check_device(verification *v) {
    const char *name = options_text(v->o, OPT_DEVICE);
    tern_device *device = NULL;
    tern_error err = {0};
    if (strcmp(name, "cpu") == 0)
        return EXIT_DONE;
    if (strcmp(name, "auto") == 0 && tern_device_open("cuda", &device, &err) != TERN_OK) {
        remark("%s\n", err.message);
        return EXIT_DONE;
    }
    tern_device_close(&device);
    return check_place(v, (determinism_place){.device = "cuda"});
}

int cmd_verify_determinism(const options *o) {
    verification v = {.o = o, .kv = loader_kv_format(o), .path = loader_model_path(o, true)};
    uint64_t mask;
    int status = v.path == NULL ? EXIT_USAGE : loader_check_isa(o, &mask);
    if (status == EXIT_DONE && options_given(o, OPT_SCHEDULES))
        return determinism_schedules(o, v.path, mask);
    for (size_t i = 0; status == EXIT_DONE && tern_isa_name(i) != NULL; i++)
        if (tern_isa_runs(i, mask))
            status = check_place(&v, (determinism_place){.isa = tern_isa_name(i)});
    if (status == EXIT_DONE)
        status = check_device(&v);
    if (status == EXIT_DONE && !together_follows()) {
        char hex[65];
        record_hash(&v.first, hex);
        out_print("one answer   %s  (%u runs of %u tokens)\n", hex, v.runs, v.positions);
    }
    record_free(&v.first);
    return status;
}
