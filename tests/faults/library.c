/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses the library as its header suggests, for the test that makes calls fail.
 * "library MODEL" prints an answer, or one line about the error. */
#include <stdio.h>
#include <stdlib.h>

#include "tern/tern.h"

enum { CAPACITY = 256, ANSWER = 8 };

typedef struct work {
    tern_model *base; /* the model shares its matrices */
    tern_model *model;
    const tern_tokenizer *tokenizer;
    tern_session *session;
    tern_sampler *sampler;
    tern_text_stream *stream;
    int32_t ids[CAPACITY];
    size_t n;
} work;

static bool on_token(int32_t token, double seconds, void *user) {
    const work *w = user;
    size_t size;
    const char *text = tern_text_stream_push(w->stream, token, &size);
    (void)seconds;
    return fwrite(text, 1, size, stdout) == size;
}

static tern_status open_all(work *w, const char *path, tern_error *err) {
    tern_session_params session = tern_session_params_default();
    const tern_sampler_params sampler = tern_sampler_params_default();
    tern_model_info info;
    session.threads = 2;
    tern_model_params params = tern_model_params_default();
    tern_status s = tern_model_open(path, NULL, &w->base, err);
    params.share = w->base;
    if (s == TERN_OK)
        s = tern_model_open(path, &params, &w->model, err);
    tern_model_free(&w->base);
    if (s == TERN_OK)
        s = tern_model_tokenizer(w->model, &w->tokenizer, err);
    if (s == TERN_OK)
        s = tern_session_new(w->model, &session, &w->session, err);
    if (s != TERN_OK)
        return s;
    tern_model_describe(w->model, &info);
    s = tern_sampler_new(&sampler, info.n_vocab, &w->sampler, err);
    return s == TERN_OK ? tern_text_stream_new(w->tokenizer, false, &w->stream, err) : s;
}

static tern_status talk(work *w, tern_error *err) {
    const tern_chat_message message = {.role = "user", .content = "What is 17+25?"};
    const tern_generate_params params = {.max_tokens = ANSWER};
    char text[CAPACITY];
    size_t size;
    tern_status s = tern_chat_tokenize(w->tokenizer, &message, 1, w->ids, CAPACITY, &w->n, err);
    if (s == TERN_OK)
        s = tern_detokenize(w->tokenizer, w->ids, w->n, false, text, sizeof text, &size, err);
    if (s == TERN_OK)
        s = tern_generate(w->session, w->sampler, w->ids, w->n, &params, on_token, w, NULL, err);
    if (s == TERN_OK)
        s = tern_model_unchanged(w->model, err);
    return s;
}

int main(int argc, char **argv) {
    work w = {.model = NULL};
    tern_error err = {0};
    tern_status s = argc == 2 ? open_all(&w, argv[1], &err)
                              : tern_fail(&err, TERN_ERR_ARG, "usage: library MODEL");
    if (s == TERN_OK)
        s = talk(&w, &err);
    if (s == TERN_OK && (puts("") < 0 || fflush(stdout) != 0))
        s = tern_fail(&err, TERN_ERR_IO, "standard output failed");
    tern_text_stream_free(&w.stream);
    tern_sampler_free(&w.sampler);
    tern_session_free(&w.session);
    tern_model_free(&w.model);
    if (s != TERN_OK)
        fprintf(stderr, "tern: %s\n", err.message);
    return s != TERN_OK;
}
