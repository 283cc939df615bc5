/* SPDX-License-Identifier: Apache-2.0 */
/* tern run --server: one prompt, answered by a server; remote_many.c has many. */

#include <stdio.h>

#include "tools/cli/interrupt.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/prompt/prompt.h"
#include "tools/remote/remote.h"

typedef struct run {
    const options *o;
    remote *server;
    prompt prompt;
    const json_t *fields;
    remote_answer answer;
    bool json;
} run;

/* Refuses options that need a model in this process; false after a complaint. */
static bool check_options(const options *o) {
    static const option_id local[] = {
        OPT_RECEIPT,       OPT_PROMPT_CACHE, OPT_ROUNDS,  OPT_LOGIT_BIAS,   OPT_STOP_TOKEN,
        OPT_CHAT_TEMPLATE, OPT_JSON_SCHEMA,  OPT_GRAMMAR, OPT_OPEN_OBJECTS, OPT_DRAFT_MODEL};
    for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
        if (o->values[local[i]].source == OPTION_FLAG) {
            complain("--%s: not with --server, whose model is elsewhere",
                     option_describe(local[i])->name);
            return false;
        }
    }
    if (options_switch(o, OPT_STRICT) || options_switch(o, OPT_VERIFY_TOUCH)) {
        complain("--strict: not with --server: nothing is known of how it computes");
        return false;
    }
    if (options_text(o, OPT_TOKENS) != NULL && options_switch(o, OPT_CHAT)) {
        complain("--tokens: not with --chat and --server");
        return false;
    }
    return true;
}

static bool show(void *user, const char *bytes, size_t size) {
    const run *r = user;
    return (r->json || (out_write(bytes, size) && out_flush())) && !interrupt_seen();
}

static json_t *prompt_json(const prompt *p) {
    if (p->text != NULL)
        return json_text(p->text, p->size);
    json_t *ids = json_array();
    for (size_t i = 0; i < p->n; i++)
        json_array_append_new(ids, json_integer(p->ids[i]));
    return ids;
}

tern_status remote_ask(remote *r, const options *o, const prompt *p, const json_t *fields,
                       remote_sink *sink, void *user, remote_answer *out, tern_error *err) {
    const char *system = options_text(o, OPT_SYSTEM);
    const tern_chat_message messages[] = {{.role = "system", .content = system},
                                          {.role = "user", .content = p->text}};
    const size_t first = system == NULL;
    return options_switch(o, OPT_CHAT)
               ? remote_chat(r, messages + first, 2 - first, fields, sink, user, out, err)
               : remote_complete(r, prompt_json(p), fields, sink, user, out, err);
}

static int answer(run *r) {
    tern_error err = {0};
    if (options_switch(r->o, OPT_ECHO) && !r->json && r->prompt.text != NULL)
        out_write(r->prompt.text, r->prompt.size);
    const tern_status status =
        remote_ask(r->server, r->o, &r->prompt, r->fields, show, r, &r->answer, &err);
    if (status != TERN_OK && r->answer.said.size > 0 && !r->json) {
        out_print("\n");
        out_flush();
    }
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}

static const char *end_name(const remote_answer *a) {
    return a->end == REMOTE_INTERRUPTED ? "interrupted" : a->reason;
}

void remote_set_answer(json_t *root, const remote *r, const remote_answer *a) {
    json_object_set_new(root, "text",
                        json_text(a->said.bytes != NULL ? a->said.bytes : "", a->said.size));
    json_object_set_new(root, "stop", json_string(end_name(a)));
    json_object_set_new(root, "server", json_string(remote_place(r)));
    json_object_set_new(root, "model",
                        json_string(a->model[0] != '\0' ? a->model : remote_model(r)));
    if (a->has_usage) {
        json_object_set_new(root, "prompt_tokens", json_integer(a->prompt_tokens));
        json_object_set_new(root, "generated_tokens", json_integer(a->generated_tokens));
    }
    json_object_set_new(root, "first_token_ms", json_number(1e3 * a->first_seconds));
    json_object_set_new(root, "seconds", json_number(a->seconds));
    if (a->digest[0] != '\0')
        json_object_set_new(root, "digest", json_string(a->digest));
}

static int print_json(const run *r) {
    json_t *root = json_object();
    remote_set_answer(root, r->server, &r->answer);
    return json_print(root);
}

static int finish(const run *r) {
    const remote_answer *a = &r->answer;
    if (r->json) {
        const int status = print_json(r);
        return status == EXIT_DONE ? interrupt_status(status) : status;
    }
    out_print("\n");
    out_flush();
    if (wants_remarks(options_switch(r->o, OPT_VERBOSE))) {
        char tokens[96] = "";
        if (a->has_usage) {
            (void)snprintf(tokens, sizeof tokens, "prompt %lld tokens | generated %lld | ",
                           a->prompt_tokens, a->generated_tokens);
        }
        remark("%s%s at %s | first after %.1f ms, all after %.1f ms | stop: %s\n", tokens,
               a->model[0] != '\0' ? a->model : remote_model(r->server), remote_place(r->server),
               1e3 * a->first_seconds, 1e3 * a->seconds, end_name(a));
    }
    return interrupt_status(EXIT_DONE);
}

static int run_one(const options *o, const json_t *fields) {
    run r = {.o = o, .fields = fields, .json = options_switch(o, OPT_JSON)};
    int status = prompt_take(o, &r.prompt);
    if (status == EXIT_DONE)
        status = remote_open(o, &r.server);
    if (status == EXIT_DONE)
        status = answer(&r);
    if (status == EXIT_DONE)
        status = finish(&r);
    remote_answer_free(&r.answer);
    prompt_free(&r.prompt);
    remote_close(&r.server);
    return status;
}

int remote_run(const options *o) {
    int status;
    if (!check_options(o))
        return EXIT_USAGE;
    json_t *fields = remote_fields(o, true, &status);
    if (status != EXIT_DONE)
        return status;
    interrupt_catch();
    status = options_given(o, OPT_PROMPTS_FILE) ? remote_run_many(o, fields) : run_one(o, fields);
    json_decref(fields);
    return status;
}
