/* SPDX-License-Identifier: Apache-2.0 */
/* tern replay: asks the answers of a recording again, and branches them. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receipts/rules.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/load/loader.h"
#include "tools/replay/ask_again.h"
#include "tools/replay/branch.h"
#include "tools/replay/locate.h"
#include "tools/replay/recording_reader.h"

enum { SHOWN_BYTES = 24 }; /* of a token's text in the table */

typedef struct replaying {
    const options *o;
    again again;
    recording_reader reader;
    json_t *list; /* of --json; else NULL */
    uint64_t equal, differ;
    uint64_t number; /* of the answer, from 0 */
} replaying;

/* ---- what differs ---------------------------------------------------------------------------- */

static const char *kind_of(rerun_part part) {
    return part == RERUN_TOKEN ? "token" : part == RERUN_END ? "end" : "hidden_states";
}

/* A number of JSON, or null where it is not known. */
static json_t *known(double x) {
    return isnan(x) ? json_null() : json_real(x);
}

/* A token, and its log-probabilities by both models; null: the answer is over. */
static json_t *token_json(const replaying *r, const again_answer *x, int32_t id, size_t which) {
    size_t size;
    if (id < 0)
        return json_null();
    const char *bytes = tern_token_bytes(r->again.now.tokenizer, id, true, &size);
    return json_pack("{s:i, s:o, s:o, s:o}", "token", (int)id, "text", json_text(bytes, size),
                     "logprob_recorded_model",
                     known(x->same_model ? x->now[which] : x->then[which]), "logprob",
                     known(x->now[which]));
}

static json_t *difference_json(const replaying *r, const recorded_answer *a,
                               const again_answer *x) {
    if (x->first.part == RERUN_SAME)
        return json_null();
    json_t *root = json_pack("{s:s, s:I}", "kind", kind_of(x->first.part), "at",
                             (json_int_t)x->first.position);
    if (x->first.part == RERUN_TOKEN) {
        json_object_set_new(root, "recorded", token_json(r, x, x->first.expected, 0));
        json_object_set_new(root, "now", token_json(r, x, x->first.got, 1));
    } else if (x->first.part == RERUN_END) {
        json_object_set_new(root, "recorded", json_string(a->plan.end));
        json_object_set_new(root, "now", json_string(tern_end_name(x->first.end)));
    } else {
        json_object_set_new(root, "recorded", json_string(a->plan.digest));
        json_object_set_new(root, "now", json_string(x->first.digest));
    }
    return root;
}

static void add_json(replaying *r, const recorded_answer *a, const again_answer *x) {
    json_array_append_new(r->list,
                          json_pack("{s:I, s:I, s:I, s:b, s:b, s:o}", "answer",
                                    (json_int_t)r->number, "line", (json_int_t)r->reader.number,
                                    "tokens", (json_int_t)a->plan.n_tokens, "same_model",
                                    (int)x->same_model, "equal", (int)(x->first.part == RERUN_SAME),
                                    "difference", difference_json(r, a, x)));
}

/* ---- the table ------------------------------------------------------------------------------- */

/* A token for people: its id and its text; "(end)" where an answer is over. */
static const char *show_token(const replaying *r, int32_t id, char out[64]) {
    size_t size = 0;
    const char *bytes =
        id >= 0 ? tern_token_bytes(r->again.now.tokenizer, id, true, &size) : "(end)";
    if (id < 0)
        (void)snprintf(out, 64, "(end)");
    else
        (void)snprintf(out, 64, "%d '%.*s'", (int)id,
                       (int)(size < SHOWN_BYTES ? size : SHOWN_BYTES), bytes);
    return out;
}

/* By how much a model prefers the recorded token. */
static const char *show_lead(const double logprobs[2], char out[16]) {
    if (isnan(logprobs[0]) || isnan(logprobs[1]))
        return "-";
    (void)snprintf(out, 16, "%+.4f", logprobs[0] - logprobs[1]);
    return out;
}

static void print_head(void) {
    out_print("%6s %6s %6s  %-22s %-22s %10s %10s\n", "ANSWER", "TOKENS", "AT", "RECORDED", "NOW",
              "LEAD THEN", "LEAD NOW");
}

