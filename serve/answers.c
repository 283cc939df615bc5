/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that read a body: requests for text, vectors and tokens. The readers call them. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "serve/server_internal.h"

void reply_with(http_exchange *x, unsigned status, const char *type, text *t) {
    size_t size;
    char *bytes = text_take(t, &size);
    http_reply(x, status, type, bytes, size);
}

enum { MOST_REPLY_BYTES = 16 << 20 }; /* for routes below whose replies repeat the request */

/* ---- limits ---------------------------------------------------------------------------------- */

/* The tokenizer calls this to ask whether to go on: it stops when the client has left or the server
 * is ending. */
static bool goes_on(void *user, size_t bytes) {
    const reading *in = user;
    (void)atomic_fetch_add(&in->s->tokenized_bytes, bytes);
    return !atomic_load(&in->s->stopping) && !http_gone(in->x);
}

/* A prompt that is a few times too long is still counted to its end, so that the client learns by
 * how much. Beyond COUNTED_CONTEXTS contexts the count stops. */
void reading_open(reading *in, server *s, http_exchange *x, bool answers) {
    enum { COUNTED_CONTEXTS = 4 };
    const served *m = server_model(x);
    *in = (reading){.s = s, .model = m, .x = x, .rules = m->rules};
    const bool by_tokens = answers && tern_tokenizer_reach(m->tokenizer) > 0;
    in->rules.limits = (tern_tokenize_limits){
        .most_tokens = answers ? COUNTED_CONTEXTS * (size_t)m->rules.n_ctx : 0,
        .most_bytes = by_tokens ? 0 : m->text_bytes,
        .goes_on = goes_on,
        .user = in};
}

static bool refuse_reply(refusal *r) {
    return refuse(r, 400, NULL, "the reply would be longer than %d bytes", MOST_REPLY_BYTES);
}

/* ---- text ------------------------------------------------------------------------------------ */

bool answer_begin(server *s, http_exchange *x, answer_wish wish, refusal *r) {
    const served *m = server_model(x);
    const bool vectors = wish != ANSWER_TEXT;
    if (atomic_load(&s->draining))
        return refuse(r, 503, NULL, "the server is ending");
    if (!vectors && !tern_model_continues(m->with.model))
        return refuse(r, 501, NULL, "the model %.100s makes embeddings, no text", m->place.model);
    if (vectors && m->with.pooling == TERN_POOLING_NONE)
        return refuse(r, 501, NULL, "the model %.100s makes text, no embeddings (serve --pooling)",
                      m->place.model);
    if (wish == ANSWER_VECTORS && m->with.pooling == TERN_POOLING_RANK)
        return refuse(r, 400, NULL, "the model %.100s scores pairs of texts: ask it at /v1/rerank",
                      m->place.model);
    return account_enter(http_mark(x), r);
}

bool answer_submit(http_exchange *x, ask *a, refusal *r) {
    const served *m = server_model(x);
    if (a->receipt && !m->place.receipts->prepare(m->place.receipts->user))
        return refuse(r, 503, "receipt", "receipts cannot be made at the moment");
    job *j = job_new(&m->place, x, http_mark(x), a);
    if (j == NULL)
        return refuse(r, 503, NULL, "no memory for the request");
    worker_submit(m->worker, j);
    return true;
}

void answer_refuse(http_exchange *x, ask *a, const refusal *r) {
    account_leave(http_mark(x));
    refusal_reply(r, x);
    ask_free(a);
}

typedef bool ask_reader(ask *a, const ask_rules *rules, const char *bytes, size_t size, refusal *r);

/* `read`: how the body is read; NULL: like other requests of its kind. */
static void answer_as(server *s, http_exchange *x, ask_kind kind, ask_reader *read) {
    refusal r = {0};
    ask a = {0};
    size_t size;
    const char *body = http_body(x, &size);
    reading in;
    reading_open(&in, s, x, true);
    const key *shown = ((const account *)http_mark(x))->key;
    in.rules.kept = s->kept;
    in.rules.owner = shown != NULL ? shown->digest : NULL;
    if (!answer_begin(s, x, (kind & ASK_VECTORS) != 0 ? ANSWER_VECTORS : ANSWER_TEXT, &r) ||
        !(read != NULL ? read(&a, &in.rules, body, size, &r)
                       : ask_read(&a, kind, &in.rules, body, size, &r)) ||
        !answer_submit(x, &a, &r))
        answer_refuse(x, &a, &r);
}

static void answer(server *s, http_exchange *x, ask_kind kind) {
    answer_as(s, x, kind, NULL);
}

/* Replies with the number of tokens in the request's prompt, under the name that the interface
 * uses. */
