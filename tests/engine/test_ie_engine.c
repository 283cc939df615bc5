/* SPDX-License-Identifier: Apache-2.0 */
/* The four calls of tern/ie_engine.h: their answers, their figures, and that they release all
 * memory, whichever allocation fails. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_map.h"
#include "base/metrics.h"
#include "tern/ie_engine.h"
#include "tests/support/check.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/tiny_model.h"

enum { MOST = 20, CONTEXT = 512, TEXT_BYTES = 1024, TOO_LONG = 6000, STEP = 23 };

static const char model_path[] = TERN_SOURCE_DIR "/models/tern-small.gguf";
static const char story[] =
    "Once upon a time there was a small house by the sea, and in the small house there was a small "
    "room, and in the small room there was a small table. On the table there was a lamp, and by "
    "the lamp there was a book about the sea, and about the wind, and about the sun and the moon, "
    "and about all the small houses of the world.";

static tern_engine_params running; /* used by create() */

static ie_engine_t *create(void) {
    tern_error err = {0};
    ie_engine_t *e = NULL;
    const ie_engine_config_t config = {.model = model_path, .running = &running};
    if (ie_engine_create(&config, &e, &err) != TERN_OK)
        check_fail("%s", err.message);
    return e;
}

static ie_answer_t generate(ie_engine_t *e, const char *prompt, size_t max_new,
                            const ie_generate_params_t *params) {
    tern_error err = {0};
    ie_answer_t answer;
    if (ie_engine_generate(e, prompt, max_new, params, &answer, &err) != TERN_OK)
        check_fail("%s", err.message);
    assert_int_equal(strlen(answer.text), answer.size);
    return answer;
}

static ie_metrics_t measure(const ie_engine_t *e) {
    ie_metrics_t m;
    assert_int_equal(ie_engine_metrics(e, &m, NULL), TERN_OK);
    return m;
}

static int begin(void **state) {
    (void)state;
    running = tern_engine_params_default();
    running.n_ctx = CONTEXT;
    running.threads = 1;
    return 0;
}

/* ---- answers ------------------------------------------------------------------------------- */

typedef struct said {
    char text[TEXT_BYTES];
    size_t size;
} said;

static void say(said *s, const char *text, size_t size) {
    assert_true(s->size + size < sizeof s->text);
    memcpy(s->text + s->size, text, size);
    s->size += size;
}

typedef struct listener {
    tern_text_stream *stream;
    said said;
} listener;

static bool on_token(int32_t token, double seconds, void *user) {
    listener *l = user;
    (void)seconds;
    size_t size;
    const char *text = tern_text_stream_push(l->stream, token, &size);
    say(&l->said, text, size);
    return true;
}

/* The answer of a session and tern_generate. Returns the number of tokens of the prompt. */
static size_t answer_by_session(const char *prompt, size_t max_new,
                                const tern_sampler_params *sampling, said *out) {
    tern_model *model = NULL;
    tern_session *session = NULL;
    tern_sampler *sampler = NULL;
    tern_model_info info;
    const tern_tokenizer *t;
    int32_t tokens[CONTEXT];
    size_t n, size;
    listener l = {0};
    const tern_session_params params = {.n_ctx = CONTEXT, .threads = 2, .kv = TERN_FORMAT_F16};
    const tern_generate_params how = {.max_tokens = max_new};
    assert_int_equal(tern_model_open(model_path, NULL, &model, NULL), TERN_OK);
    tern_model_describe(model, &info);
    assert_int_equal(tern_model_tokenizer(model, &t, NULL), TERN_OK);
    assert_int_equal(tern_session_new(model, &params, &session, NULL), TERN_OK);
    assert_int_equal(tern_sampler_new(sampling, info.n_vocab, &sampler, NULL), TERN_OK);
    assert_int_equal(tern_text_stream_new(t, true, &l.stream, NULL), TERN_OK);
    assert_int_equal(
        tern_tokenize(t, prompt, strlen(prompt), TERN_TOKENIZE_SPECIAL, tokens, CONTEXT, &n, NULL),
        TERN_OK);
    assert_int_equal(tern_generate(session, sampler, tokens, n, &how, on_token, &l, NULL, NULL),
                     TERN_OK);
    const char *rest = tern_text_stream_flush(l.stream, &size);
    say(&l.said, rest, size);
    *out = l.said;
    check_freed(tern_text_stream_free, l.stream);
    tern_sampler_free(&sampler);
    tern_session_free(&session);
    tern_model_free(&model);
    return n;
}

