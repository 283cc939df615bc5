/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a prompt, decoding and sampling allocate no memory. This program's own malloc and mmap
 * count every call, from the library, the C library and every thread.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/engine/forward/runner.h"
#include "tern/engine.h"
#include "tests/support/check.h"
#include "tests/support/sanitized.h"
#include "tests/support/tiny_model.h"

#if defined(SANITIZED) || !defined(__GLIBC__)

int main(void) {
    puts("skipped: allocations are the sanitizer's, or there is no glibc to pass them on to");
    return 77;
}

#else

/* ---- counting
 * ------------------------------------------------------------------------------------ */

static atomic_size_t allocations;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);

void *malloc(size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(p, size);
}

void *aligned_alloc(size_t align, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size) {
    atomic_fetch_add(&allocations, 1);
    void *p = __libc_memalign(align, size);
    if (p == NULL)
        return ENOMEM;
    *out = p;
    return 0;
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    atomic_fetch_add(&allocations, 1);
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

static size_t counted(void) {
    return atomic_load(&allocations);
}

static void check_none_since(size_t before) {
    const size_t n = counted() - before; /* before check_fail allocates itself */
    if (n != 0)
        check_fail("%zu allocations", n);
}

/* Positive control: calls of each function are counted, also from inside the library. */
static void test_counting_counts(void **state) {
    void *p = NULL;
    const tern_sampler_params greedy = tern_sampler_params_default();
    tern_sampler *sampler = NULL;
    (void)state;
    size_t before = counted();
    void *volatile kept = malloc(10); /* volatile: a compiler may drop an unused block */
    assert_int_equal(counted() - before, 1);
    kept = realloc(kept, 20);
    assert_int_equal(counted() - before, 2);
    free(kept);
    kept = calloc(3, 4);
    assert_int_equal(counted() - before, 3);
    free(kept);
    kept = aligned_alloc(64, 64);
    assert_int_equal(counted() - before, 4);
    free(kept);
    assert_int_equal(posix_memalign(&p, 64, 64), 0);
    assert_int_equal(counted() - before, 5);
    free(p);
    p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(counted() - before, 6);
    munmap(p, 4096);

    before = counted();
    assert_int_equal(tern_sampler_new(&greedy, 100, &sampler, NULL), TERN_OK);
    assert_true(counted() > before);
    tern_sampler_free(&sampler);
    tern_model *model = tiny_open("llama-tiny-f32", NULL);
    before = counted();
    tern_session *s = tiny_session(model, tern_session_params_default());
    assert_true(counted() > before);
    tern_session_free(&s);
    tern_model_free(&model);
}

/* ---- the hot paths
 * --------------------------------------------------------------------------------- */

enum { PROMPT = 40, DECODED = 10, CONTEXT = 128 };

static tern_session *session(const tern_model *model, uint32_t threads, uint32_t n_batch,
                             tern_format kv) {
    const tern_session_params params = {
        .n_ctx = CONTEXT, .n_batch = n_batch, .threads = threads, .kv = kv};
    return tiny_session(model, params);
}

static void check_eval(const char *preset, uint32_t threads, uint32_t n_batch, tern_format kv) {
    int32_t tokens[PROMPT + DECODED];
    tern_model_info info;
    tern_model *model = tiny_open(preset, NULL);
    tern_session *s = session(model, threads, n_batch, kv);
    tern_model_describe(model, &info);
    float *all = tiny_floats((size_t)PROMPT * info.n_vocab);
    float *last = tern_session_logits(s);
    check_case("%s, %u threads, batch %u, cache %s", preset, threads, n_batch,
               tern_format_describe(kv)->name);
    tiny_prompt(model, 1, tokens, PROMPT + DECODED);
    const size_t before = counted(); /* from the very first call on */
    tern_status status = tern_session_eval(s, tokens, PROMPT, TERN_LOGITS_LAST, last, NULL);
    for (int i = 0; i < DECODED && status == TERN_OK; i++)
        status = tern_session_eval(s, tokens + PROMPT + i, 1, TERN_LOGITS_LAST, last, NULL);
    if (status == TERN_OK)
        status = tern_session_rewind(s, 0, NULL);
    if (status == TERN_OK)
        status = tern_session_eval(s, tokens, PROMPT, TERN_LOGITS_ALL, all, NULL);
    check_none_since(before);
    assert_int_equal(status, TERN_OK);
    free(all);
    tern_session_free(&s);
    tern_model_free(&model);
}

static void test_eval(void **state) {
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++)
        check_eval(tiny_presets()[i], 1 + (uint32_t)(i % 3), i % 2 ? 128 : 7,
                   i % 3 ? TERN_FORMAT_F16 : TERN_FORMAT_Q8_0);
}