static void count(server *s, http_exchange *x, ask_kind kind) {
    refusal r = {0};
    ask a = {0};
    size_t size;
    const char *body = http_body(x, &size);
    reading in;
    reading_open(&in, s, x, false);
    in.rules.n_ctx = UINT32_MAX; /* a prompt that would not fit is counted, too */
    if (!ask_read(&a, kind, &in.rules, body, size, &r)) {
        refusal_reply(&r, x);
    } else {
        text out = {0};
        text_print(&out, "{%s\"input_tokens\":%zu}",
                   kind == ASK_RESPONSE ? "\"object\":\"response.input_tokens\"," : "",
                   a.prompts[0].n);
        reply_with(x, 200, "application/json", &out);
    }
    ask_free(&a);
}

void answer_chat(server *s, http_exchange *x) {
    answer(s, x, ASK_CHAT);
}

void answer_completion(server *s, http_exchange *x) {
    answer(s, x, ASK_COMPLETION);
}

void answer_response(server *s, http_exchange *x) {
    answer(s, x, ASK_RESPONSE);
}

void answer_message(server *s, http_exchange *x) {
    answer(s, x, ASK_MESSAGE);
}

void answer_native(server *s, http_exchange *x) {
    answer(s, x, ASK_NATIVE);
}

void answer_infill(server *s, http_exchange *x) {
    answer_as(s, x, ASK_NATIVE, ask_read_gap);
}

void answer_count_chat(server *s, http_exchange *x) {
    count(s, x, ASK_CHAT);
}

void answer_count_response(server *s, http_exchange *x) {
    count(s, x, ASK_RESPONSE);
}

void answer_count_message(server *s, http_exchange *x) {
    count(s, x, ASK_MESSAGE);
}

/* llama.cpp's clients say `content` at this path, and read its own form of the reply. */
static bool read_vectors(ask *a, const ask_rules *rules, const char *bytes, size_t size,
                         refusal *r) {
    json_t *body = ask_parse_any(bytes, size, "the body", r);
    const bool native =
        json_object_get(body, "input") == NULL && json_object_get(body, "content") != NULL;
    return body != NULL &&
           ask_read_body(a, native ? ASK_NATIVE_EMBEDDING : ASK_EMBEDDING, rules, body, r);
}

void answer_embeddings(server *s, http_exchange *x) {
    answer_as(s, x, ASK_EMBEDDING, read_vectors);
}