static bool hear(const char *text, size_t size, void *user) {
    say(user, text, size);
    return true;
}

/* The text is that of a session. The second time, pages of the first are found and counted. */
static void test_answer(void **state) {
    (void)state;
    said expected, heard = {.size = 0};
    const ie_generate_params_t params = {.on_text = hear, .user = &heard};
    const size_t n_prompt = answer_by_session(story, MOST, NULL, &expected);
    const size_t found = (n_prompt - 1) / 64 * 64;
    ie_engine_t *e = create();
    assert_true(found >= 64);
    const ie_answer_t first = generate(e, story, MOST, &params);
    assert_int_equal(first.size, expected.size);
    assert_memory_equal(first.text, expected.text, expected.size);
    assert_int_equal(heard.size, expected.size);
    assert_memory_equal(heard.text, expected.text, expected.size);
    assert_int_equal(first.figures.n_prompt, n_prompt);
    assert_int_equal(measure(e).prefix_hits, 0);
    assert_int_equal(measure(e).prefix_misses, n_prompt);
    const ie_answer_t again = generate(e, story, MOST, NULL);
    assert_string_equal(again.digest, first.digest);
    assert_int_equal(again.size, expected.size);
    assert_memory_equal(again.text, expected.text, expected.size);
    (void)generate(e, story, MOST, NULL);
    const ie_metrics_t m = measure(e); /* over all answers, not only the last */
    assert_int_equal(m.answers, 3);
    assert_int_equal(m.prompt_tokens, 3 * n_prompt);
    assert_int_equal(m.generated_tokens, 3 * first.figures.n_generated);
    assert_int_equal(m.prefix_hits, 2 * found);
    assert_int_equal(m.prefix_misses, 3 * n_prompt - 2 * found);
    check_freed(ie_engine_destroy, e);
    assert_null(e);
}

/* Sampling is that of a session with the same sampler. Every parameter counts. */
static void test_sampling(void **state) {
    (void)state;
    tern_sampler_params ways[4];
    said expected, before = {.size = 0};
    for (size_t i = 0; i < 4; i++)
        ways[i] = tern_sampler_params_default();
    ways[1].temperature = ways[2].temperature = ways[3].temperature = 2.0f;
    ways[2].seed = 7;
    ways[3].top_k = 2;
    ie_engine_t *e = create();
    for (size_t i = 0; i < 4; i++) {
        const ie_generate_params_t params = {.sampling = &ways[i]};
        check_case("way %zu", i);
        (void)answer_by_session(story, MOST, &ways[i], &expected);
        const ie_answer_t a = generate(e, story, MOST, &params);
        assert_int_equal(a.size, expected.size);
        assert_memory_equal(a.text, expected.text, expected.size);
        assert_false(before.size == expected.size &&
                     memcmp(before.text, expected.text, before.size) == 0);
        before = expected;
    }
    ie_engine_destroy(&e);
}

/* Control tokens in a prompt are plain text: nobody can begin or end a turn with them. */
static void test_control_tokens(void **state) {
    (void)state;
    static const char prompt[] = "Once <|end_of_text|> upon <|begin_of_text|> a time";
    said expected;
    ie_engine_t *e = create();
    const size_t n = answer_by_session(prompt, MOST, NULL, &expected);
    const ie_answer_t a = generate(e, prompt, MOST, NULL);
    assert_int_equal(a.figures.n_prompt, n);
    assert_int_equal(a.size, expected.size);
    assert_memory_equal(a.text, expected.text, expected.size);
    ie_engine_destroy(&e);
}

static bool refuse(const char *text, size_t size, void *user) {
    (void)text;
    (void)size;
    return --*(int *)user > 0;
}