static void print_row(const replaying *r, const recorded_answer *a, const again_answer *x) {
    char then[64], now[64], lead_then[16], lead_now[16];
    const rerun_result *first = &x->first;
    out_print("%6" PRIu64 " %6zu ", r->number, a->plan.n_tokens);
    if (first->part == RERUN_SAME) {
        out_print("%6s  %s\n", "-", "equal");
        return;
    }
    out_print("%6" PRIu64 "  ", first->position);
    if (first->part == RERUN_TOKEN)
        out_print("%-22s %-22s %10s %10s\n", show_token(r, first->expected, then),
                  show_token(r, first->got, now),
                  show_lead(x->same_model ? x->now : x->then, lead_then),
                  show_lead(x->now, lead_now));
    else if (first->part == RERUN_END)
        out_print("%-22s %-22s\n", a->plan.end, tern_end_name(first->end));
    else
        out_print("the same tokens, other hidden states\n");
}

static int report(replaying *r) {
    if (r->list != NULL)
        return json_print(json_pack("{s:I, s:I, s:o}", "equal", (json_int_t)r->equal, "differ",
                                    (json_int_t)r->differ, "answers", json_incref(r->list)));
    out_print("%" PRIu64 " answers: %" PRIu64 " equal, %" PRIu64 " differ\n", r->equal + r->differ,
              r->equal, r->differ);
    return EXIT_DONE;
}

/* ---- one answer ------------------------------------------------------------------------------ */

static int compare(replaying *r, recorded_answer *a, const char *path) {
    again_answer x;
    tern_error err = {0};
    if (again_ask(&r->again, a, path, &x, &err) != TERN_OK)
        return complain_error(&err);
    if (x.first.part == RERUN_SAME)
        r->equal++;
    else
        r->differ++;
    if (r->list != NULL) {
        add_json(r, a, &x);
        return EXIT_DONE;
    }
    if (r->equal + r->differ == 1)
        print_head();
    print_row(r, a, &x);
    return EXIT_DONE;
}

