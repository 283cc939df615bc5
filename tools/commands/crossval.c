/* SPDX-License-Identifier: Apache-2.0 */
/* tern crossval: compares tern with the recorded results of another engine. */

#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"
#include "tools/commands/commands.h"
#include "tools/crossval/ask.h"
#include "tools/crossval/report.h"
#include "tools/load/loader.h"

/* Reads the reference: --reference, or the answer of an installed engine to --prompt. */
static int read_reference(const options *o, reference **r) {
    const char *path = options_text(o, OPT_REFERENCE);
    if (path != NULL)
        return crossval_read(path, r);
    if (options_text(o, OPT_PROMPT) == NULL) {
        complain("nothing to compare with: use --reference FILE, which lab/crossval-reference "
                 "makes of another engine, or -p TEXT, to ask one that is installed");
        return EXIT_USAGE;
    }
    const char *model = loader_model_path(o, true);
    return model != NULL ? crossval_ask(model, options_text(o, OPT_PROMPT), r) : EXIT_USAGE;
}

/* A reference of another model would compare nothing. */
static int check_model(const reference *r, const char *path) {
    char hex[65];
    if (r->sha256[0] == '\0')
        return EXIT_DONE;
    const int status = file_sha256(path, hex);
    if (status == EXIT_DONE && strcasecmp(hex, r->sha256) != 0) {
        complain("%s is not the reference's model %s: SHA-256 %.12s..., not %.12s...", path,
                 r->model, hex, r->sha256);
        return EXIT_FAILED;
    }
    return status;
}

/* Chooses the cases to compare: all, or those whose text is --prompt. */
static int choose_cases(const options *o, const reference *r, crossval *x) {
    const char *text = options_text(o, OPT_PROMPT);
    x->cases = calloc(r->n_cases, sizeof *x->cases); /* at least one */
    x->results = calloc(r->n_cases, sizeof *x->results);
    if (x->cases == NULL || x->results == NULL) {
        complain("no memory for %zu cases", r->n_cases);
        return EXIT_FAILED;
    }
    for (size_t i = 0; i < r->n_cases; i++) {
        const reference_case *c = &r->cases[i];
        if (text == NULL || (c->text != NULL && strcmp(text, c->text) == 0))
            x->cases[x->n++] = c;
    }
    if (x->n == 0) {
        complain("none of the reference's %zu cases has the text '%.60s'", r->n_cases, text);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

/* Opens an engine with room for every case, unless --ctx sets the room, and also a session if keys
 * and values are compared. */
static int open_both(const options *o, const crossval *x, loaded *l) {
    size_t positions = options_integer(o, OPT_CONTEXT); /* lists have at most 2^20 tokens */
    bool cache = false;
    for (size_t i = 0; i < x->n; i++) {
        const size_t needed = crossval_positions(x->cases[i]);
        const bool more = options_integer(o, OPT_CONTEXT) == 0 && needed > positions;
        positions = more ? needed : positions;
        cache = cache || crossval_wants_cache(x->cases[i]);
    }
    l->keep_all = true;
    const int status = loader_open_engine_of(o, (uint32_t)positions, l);
    return status == EXIT_DONE && cache ? loader_open_session_of(o, (uint32_t)positions, l)
                                        : status;
}

static int compare(const options *o, loaded *l, crossval *x) {
    tern_error err = {0};
    int status = open_both(o, x, l);
    if (status == EXIT_DONE && crossval_run(l->engine, l->model, l->session, x->reference, x->cases,
                                            x->n, x->results, &err) != TERN_OK)
        status = complain_error(&err);
    if (status != EXIT_DONE)
        return status;
    if (options_switch(o, OPT_JSON))
        status = crossval_print_json(x, l);
    else
        crossval_print(x, &l->info);
    const bool passed = crossval_add_up(x).passed == x->n;
    return status == EXIT_DONE && !passed ? EXIT_FAILED : status;
}

int cmd_crossval(const options *o) {
    loaded l = {0};
    reference *r = NULL;
    crossval x = {.tolerance = options_real(o, OPT_TOLERANCE)};
    int status = read_reference(o, &r);
    if (status == EXIT_DONE) {
        x.reference = r;
        status = choose_cases(o, r, &x);
    }
    if (status == EXIT_DONE)
        status = loader_open_model(o, true, &l);
    if (status == EXIT_DONE)
        status = check_model(r, l.info.path);
    if (status == EXIT_DONE)
        status = compare(o, &l, &x);
    for (size_t i = 0; i < x.n; i++)
        case_result_free(&x.results[i]);
    free(x.cases);
    free(x.results);
    reference_free(&r);
    loader_close(&l);
    return status;
}
