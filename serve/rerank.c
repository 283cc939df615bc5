/* SPDX-License-Identifier: Apache-2.0 */
/* The route that puts documents into the order in which they fit a query. */

#include <stdlib.h>

#include "serve/server_internal.h"

enum { DEFAULT_TOP = INT32_MAX };

/* Returns the text of a document: a text, or an object that has it; NULL: it is neither. */
static json_t *text_of(json_t *document) {
    json_t *said = json_is_object(document) ? json_object_get(document, "text") : document;
    return json_is_string(said) ? said : NULL;
}

/* Returns a list of the query and the documents; NULL after a refusal. */
static json_t *list_texts(const json_t *body, const char *name, refusal *r) {
    json_t *query = json_object_get(body, "query");
    const json_t *documents = json_object_get(body, name);
    if (!json_is_string(query)) {
        (void)refuse(r, 400, "query", "query must be a text");
        return NULL;
    }
    if (!json_is_array(documents) || json_array_size(documents) == 0) {
        (void)refuse(r, 400, name, "%s must be an array of at least one text", name);
        return NULL;
    }
    json_t *list = json_array();
    (void)json_array_append_new(list, json_incref(query));
    for (size_t i = 0; i < json_array_size(documents); i++) {
        json_t *said = text_of(json_array_get(documents, i));
        if (said == NULL) {
            (void)refuse(r, 400, name, "%s[%zu] is neither a text nor {\"text\": ...}", name, i);
            json_decref(list);
            return NULL;
        }
        (void)json_array_append_new(list, json_incref(said));
    }
    return list;
}

/* Reads how many results are wanted, and in what form. False after a refusal. */
static bool read_form(const json_t *body, bool plain, ask_rerank *out, refusal *r) {
    const json_t *top = json_object_get(body, "top_n");
    const json_t *texts = json_object_get(body, plain ? "return_text" : "return_documents");
    *out = (ask_rerank){.wanted = true, .plain = plain, .top = DEFAULT_TOP};
    if (top != NULL && !json_is_null(top)) {
        if (!json_is_integer(top) || json_integer_value(top) < 1)
            return refuse(r, 400, "top_n", "top_n must be an integer, at least 1");
        const json_int_t n = json_integer_value(top);
        out->top = n < DEFAULT_TOP ? (size_t)n : (size_t)DEFAULT_TOP;
    }
    out->texts = json_is_true(texts);
    out->raw = !plain || json_is_true(json_object_get(body, "raw_scores"));
    return true;
}

/* Puts the query before the tokens of a document. */
static bool pair_up(const ask_prompt *query, ask_prompt *document, const ask_rules *rules,
                    refusal *r) {
    int32_t *ids = malloc((query->n + document->n + 1) * sizeof *ids);
    if (ids == NULL)
        return refuse(r, 503, NULL, "no memory for the request");
    document->n = tern_tokens_of_pair(rules->tokenizer, query->ids, query->n, document->ids,
                                      document->n, ids, &document->second);
    free(document->ids);
    document->ids = ids;
    return document->n <= rules->n_ctx || refuse_length(r, document->n, rules->n_ctx);
}

/* Makes a pair of the query and each document. The query itself is no prompt then. */
static bool pair_all(ask *a, const ask_rules *rules, refusal *r) {
    ask_prompt query = a->prompts[0];
    bool fits = true;
    for (size_t i = 1; i < a->n_prompts; i++) {
        fits = fits && pair_up(&query, &a->prompts[i], rules, r);
        a->prompts[i - 1] = a->prompts[i];
    }
    a->n_prompts--;
    a->dimensions = 1;
    a->rerank.pairs = true;
    free(query.ids);
    return fits;
}

/* Reads a request as one for embeddings of the query and the documents. False after a refusal. */
static bool read(ask *a, const ask_rules *rules, bool pairs, const json_t *body, refusal *r) {
    const bool plain = json_object_get(body, "texts") != NULL;
    ask_rerank form;
    if (!read_form(body, plain, &form, r))
        return false;
    const bool before = json_remember(false);
    json_t *list = list_texts(body, plain ? "texts" : "documents", r);
    json_t *made = json_object();
    (void)json_object_set(made, "model", json_object_get(body, "model"));
    (void)json_object_set_new(made, "input", list);
    if (json_remember(before) || list == NULL) {
        json_decref(made);
        return r->status != 0 ? false : refuse(r, 503, NULL, "no memory for the request");
    }
    if (!ask_read_body(a, ASK_EMBEDDING, rules, made, r))
        return false;
    a->rerank = form;
    return !pairs || pair_all(a, rules, r);
}

void answer_rerank(server *s, http_exchange *x) {
    refusal r = {0};
    ask a = {0};
    size_t size;
    const char *bytes = http_body(x, &size);
    reading in;
    reading_open(&in, s, x, true);
    json_t *body = ask_parse(bytes, size, "the body", &r);
    const bool pairs = in.model->place.pooling == TERN_POOLING_RANK;
    if (body == NULL || !answer_begin(s, x, ANSWER_ORDER, &r) ||
        !read(&a, &in.rules, pairs, body, &r) || !answer_submit(x, &a, &r))
        answer_refuse(x, &a, &r);
    json_decref(body);
}