/* Sequences that share passes and are picked together, by bounds and from all logits. */
static void test_passes(void **state) {
    enum { SEQUENCES = 3, ROUNDS = 70, LONG = 5 };
    static const tern_sampler_params params[SEQUENCES] = {{.top_p = 1.0f},
                                                          {.temperature = 0.8f, .top_p = 1.0f},
                                                          {.temperature = 1.0f, .top_p = 0.9f}};
    const tern_runner_params wish = {
        .threads = 2, .n_batch = SEQUENCES * LONG, .n_ctx = CONTEXT, .n_picks = SEQUENCES};
    tern_model *model = tiny_open("bitnet-tiny", NULL);
    tern_model_info info;
    tern_runner *r = NULL;
    tern_pool pool;
    tern_pick picks[SEQUENCES];
    uint32_t pages[SEQUENCES][CONTEXT / TERN_PAGE];
    int32_t tokens[LONG];
    int refused = 0;
    (void)state;
    tern_model_describe(model, &info);
    tiny_prompt(model, 3, tokens, LONG);
    assert_int_equal(tern_runner_new(model, &wish, &r, NULL), TERN_OK);
    assert_int_equal(tern_pool_open(model, TERN_FORMAT_F16,
                                    (tern_pool_size){.pages = SEQUENCES * CONTEXT / TERN_PAGE},
                                    &pool, &refused, NULL),
                     TERN_OK);
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        picks[i] = (tern_pick){.row = i};
        assert_int_equal(tern_sampler_new(&params[i], info.n_vocab, &picks[i].sampler, NULL),
                         TERN_OK);
        for (uint32_t j = 0; j < CONTEXT / TERN_PAGE; j++)
            pages[i][j] = i * (CONTEXT / TERN_PAGE) + j;
    }
    const size_t before = counted();
    for (uint32_t round = 0; round < ROUNDS; round++) {
        tern_pass_span spans[SEQUENCES];
        for (size_t i = 0; i < SEQUENCES; i++)
            spans[i] = (tern_pass_span){.pages = pages[i],
                                        .position = round,
                                        .tokens = tokens,
                                        .n = i == round % SEQUENCES ? LONG : 1,
                                        .wanted = 1};
        tern_runner_run(r, &pool, spans, SEQUENCES);
        tern_runner_picks(r, picks, SEQUENCES);
    }
    check_none_since(before);
    for (size_t i = 0; i < SEQUENCES; i++) {
        assert_int_equal(picks[i].status, TERN_OK);
        tern_sampler_free(&picks[i].sampler);
    }
    tern_runner_free(&r);
    tern_pool_close(&pool);
    tern_model_free(&model);
}

/* Steps of an engine, from the first pass to the last token, with requests of every kind. */
static void test_engine(void **state) {
    enum { REQUESTS = 5 };
    static const char *const stops[] = {"never"};
    tern_model *model = tiny_open("llama-tiny-f16", NULL);
    tern_engine_params params = {.n_ctx = 200, .threads = 2, .n_sequences = 2, .n_ahead = 20};
    tern_engine *e = NULL;
    int32_t prompt[100];
    size_t n_tokens = 0, n = 1;
    (void)state;
    tiny_prompt(model, 3, prompt, 100);
    params.pool_bytes = 5 * tern_model_kv_bytes(model, 64, params.kv);
    assert_int_equal(tern_engine_new(model, &params, &e, NULL), TERN_OK);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        const tern_request request = {.tokens = prompt,
                                      .n_tokens = 100,
                                      .branches = 1 + i % 2,
                                      .max_tokens = i % 2 * 30,
                                      .ignore_end = true,
                                      .n_logprobs = i % 3,
                                      .stop_texts = stops,
                                      .n_stop_texts = 1};
        uint64_t id;
        assert_int_equal(tern_engine_submit(e, &request, &id, NULL), TERN_OK);
    }
    const size_t before = counted();
    for (const tern_event *events; tern_engine_now(e).waiting + tern_engine_now(e).running > 0;
         n_tokens += n)
        if (tern_engine_step(e, &events, &n, NULL) != TERN_OK)
            break;
    check_none_since(before);
    assert_true(n_tokens > 300);
    assert_true(tern_engine_now(e).set_aside > 0);
    tern_engine_free(&e);
    tern_model_free(&model);
}