/* The ends of an answer: its length, a stop text, the context, the listener. */
static void test_ends(void **state) {
    (void)state;
    int left = 3;
    ie_engine_t *e = create();
    ie_generate_params_t params = {.ignore_end = true};
    assert_int_equal(generate(e, story, 5, &params).end, TERN_END_LENGTH);
    assert_int_equal(generate(e, story, 5, &params).figures.n_generated, 5);
    ie_answer_t a = generate(e, story, 0, &params);
    assert_int_equal(a.end, TERN_END_CONTEXT);
    assert_int_equal(a.figures.n_prompt + a.figures.n_generated, CONTEXT);
    const char stop[2] = {a.text[3], '\0'};
    const char *const stops[] = {stop};
    const size_t until = (size_t)(strchr(a.text, stop[0]) - a.text);
    params.stop_texts = stops;
    params.n_stop_texts = 1;
    a = generate(e, story, 0, &params);
    assert_int_equal(a.end, TERN_END_STOP_TEXT);
    assert_int_equal(a.size, until);
    params = (ie_generate_params_t){.ignore_end = true, .on_text = refuse, .user = &left};
    a = generate(e, story, 0, &params);
    assert_int_equal(a.end, TERN_END_CANCELLED);
    assert_int_equal(left, 0);
    assert_true(a.figures.n_generated < MOST);
    ie_engine_destroy(&e);
}

/* The model ends its text unless it is told to go on. The token that ends it is not part of the
 * text. */
static void test_end_of_text(void **state) {
    (void)state;
    static const char sum[] = "Q: What is 2+2? A:";
    ie_engine_t *e = create();
    const ie_generate_params_t defaults = {0}, on = {.ignore_end = true};
    const size_t ended = generate(e, sum, MOST, NULL).figures.n_generated;
    assert_true(ended > 0 && ended < MOST);
    const ie_answer_t a = generate(e, sum, MOST, &defaults);
    assert_int_equal(a.end, TERN_END_OF_TEXT);
    assert_int_equal(a.figures.n_generated, ended);
    assert_string_equal(a.text, " 4");
    const ie_answer_t longer = generate(e, sum, MOST, &on);
    assert_int_equal(longer.end, TERN_END_LENGTH);
    assert_int_equal(longer.figures.n_generated, MOST);
    ie_engine_destroy(&e);
}

/* ---- figures ------------------------------------------------------------------------------- */

typedef struct slow_text {
    double now;
    size_t heard;
} slow_text;

static double the_time(void *user) {
    return ((const slow_text *)user)->now;
}

/* The next token comes 1, 2, 3, ... ms after the one before. */
static bool pass_time(const char *text, size_t size, void *user) {
    slow_text *s = user;
    (void)text;
    assert_true(size > 0);
    s->heard++;
    s->now += 1e-3 * (double)s->heard;
    return true;
}

/* Percentiles and rates follow from the times of the test's clock. */
static void test_metrics(void **state) {
    (void)state;
    slow_text slow = {.now = 5.0};
    const ie_generate_params_t params = {.ignore_end = true, .on_text = pass_time, .user = &slow};
    running.clock = the_time;
    running.clock_user = &slow;
    ie_engine_t *e = create();
    ie_metrics_t m = measure(e);
    assert_true(m.answers == 0 && m.p50_ms == 0.0 && m.tokens_per_second == 0.0);
    const ie_answer_t a = generate(e, "Once upon a time", MOST + 1, &params);
    assert_int_equal(slow.heard, a.figures.n_generated); /* one text per token */
    const double before = tern_peak_rss_mib();
    m = measure(e);
    assert_true(fabs(m.p50_ms - 10.0) < 1e-6); /* of 1, 2, ... 20 */
    assert_true(fabs(m.p95_ms - 19.0) < 1e-6);
    assert_true(fabs(m.tokens_per_second - 20.0 / 0.210) < 1e-6);
    assert_true(m.first_token_ms == 0.0); /* the clock stood still */
    assert_true(before > 0.0 && m.peak_rss_mib >= before);
    assert_true(m.peak_rss_mib <= tern_peak_rss_mib());
    ie_engine_destroy(&e);
}

