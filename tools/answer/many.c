/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/answer/many.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/answer/figures.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/out.h"
#include "tools/model/json.h"
#include "tools/touch/touch_options.h"

typedef struct many {
    const options *o;
    const loaded *l;
    const answer_options *how;
    answerer *answerer;
    tern_generation total; /* numbers and times of all answers */
    uint64_t dequantized;
    bool json, failed;
    json_t *results;
} many;

bool many_wanted(const options *o) {
    return options_given(o, OPT_PROMPTS_FILE) || options_integer(o, OPT_ROUNDS) > 1;
}

static bool write_text(const char *bytes, size_t size, void *user) {
    const many *m = user;
    return (m->json || (out_write(bytes, size) && out_flush())) && !interrupt_seen();
}

static void add_to_total(many *m) {
    const tern_generation *g = &m->answerer->figures;
    m->total.n_prompt += g->n_prompt;
    m->total.n_generated += g->n_generated;
    m->total.prefill_seconds += g->prefill_seconds;
    m->total.decode_seconds += g->decode_seconds;
    m->dequantized += m->answerer->dequantized;
}

/* ---- the results of each -----------------------------------------------------------------------
 */

static void keep_result(many *m, size_t number, uint64_t round, const tern_error *err) {
    json_t *result =
        json_pack("{s:I, s:I}", "prompt", (json_int_t)number, "round", (json_int_t)round);
    if (err != NULL) {
        json_object_set_new(result, "error", json_text(err->message, strlen(err->message)));
    } else {
        figures_set_answer(result, m->answerer, m->l);
    }
    json_array_append_new(m->results, result);
}

static int print_json(many *m) {
    json_t *root = json_object();
    json_object_set(root, "results", m->results);
    figures_set_rates(root, &m->total, m->l);
    figures_set_process(root, m->l);
    figures_set_choices(root, m->o);
    touch_set_json(root, m->answerer->touch);
    return json_print(root);
}

static void report(many *m, size_t number, uint64_t round, const tern_error *err) {
    if (!m->json && err == NULL) {
        out_print("\n");
        out_flush();
        if (wants_remarks(options_switch(m->o, OPT_VERBOSE))) {
            figures_print(m->answerer, m->l);
        }
    } else if (!m->json) {
        complain("prompt %zu: %s", number, err->message);
    }
    if (m->json) {
        keep_result(m, number, round, err);
    }
}

/* ---- one after the other -----------------------------------------------------------------------
 */

static tern_status answer(many *m, const prompt *p, tern_error *err) {
    const bool echo = options_switch(m->o, OPT_ECHO) && !m->json;
    const answer_request request = answer_options_request(m->how, m->o, p, write_text, m);
    const tern_status status = tern_session_rewind(m->l->session, 0, err);
    if (status != TERN_OK) {
        return status;
    }
    if (echo && p->text != NULL) {
        out_write(p->text, p->size);
    }
    return answerer_answer(m->answerer, &request, err);
}

static void answer_rounds(many *m, const prompt *p, size_t number) {
    const uint64_t rounds = options_integer(m->o, OPT_ROUNDS);
    for (uint64_t round = 1; round <= rounds && !interrupt_seen(); round++) {
        tern_error err = {0};
        if (answer(m, p, &err) == TERN_OK) {
            add_to_total(m);
            report(m, number, round, NULL);
        } else {
            m->failed = true;
            report(m, number, round, &err);
        }
    }
}

static int finish(many *m) {
    int status = loader_check_file(m->l);
    if (m->json && status == EXIT_DONE) {
        status = print_json(m);
    }
    json_decref(m->results);
    if (options_switch(m->o, OPT_STRICT) && m->dequantized > 0) {
        complain("strict: %" PRIu64 " rows of weights were expanded to floats", m->dequantized);
        return EXIT_FAILED;
    }
    if (status != EXIT_DONE || m->failed) {
        return EXIT_FAILED;
    }
    return interrupt_status(EXIT_DONE);
}

int many_answer(const options *o, const loaded *l, const answer_options *how, answerer *a,
                const prompts *p) {
    many m = {.o = o, .l = l, .how = how, .answerer = a, .json = options_switch(o, OPT_JSON)};
    for (size_t i = 0; i < p->n; i++) {
        const int status =
            p->items[i].ids != NULL ? EXIT_DONE : prompt_tokenize(o, l, &p->items[i]);
        if (status != EXIT_DONE) {
            return status;
        }
    }
    m.results = json_array();
    interrupt_catch();
    for (size_t i = 0; i < p->n && !interrupt_seen(); i++) {
        answer_rounds(&m, &p->items[i], i + 1);
    }
    return finish(&m);
}
