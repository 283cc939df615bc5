/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several prompts answered at once, with the engine of libtern: each pass computes a token of every
 * answer. Valid as C11 and as C++17.
 *
 *     cc together.c $(pkg-config --cflags --libs tern) -o together
 *     ./together model.gguf 'Once upon a time' 'The sun is'
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tern/engine.h>
#include <tern/tokenizer.h>

enum { MOST = 16, MAX_PROMPT = 1024, MAX_TOKENS = 24, ANSWER_BYTES = 4096 };

typedef struct answer {
    uint64_t request;
    char text[ANSWER_BYTES];
    size_t size;
    char digest[65];
    const char *end;
} answer;

static answer answers[MOST];
static tern_error err;

static void check(tern_status status) {
    if (status == TERN_OK)
        return;
    fprintf(stderr, "together: %s\n", err.message);
    exit(1);
}

/* An engine for n sequences, with memory for a full context of each. */
static tern_engine *open_engine(const tern_model *model, uint32_t n) {
    tern_engine_params params = tern_engine_params_default();
    tern_engine *engine = NULL;
    params.n_ctx = tern_model_default_context(model);
    params.n_sequences = n;
    check(tern_engine_pool_bytes(model, &params, (uint64_t)n * params.n_ctx, &params.pool_bytes,
                                 &err));
    check(tern_engine_new(model, &params, &engine, &err));
    return engine;
}

/* Queues a prompt. The engine copies all of the request. */
static uint64_t submit(tern_engine *engine, const tern_tokenizer *tokenizer, const char *prompt) {
    static int32_t tokens[MAX_PROMPT];
    static tern_request request; /* static: members that are not set are zero */
    uint64_t id = 0;
    check(tern_tokenize(tokenizer, prompt, strlen(prompt), TERN_TOKENIZE_SPECIAL, tokens,
                        MAX_PROMPT, &request.n_tokens, &err));
    request.tokens = tokens;
    request.max_tokens = MAX_TOKENS;
    check(tern_engine_submit(engine, &request, &id, &err));
    return id;
}

static answer *answer_of(uint64_t request) {
    answer *a = answers;
    while (a->request != request)
        a++;
    return a;
}

/* An event brings text that certainly belongs to the answer; the last event says how it ended. */
static void take(const tern_event *event) {
    answer *a = answer_of(event->request);
    const size_t room = sizeof a->text - a->size;
    const size_t size = event->size < room ? event->size : room;
    memcpy(a->text + a->size, event->text, size);
    a->size += size;
    if (event->kind != TERN_EVENT_END)
        return;
    a->end = tern_end_name(event->end);
    memcpy(a->digest, event->digest, sizeof a->digest);
    if (event->error)
        fprintf(stderr, "together: %s\n", event->error->message);
}

int main(int argc, char **argv) {
    const int n = argc - 2;
    if (n < 1 || n > MOST) {
        fprintf(stderr, "usage: together MODEL PROMPT... (1 to %d of them)\n", MOST);
        return 2;
    }
    tern_model *model = NULL;
    const tern_tokenizer *tokenizer = NULL; /* the model's own */
    const tern_model_params params = tern_model_params_default();
    check(tern_model_open(argv[1], &params, &model, &err));
    check(tern_model_tokenizer(model, &tokenizer, &err));
    tern_engine *engine = open_engine(model, (uint32_t)n);
    for (int i = 0; i < n; i++)
        answers[i].request = submit(engine, tokenizer, argv[2 + i]);

    /*
     * Each step is one pass and allocates nothing. Other threads may submit and cancel meanwhile.
     */
    while (tern_engine_now(engine).waiting + tern_engine_now(engine).running > 0) {
        const tern_event *events;
        size_t n_events;
        check(tern_engine_step(engine, &events, &n_events, &err));
        for (size_t i = 0; i < n_events; i++)
            take(&events[i]);
    }
    /* The digest of an answer does not depend on what was answered beside it. */
    for (int i = 0; i < n; i++)
        printf("%s%.*s\n%s %s\n", argv[2 + i], (int)answers[i].size, answers[i].text,
               answers[i].end, answers[i].digest);
    printf("%llu passes for %llu tokens\n", (unsigned long long)tern_engine_now(engine).passes,
           (unsigned long long)tern_engine_now(engine).tokens);

    tern_engine_free(&engine);
    tern_model_free(&model);
    return 0;
}