void answer_native_embedding(server *s, http_exchange *x) {
    answer(s, x, ASK_NATIVE_EMBEDDING);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* Parses the body and returns a field that it must have; NULL after a refusal. */
static const json_t *read_field(http_exchange *x, const char *name, json_t **body, refusal *r) {
    size_t size;
    const char *bytes = http_body(x, &size);
    *body = ask_parse(bytes, size, "the body", r);
    if (*body == NULL)
        return NULL;
    const json_t *field = json_object_get(*body, name);
    if (field == NULL)
        (void)refuse(r, 400, name, "%s is missing", name);
    return field;
}

/* False after a refusal. */
static bool write_pieces(const served *m, const int32_t *ids, size_t n, bool pieces, text *out,
                         refusal *r) {
    for (size_t i = 0; i < n; i++) {
        if (out->size > MOST_REPLY_BYTES)
            return refuse_reply(r);
        if (pieces) {
            size_t size;
            const char *bytes = tern_token_bytes(m->tokenizer, ids[i], true, &size);
            text_print(out, "%s{\"id\":%d,\"piece\":", i > 0 ? "," : "", (int)ids[i]);
            text_quote(out, bytes, size);
            text_add(out, "}", 1);
        } else {
            text_print(out, "%s%d", i > 0 ? "," : "", (int)ids[i]);
        }
    }
    return true;
}

static bool says_no(const json_t *value) {
    return json_is_boolean(value) && !json_is_true(value);
}

/* Texts and ids in one array, as llama.cpp takes them. NULL after a refusal. */
static int32_t *tokenize_mixture(const reading *in, const json_t *parts, unsigned first,
                                 unsigned others, const char *param, size_t *n, refusal *r) {
    const ask_mixture how = {first, others, SIZE_MAX, param};
    ask_prompt p = {0};
    if (ask_tokenize_mixture(&in->rules, parts, how, &p, r)) {
        *n = p.n;
        return p.ids;
    }
    free(p.ids);
    return NULL;
}

/* Tokenizes a body's text, given as llama.cpp's "content" or vLLM's "prompt". With "prompt",
 * special tokens are added unless the body says otherwise, and control tokens in the text are
 * recognised; with "content" only where the body asks for it. NULL after a refusal. */
static int32_t *tokenize(const reading *in, const json_t *body, size_t *n, refusal *r) {
    const json_t *prompt = json_object_get(body, "prompt");
    const char *name = prompt != NULL ? "prompt" : "content";
    const json_t *given = prompt != NULL ? prompt : json_object_get(body, name);
    const bool special = prompt != NULL ? !says_no(json_object_get(body, "add_special_tokens"))
                                        : json_is_true(json_object_get(body, "add_special"));
    const bool parse = prompt != NULL || json_is_true(json_object_get(body, "parse_special"));
    const unsigned others = parse ? TERN_TOKENIZE_PARSE : 0U;
    const unsigned first = others | (special ? TERN_TOKENIZE_SPECIAL : 0U);
    if (json_is_array(given))
        return tokenize_mixture(in, given, first, others, name, n, r);
    if (!json_is_string(given)) {
        (void)refuse(r, 400, name, given != NULL ? "%s must be a text" : "%s is missing", name);
        return NULL;
    }
    return ask_tokenize(&in->rules, json_string_value(given), json_string_length(given), first, n,
                        name, r);
}

void answer_tokenize(server *s, http_exchange *x) {
    refusal r = {0};
    size_t size, n = 0;
    text out = {0};
    reading in;
    reading_open(&in, s, x, false);
    const char *bytes = http_body(x, &size);
    json_t *body = ask_parse_any(bytes, size, "the body", &r);
    const bool sound = body != NULL && ask_check_texts(body, true, &r);
    int32_t *ids = sound ? tokenize(&in, body, &n, &r) : NULL;
    text_print(&out, "{\"tokens\":[");
    if (ids != NULL && write_pieces(in.model, ids, n,
                                    json_is_true(json_object_get(body, "with_pieces")), &out, &r)) {
        text_print(&out, "],\"count\":%zu,\"max_model_len\":%" PRIu32 "}", n,
                   in.model->rules.n_ctx);
        reply_with(x, 200, "application/json", &out);
    } else {
        refusal_reply(&r, x);
    }
    text_free(&out);
    free(ids);
    json_decref(body);
}

/* Writes the text of ids as JSON; false after a refusal. */
static bool write_content(const served *m, const int32_t *ids, size_t n, text *out, refusal *r) {
    tern_error err = {0};
    size_t size = 0;
    if (tern_detokenize(m->tokenizer, ids, n, false, NULL, 0, &size, &err) != TERN_OK)
        return refuse_error(r, "tokens", &err);
    if (size > m->text_bytes)
        return refuse(r, 400, "tokens", "their text has %zu bytes; at most %zu are told", size,
                      m->text_bytes);
    char *bytes = malloc(size + 1);
    if (bytes == NULL)
        return refuse(r, 503, "tokens", "no memory for %zu bytes of text", size);
    const bool sound = size == 0 || tern_detokenize(m->tokenizer, ids, n, false, bytes, size, &size,
                                                    &err) == TERN_OK;
    if (sound) {
        text_print(out, "{\"content\":");
        text_quote(out, bytes, size);
        text_print(out, ",\"prompt\":"); /* vLLM's name for it */
        text_quote(out, bytes, size);
        text_print(out, "}");
    }
    free(bytes);
    return sound || refuse_error(r, "tokens", &err);
}

void answer_detokenize(server *s, http_exchange *x) {
    (void)s;
    refusal r = {0};
    json_t *body = NULL;
    text out = {0};
    size_t n;
    const served *m = server_model(x);
    const json_t *tokens = read_field(x, "tokens", &body, &r);
    int32_t *ids = NULL;
    if (tokens != NULL && !json_is_array(tokens))
        (void)refuse(&r, 400, "tokens", "tokens must be an array of token ids");
    else if (tokens != NULL)
        ids = ask_read_ids(tokens, m->rules.n_vocab, &n, "tokens", &r);
    if (ids != NULL && write_content(m, ids, n, &out, &r))
        reply_with(x, 200, "application/json", &out);
    else
        refusal_reply(&r, x);
    text_free(&out);
    free(ids);
    json_decref(body);
}

/* Replies with a conversation as one text, control tokens written out, and with its tokens. */
void answer_template(server *s, http_exchange *x) {
    refusal r = {0};
    ask a = {0};
    size_t body_size;
    const char *body = http_body(x, &body_size);
    text prompt = {0}, out = {0};
    reading in;
    reading_open(&in, s, x, false);
    in.rules.n_ctx = UINT32_MAX; /* a prompt that would not fit is shown, too */
    if (!ask_read(&a, ASK_CHAT, &in.rules, body, body_size, &r)) {
        refusal_reply(&r, x);
    } else {
        const ask_prompt *read = &a.prompts[0];
        for (size_t i = 0; i < read->n; i++) {
            size_t size;
            const char *bytes = tern_token_bytes(in.model->tokenizer, read->ids[i], true, &size);
            text_add(&prompt, bytes, size);
        }
        text_print(&out, "{\"prompt\":");
        text_quote(&out, prompt.bytes, prompt.size);
        text_print(&out, ",\"tokens\":[");
        const bool fits = write_pieces(in.model, read->ids, read->n, false, &out, &r);
        text_print(&out, "]}");
        out.failed = out.failed || prompt.failed;
        if (fits)
            reply_with(x, 200, "application/json", &out);
        else
            refusal_reply(&r, x);
    }
    text_free(&prompt);
    text_free(&out);
    ask_free(&a);
}