/* Reads what is put in place of a token. *n is 0 if nothing is. */
static tern_status read_put(const replaying *r, int32_t **put, size_t *n, tern_error *err) {
    const char *text = options_text(r->o, OPT_WITH);
    *n = 0;
    *put = NULL;
    if (text != NULL)
        return tern_tokenize_within(r->again.now.tokenizer, text, strlen(text), 0, NULL, put, n,
                                    err);
    if (!options_given(r->o, OPT_WITH_TOKEN))
        return TERN_OK;
    const uint64_t id = options_integer(r->o, OPT_WITH_TOKEN);
    if (id >= tern_tokenizer_size(r->again.now.tokenizer))
        return tern_fail(err, TERN_ERR_TOKEN_RANGE,
                         "--with-token %" PRIu64 ": there are %zu tokens", id,
                         tern_tokenizer_size(r->again.now.tokenizer));
    *put = malloc(sizeof **put);
    if (*put == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a token");
    **put = (int32_t)id;
    *n = 1;
    return TERN_OK;
}

static int print_branch(const replaying *r, const recorded_answer *a, const one_answer *x) {
    size_t same = 0;
    while (same < x->n_tokens && same < a->plan.n_tokens && x->tokens[same] == a->tokens[same])
        same++;
    if (r->list == NULL) {
        (void)out_write(x->text, x->text_size);
        (void)out_write("\n", 1);
        return EXIT_DONE;
    }
    json_t *ids = json_array();
    for (size_t i = 0; i < x->n_tokens; i++)
        json_array_append_new(ids, json_integer(x->tokens[i]));
    return json_print(json_pack("{s:I, s:I, s:I, s:s, s:s, s:o, s:o}", "answer",
                                (json_int_t)r->number, "from",
                                (json_int_t)options_integer(r->o, OPT_FROM), "same_tokens",
                                (json_int_t)same, "end", tern_end_name(x->end), "digest", x->digest,
                                "tokens", ids, "text", json_text(x->text, x->text_size)));
}

static int branch(replaying *r, recorded_answer *a, const char *path) {
    const uint64_t from = options_integer(r->o, OPT_FROM);
    answerer answers = {0};
    tern_session *session = NULL;
    int32_t *put = NULL;
    size_t n_put = 0;
    tern_error err = {0};
    if (from > a->plan.n_tokens) {
        complain("--from %" PRIu64 ": the answer has %zu tokens", from, a->plan.n_tokens);
        return EXIT_USAGE;
    }
    tern_status status = again_open(&r->again, a, path, &err);
    if (status == TERN_OK)
        status = read_put(r, &put, &n_put, &err);
    if (status == TERN_OK)
        status = recorded_answer_session(a, (size_t)rule_count(a->record, "run.context"),
                                         r->again.now.model, r->o, &session, &err);
    if (status == TERN_OK)
        status = branch_ask(session, r->again.now.tokenizer, a, (size_t)from, put, n_put, &answers,
                            &err);
    const int done = status == TERN_OK ? print_branch(r, a, &answers.latest) : complain_error(&err);
    answerer_close(&answers);
    tern_session_free(&session);
    free(put);
    return done;
}

static int answer(replaying *r, const json_t *record) {
    char found[PATH_MAX];
    recorded_answer a;
    const bool read = recorded_answer_read(record, &a);
    const char *path = read ? locate_model(record, r->o, r->again.document, found) : NULL;
    int status = path != NULL ? EXIT_DONE : EXIT_FAILED;
    if (!read)
        complain("no memory for the replay");
    if (status == EXIT_DONE)
        status = options_given(r->o, OPT_FROM) ? branch(r, &a, path) : compare(r, &a, path);
    recorded_answer_close(&a);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool is_chosen(const replaying *r) {
    return !options_given(r->o, OPT_ANSWER) || options_integer(r->o, OPT_ANSWER) == r->number;
}

/* Asks for the answers that are wanted, one after the other. */
static int answer_all(replaying *r) {
    json_t *record;
    int status = EXIT_DONE;
    bool any = false;
    while (status == EXIT_DONE && (record = recording_reader_next(&r->reader, &status)) != NULL) {
        if (is_chosen(r)) {
            status = answer(r, record);
            any = true;
        }
        json_decref(record);
        r->number++;
    }
    if (status != EXIT_DONE || any)
        return status;
    if (options_given(r->o, OPT_ANSWER))
        complain("--answer %" PRIu64 ": the recording has %" PRIu64 " answers",
                 options_integer(r->o, OPT_ANSWER), r->number);
    else
        complain("%s: it has no answers", r->reader.path);
    return EXIT_USAGE;
}

/* Complains about options that need others. */
static int check_options(const options *o) {
    const bool with = options_given(o, OPT_WITH), token = options_given(o, OPT_WITH_TOKEN);
    const char *problem =
        options_given(o, OPT_FROM) && !options_given(o, OPT_ANSWER) ? "--from needs --answer"
        : (with || token) && !options_given(o, OPT_FROM) ? "--with and --with-token need --from"
        : with && token ? "--with and --with-token exclude each other"
                        : NULL;
    if (problem != NULL)
        complain("%s", problem);
    return problem == NULL ? EXIT_DONE : EXIT_USAGE;
}

/* 1 says that answers differ, so all that keeps them from being asked is 2. */
int cmd_replay(const options *o) {
    replaying r = {.o = o, .again = {.o = o, .document = o->operands[0]}};
    int status = check_options(o);
    loader_report_isas();
    if (status == EXIT_DONE)
        status = recording_reader_open(o->operands[0], &r.reader);
    if (status == EXIT_DONE && options_switch(o, OPT_JSON))
        r.list = json_array();
    if (status == EXIT_DONE)
        status = answer_all(&r);
    if (status == EXIT_DONE && !options_given(o, OPT_FROM))
        status = report(&r);
    again_free(&r.again);
    recording_reader_close(&r.reader);
    json_decref(r.list);
    return status != EXIT_DONE ? EXIT_USAGE : r.differ > 0 ? EXIT_FAILED : EXIT_DONE;
}
