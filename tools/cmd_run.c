/* SPDX-License-Identifier: Apache-2.0 */
/* tern run: a prompt in, text out while it is made, figures at the end. */

#include <inttypes.h>
#include <stdio.h>

#include "tools/answer/figures.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/json.h"
#include "tools/loader.h"
#include "tools/out.h"

typedef struct run {
    const options *o;
    loaded l;
    prompt prompt;
    answerer answerer;
    bool json;
} run;

/* ---- what is asked ----------------------------------------------------------------------------
 */

static tern_sampler_params sampling(const options *o) {
    tern_sampler_params params = tern_sampler_params_default();
    params.temperature = (float)options_real(o, OPT_TEMPERATURE);
    params.top_k = (uint32_t)options_integer(o, OPT_TOP_K);
    params.top_p = (float)options_real(o, OPT_TOP_P);
    params.seed = options_integer(o, OPT_SEED);
    return params;
}

static bool write_text(const char *bytes, size_t size, void *user) {
    const run *r = user;
    return (r->json || (out_write(bytes, size) && out_flush())) && !interrupt_seen();
}

static int answer(run *r) {
    const options *o = r->o;
    const bool echo = options_switch(o, OPT_ECHO) && !r->json;
    const answer_request request = {
        .prompt = r->prompt.ids,
        .n_prompt = r->prompt.n,
        .seed = options_integer(o, OPT_SEED),
        .max_tokens = options_integer(o, OPT_MAX_TOKENS),
        .ignore_end = options_switch(o, OPT_IGNORE_EOS),
        .drop_space = options_switch(o, OPT_CHAT) && !echo, /* an echoed prompt needs it */
        .sink = write_text,
        .user = r,
    };
    if (echo && r->prompt.text != NULL) {
        out_write(r->prompt.text, r->prompt.size);
    }
    interrupt_catch();
    tern_error err = {0};
    if (answerer_answer(&r->answerer, &request, &err) != TERN_OK) {
        return complain_error(&err);
    }
    if (options_switch(o, OPT_STRICT) && r->answerer.dequantized > 0) {
        complain("strict: %" PRIu64 " rows of weights were expanded to floats",
                 r->answerer.dequantized);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

/* ---- what is told -----------------------------------------------------------------------------
 */

#ifdef TERN_HAVE_JANSSON
static int print_json(const run *r) {
    json_t *root = json_object();
    figures_set_answer(root, &r->answerer, &r->l);
    figures_set_process(root, &r->l);
    json_object_set_new(root, "seed", json_unsigned(options_integer(r->o, OPT_SEED)));
    json_object_set_new(root, "deterministic",
                        json_boolean(options_switch(r->o, OPT_DETERMINISTIC)));
    return json_print(root);
}
#endif

static int finish(const run *r) {
    if (r->json) {
        const int status = JSON_OR_NOTHING(print_json(r));
        return interrupt_seen() && status == EXIT_DONE ? EXIT_INTERRUPTED : status;
    }
    out_print("\n");
    out_flush();
    if (wants_remarks(options_switch(r->o, OPT_VERBOSE))) {
        figures_print(&r->answerer, &r->l);
    }
    return interrupt_seen() ? EXIT_INTERRUPTED : EXIT_DONE;
}

int cmd_run(const options *o) {
    run r = {.o = o, .json = options_switch(o, OPT_JSON)};
    int status = loader_open(o, !options_switch(o, OPT_REQUIRE_MODEL), &r.l);
    if (status == EXIT_DONE) {
        status = prompt_read(o, &r.l, &r.prompt);
    }
    if (status == EXIT_DONE) {
        const tern_sampler_params params = sampling(o);
        tern_error err = {0};
        if (answerer_open(&r.answerer, r.l.session, r.l.tokenizer, &params, &err) != TERN_OK) {
            status = complain_error(&err);
        }
    }
    if (status == EXIT_DONE) {
        status = answer(&r);
    }
    if (status == EXIT_DONE) {
        status = finish(&r);
    }
    answerer_close(&r.answerer);
    prompt_free(&r.prompt);
    loader_close(&r.l);
    return status;
}