static void test_sampler(void **state) {
    enum { VOCABULARY = 50000 };
    static const tern_logit_bias bias[] = {{7, 2.0f}, {49999, -100.0f}};
    static const tern_sampler_params params[] = {
        {.temperature = 0.0f, .top_p = 1.0f},
        {.temperature = 0.8f, .top_p = 1.0f},
        {.temperature = 0.8f, .top_k = 40, .top_p = 1.0f},
        {.temperature = 1.5f, .top_p = 0.95f},
        {.temperature = 0.7f, .top_k = 1000, .top_p = 0.9f},
        {.temperature = 0.7f, .top_p = 1.0f, .min_p = 0.05f, .bias = bias, .n_bias = 2},
        {.temperature = 0.7f,
         .top_p = 0.9f,
         .repetition_penalty = 1.1f,
         .presence_penalty = 0.5f,
         .frequency_penalty = 0.2f,
         .repeat_last_n = 8},
    };
    check_rng rng = {5};
    float *logits = tiny_floats(VOCABULARY);
    (void)state;
    for (size_t i = 0; i < VOCABULARY; i++)
        logits[i] = 3.0f * check_normal(&rng);
    for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
        tern_sampler *sampler = NULL;
        tern_status status = TERN_OK;
        int32_t token = -1;
        assert_int_equal(tern_sampler_new(&params[i], VOCABULARY, &sampler, NULL), TERN_OK);
        check_case("temperature %g, top-k %u, top-p %g", (double)params[i].temperature,
                   params[i].top_k, (double)params[i].top_p);
        const size_t before = counted();
        for (int n = 0; n < 20 && status == TERN_OK; n++) {
            status = tern_sampler_pick(sampler, logits, &token, NULL);
            tern_sampler_accept(sampler, token);
        }
        tern_sampler_reset(sampler, 1);
        check_none_since(before);
        assert_int_equal(status, TERN_OK);
        tern_sampler_free(&sampler);
    }
    free(logits);
}

/* Counts allocations up to each token of a generation. */
typedef struct token_log {
    size_t at_token[DECODED];
    size_t n;
} token_log;

static bool note_token(int32_t token, double seconds, void *user) {
    token_log *l = user;
    (void)token;
    (void)seconds;
    if (l->n < DECODED)
        l->at_token[l->n++] = counted();
    return true;
}

static void check_generate(const char *preset) {
    const tern_sampler_params params = {.temperature = 0.8f, .top_k = 50, .top_p = 0.9f, .seed = 3};
    int32_t prompt[PROMPT];
    token_log l = {.n = 0};
    tern_sampler *sampler = NULL;
    tern_generation result;
    tern_model_info info;
    tern_model *model = tiny_open(preset, NULL);
    tern_session *s = session(model, 2, 128, TERN_FORMAT_F16);
    tern_model_describe(model, &info);
    assert_int_equal(tern_sampler_new(&params, info.n_vocab, &sampler, NULL), TERN_OK);
    tiny_prompt(model, 2, prompt, PROMPT);
    check_case("%s: generate", preset);
    const size_t before = counted();
    const tern_status status =
        tern_generate(s, sampler, prompt, PROMPT,
                      &(tern_generate_params){.max_tokens = DECODED, .ignore_end = true},
                      note_token, &l, &result, NULL);
    check_none_since(before);
    assert_int_equal(status, TERN_OK);
    assert_int_equal(l.n, DECODED);
    for (size_t i = 0; i < DECODED; i++)
        assert_int_equal(l.at_token[i], before);
    tern_sampler_free(&sampler);
    tern_session_free(&s);
    tern_model_free(&model);
}

static void test_generate(void **state) {
    (void)state;
    check_generate("bitnet-tiny");
    check_generate("llama-tiny-q4_1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counting_counts), cmocka_unit_test(test_eval),
        cmocka_unit_test(test_passes),          cmocka_unit_test(test_engine),
        cmocka_unit_test(test_sampler),         cmocka_unit_test(test_generate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
