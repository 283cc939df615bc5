/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model file, a prompt, and text while it is generated, with libtern. Valid as C11 and as C++17.
 *
 *     cc generate.c $(pkg-config --cflags --libs tern) -o generate
 *     ./generate model.gguf 'Once upon a time'
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tern/tern.h>

enum { MAX_PROMPT = 1024, MAX_TOKENS = 64 };

static tern_error err;

static void check(tern_status status) {
    if (status == TERN_OK)
        return;
    fprintf(stderr, "generate: %s\n", err.message);
    exit(1);
}

/* Called with each token; a character that spans two tokens is held back until it is complete. */
static bool print_token(int32_t token, double seconds, void *user) {
    (void)seconds;
    size_t size;
    const char *text = tern_text_stream_push((tern_text_stream *)user, token, &size);
    fwrite(text, 1, size, stdout);
    return fflush(stdout) == 0; /* false would stop generating */
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: generate MODEL PROMPT\n");
        return 2;
    }
    /* A model is immutable: any number of sessions, in any number of threads, may share it. */
    tern_model *model = NULL;
    const tern_model_params model_params = tern_model_params_default();
    check(tern_model_open(argv[1], &model_params, &model, &err));
    tern_model_info info;
    tern_model_describe(model, &info);
    const tern_tokenizer *tokenizer = NULL; /* the model's own */
    check(tern_model_tokenizer(model, &tokenizer, &err));

    /* A session holds what changes: the cache of keys and values, scratch memory, threads. */
    tern_session *session = NULL;
    const tern_session_params session_params = tern_session_params_default();
    check(tern_session_new(model, &session_params, &session, &err));

    static int32_t prompt[MAX_PROMPT];
    size_t n_prompt;
    check(tern_tokenize(tokenizer, argv[2], strlen(argv[2]), TERN_TOKENIZE_SPECIAL, prompt,
                        MAX_PROMPT, &n_prompt, &err));

    tern_sampler *sampler = NULL;
    tern_sampler_params sampling = tern_sampler_params_default(); /* greedy */
    sampling.temperature = 0.7F;
    sampling.top_p = 0.9F;
    sampling.seed = 7;
    check(tern_sampler_new(&sampling, info.n_vocab, &sampler, &err));

    tern_text_stream *stream = NULL;
    check(tern_text_stream_new(tokenizer, false, &stream, &err));
    static tern_generate_params limits; /* static: members that are not set are zero */
    limits.max_tokens = MAX_TOKENS;
    tern_generation result;
    check(tern_generate(session, sampler, prompt, n_prompt, &limits, print_token, stream, &result,
                        &err));
    size_t size;
    const char *rest = tern_text_stream_flush(stream, &size);
    fwrite(rest, 1, size, stdout);
    printf("\n%zu tokens after %zu\n", result.n_generated, result.n_prompt);

    tern_text_stream_free(&stream);
    tern_sampler_free(&sampler);
    tern_session_free(&session);
    tern_model_free(&model);
    return 0;
}