/* Each reading of the clock takes a millisecond. */
static double passing_time(void *user) {
    slow_text *s = user;
    return s->now += 1e-3;
}

/* The time to the first token is a mean over the answers, each counted from its own call. */
static void test_first_token(void **state) {
    (void)state;
    slow_text slow = {.now = 5.0};
    running.clock = passing_time;
    running.clock_user = &slow;
    ie_engine_t *e = create();
    const ie_answer_t first = generate(e, story, 3, NULL), second = generate(e, "One", 4, NULL);
    assert_true(first.figures.first_token_seconds > 0.5e-3);
    const double sum = first.figures.first_token_seconds + second.figures.first_token_seconds;
    const ie_metrics_t m = measure(e);
    assert_true(fabs(m.first_token_ms - 1e3 * sum / 2) < 1e-6);
    /* There are five gaps, and in each the engine reads its clock equally often. */
    assert_true(m.p50_ms > 0.5 && fabs(m.p95_ms - m.p50_ms) < 1e-6);
    assert_true(fabs(m.tokens_per_second - 1e3 / m.p50_ms) < 1e-6);
    ie_engine_destroy(&e);
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void test_refused(void **state) {
    (void)state;
    ie_engine_t *e = NULL;
    ie_answer_t answer;
    ie_metrics_t m;
    tern_error err = {0};
    const ie_engine_config_t none = {0}, missing = {.model = "/nowhere/model.gguf"};
    assert_int_equal(ie_engine_create(NULL, &e, NULL), TERN_ERR_NULL);
    assert_int_equal(ie_engine_create(&none, &e, NULL), TERN_ERR_NULL);
    assert_int_equal(ie_engine_create(&missing, NULL, NULL), TERN_ERR_NULL);
    assert_int_equal(ie_engine_create(&missing, &e, &err), TERN_ERR_IO);
    assert_non_null(strstr(err.message, "/nowhere/model.gguf"));
    assert_null(e);
    ie_engine_destroy(NULL);
    ie_engine_destroy(&e);
    e = create();
    assert_int_equal(ie_engine_generate(NULL, story, 1, NULL, &answer, NULL), TERN_ERR_NULL);
    assert_int_equal(ie_engine_generate(e, NULL, 1, NULL, &answer, NULL), TERN_ERR_NULL);
    assert_int_equal(ie_engine_generate(e, story, 1, NULL, NULL, NULL), TERN_ERR_NULL);
    assert_int_equal(ie_engine_metrics(NULL, &m, NULL), TERN_ERR_NULL);
    assert_int_equal(ie_engine_metrics(e, NULL, NULL), TERN_ERR_NULL);
    char *text = malloc(TOO_LONG + 1);
    for (size_t i = 0; i < TOO_LONG; i++)
        text[i] = "a b,"[i % 4];
    text[TOO_LONG] = '\0';
    assert_int_equal(ie_engine_generate(e, text, 1, NULL, &answer, &err), TERN_ERR_CONTEXT);
    assert_non_null(strstr(err.message, "512"));
    assert_int_equal(measure(e).answers, 0);
    assert_int_equal(generate(e, story, 2, NULL).figures.n_generated, 2); /* the engine goes on */
    free(text);
    ie_engine_destroy(&e);
}

/* Whoever makes the engine decides how the model is loaded. */
static void test_loading(void **state) {
    (void)state;
    ie_engine_t *e = NULL;
    tern_error err = {0};
    const tern_model_params loading = {.isa = "nonsense"}, plain = {.isa = "scalar"};
    ie_engine_config_t config = {.model = model_path, .loading = &loading, .running = &running};
    assert_int_equal(ie_engine_create(&config, &e, &err), TERN_ERR_ISA);
    assert_non_null(strstr(err.message, "nonsense"));
    assert_null(e);
    config.loading = &plain;
    assert_int_equal(ie_engine_create(&config, &e, NULL), TERN_OK);
    ie_engine_destroy(&e);
}

/* A copy of the model whose last norm makes every logit overflow. */
static void write_overflowing(char path[TINY_PATH_BYTES]) {
    tern_gguf *file = NULL;
    tern_file_map *map = NULL;
    const float large = 3e38f;
    assert_int_equal(tern_file_map_open(model_path, &map, NULL), TERN_OK);
    const size_t size = tern_file_map_size(map);
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    memcpy(bytes, tern_file_map_bytes(map), size);
    tern_file_map_close(&map);
    assert_int_equal(tern_gguf_open(model_path, &file, NULL), TERN_OK);
    const tern_gguf_tensor *norm = tern_gguf_find_tensor(file, "output_norm.weight");
    uint8_t *at = memmem(bytes, size, norm->data, norm->bytes);
    assert_non_null(at);
    for (uint64_t i = 0; i < norm->ne[0]; i++)
        memcpy(at + i * sizeof large, &large, sizeof large);
    tern_gguf_close(&file);
    tiny_path(path);
    FILE *out = fopen(path, "wb");
    assert_true(out != NULL && fwrite(bytes, 1, size, out) == size && fclose(out) == 0);
    free(bytes);
}

/* The call returns the error that ends an answer. Nothing is counted, and nothing is written. */
static void test_failed_answer(void **state) {
    (void)state;
    char path[TINY_PATH_BYTES];
    ie_engine_t *e = NULL;
    tern_error err = {0};
    ie_answer_t answer = {.text = "before"};
    write_overflowing(path);
    const ie_engine_config_t config = {.model = path, .running = &running};
    assert_int_equal(ie_engine_create(&config, &e, NULL), TERN_OK);
    (void)unlink(path);
    assert_int_equal(ie_engine_generate(e, story, MOST, NULL, &answer, &err), TERN_ERR_NONFINITE);
    assert_non_null(strstr(err.message, "not finite"));
    assert_string_equal(answer.text, "before");
    assert_int_equal(measure(e).answers, 0);
    ie_engine_destroy(&e);
}

/* Creates, generates, frees. Returns the first failure, or TERN_OK. */
static tern_status use(tern_error *err) {
    ie_engine_t *e = NULL;
    ie_answer_t answer;
    const ie_engine_config_t config = {.model = model_path, .running = &running};
    tern_status status = ie_engine_create(&config, &e, err);
    if (status == TERN_OK)
        status = ie_engine_generate(e, story, MOST, NULL, &answer, err);
    ie_engine_destroy(&e);
    return status;
}

/* Everything is released: after success, after each failed allocation of an answer, and after every
 * STEP-th failed allocation while the engine is created. */
static void test_memory(void **state) {
    (void)state;
    if (!ALLOCATIONS_CAN_FAIL)
        check_skip("a sanitizer has allocations of its own");
    tern_error err = {0};
    assert_int_equal(use(&err), TERN_OK);
    const long before = allocations_live;
    allocations_asked = 0;
    assert_int_equal(use(&err), TERN_OK);
    assert_int_equal(allocations_live, before);
    const size_t asked = allocations_asked;
    for (size_t n = 1; n <= asked; n += n + 2 * STEP < asked ? STEP : 1) {
        allocations_asked = 0;
        allocation_that_fails = n;
        err = (tern_error){0};
        const tern_status status = use(&err);
        allocation_that_fails = 0;
        if (status != TERN_OK && (status != TERN_ERR_NOMEM || err.message[0] == '\0'))
            check_fail("allocation %zu: status %d, \"%s\"", n, (int)status, err.message);
        if (allocations_live != before)
            check_fail("allocation %zu: %ld blocks were kept", n, allocations_live - before);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_answer, begin),
        cmocka_unit_test_setup(test_sampling, begin),
        cmocka_unit_test_setup(test_control_tokens, begin),
        cmocka_unit_test_setup(test_ends, begin),
        cmocka_unit_test_setup(test_end_of_text, begin),
        cmocka_unit_test_setup(test_metrics, begin),
        cmocka_unit_test_setup(test_first_token, begin),
        cmocka_unit_test_setup(test_refused, begin),
        cmocka_unit_test_setup(test_loading, begin),
        cmocka_unit_test_setup(test_failed_answer, begin),
        cmocka_unit_test_setup(test_memory, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
