/* SPDX-License-Identifier: Apache-2.0 */
/* Delta nets: their functions, and the states that sequences keep between passes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/delta.h"
#include "runtime/engine/session.h"
#include "tests/engine/plain_delta.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { PROMPT = 140 /* two pages are full */, LATER = 12, ALL = PROMPT + LATER, MOST_DIM = 130 };

static const char *preset = "qwen35-tiny";
static bool brief; /* fewer places and sizes: other presets take the same ways */

/* ---- functions ------------------------------------------------------------------------------- */

static double relative(double got, double want) {
    return fabs(got - want) / fabs(want);
}

/* Within the bounds of docs/numerics.md, over the range in which the result is a normal float. */
static void test_bounds(void **state) {
    (void)state;
    for (float x = -86.0f; x < 86.0f; x += 0.0137f) {
        check_case("x = %g", (double)x);
        assert_true(relative((double)tern_logistic(x), 1.0 / (1.0 + exp(-(double)x))) < 3e-7);
        assert_true(relative((double)tern_softplus(x), log1p(exp((double)x))) < 4e-7);
        assert_true(tern_logistic(x) == plain_logistic(x));
        assert_true(tern_softplus(x) == plain_softplus(x));
    }
    assert_true(tern_softplus(1e30f) == 1e30f && tern_softplus(-1e30f) == 0.0f);
    assert_true(tern_logistic(1e30f) == 1.0f && tern_logistic(-1e30f) == 0.0f);
}

/* A number between -1 and 1 that depends on i. */
static float some(uint32_t i) {
    return (float)(int32_t)(i * 2654435761u ^ i << 13) * 0x1p-31f;
}

/* States of any width are changed column by column, however many columns are changed at once. */
static void test_step(void **state) {
    static const size_t dims[] = {1, 7, 31, 32, 33, 64, 128, MOST_DIM};
    static float s[MOST_DIM * MOST_DIM], want[MOST_DIM * MOST_DIM];
    float q[MOST_DIM], k[MOST_DIM], v[MOST_DIM], o[MOST_DIM], read[MOST_DIM];
    (void)state;
    for (size_t n = 0; n < sizeof dims / sizeof *dims; n++) {
        const size_t dim = dims[n];
        const tern_delta_token token = {q, k, v, {.decay = 0.9f, .beta = 0.7f}};
        check_case("%zu x %zu", dim, dim);
        for (size_t i = 0; i < dim * dim; i++)
            s[i] = want[i] = some((uint32_t)i + 1);
        for (size_t i = 0; i < dim; i++) {
            q[i] = some((uint32_t)i + 100000);
            k[i] = some((uint32_t)i + 200000);
            v[i] = some((uint32_t)i + 300000);
        }
        tern_delta_step(s, dim, &token, o);
        for (size_t j = 0; j < dim; j++)
            read[j] = plain_column(want, dim, j, q, k, v[j], 0.9f, 0.7f);
        check_floats("read", read, o, dim);
        check_floats("state", want, s, dim * dim);
        plain_unit(q, dim, 0.3f);
        tern_delta_unit(k, dim, 0.3f);
        tern_delta_unit(memcpy(read, q, sizeof read), dim, 0.3f);
        plain_unit(q, dim, 0.3f);
        check_floats("unit", q, read, dim);
    }
}

/* ---- sequences ------------------------------------------------------------------------------- */

static tern_session *open(const tern_model *model, uint32_t n_batch) {
    return tiny_session(model,
                        (tern_session_params){
                            .n_ctx = 256, .n_batch = n_batch, .threads = 2, .kv = TERN_FORMAT_F16});
}

/* The logits after all tokens, read from nothing. */
static float *fresh(const tern_model *model, const int32_t *tokens, size_t n) {
    tern_session *s = open(model, 256);
    float *logits = tiny_floats(model->config.n_vocab);
    memcpy(logits, tiny_eval(s, tokens, n), model->config.n_vocab * sizeof *logits);
    tern_session_free(&s);
    return logits;
}

/* Two sequences of tokens that part at a position. */
typedef struct parted {
    int32_t one[ALL], other[ALL];
} parted;

static parted part(const tern_model *model, size_t at) {
    parted p;
    tiny_prompt(model, 3, p.one, ALL);
    tiny_prompt(model, 4, p.other, ALL);
    memcpy(p.other, p.one, at * sizeof *p.one);
    return p;
}

/* Steps back give what the tokens give, wherever they lead. */
static void test_rewind(void **state) {
    static const uint32_t places[] = {2, PROMPT, 0, 1, 3, PROMPT - 1, ALL - 1};
    const size_t n = brief ? 2 : sizeof places / sizeof *places;
    tern_model *model = tiny_open(preset, NULL);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        const parted p = part(model, places[i]);
        tern_session *s = open(model, 16);
        float *want = fresh(model, p.other, ALL);
        check_case("back to %u", places[i]);
        (void)tiny_eval(s, p.one, ALL);
        assert_int_equal(tern_session_rewind(s, places[i], NULL), TERN_OK);
        check_floats("logits", want, tiny_eval(s, p.other + places[i], ALL - places[i]),
                     model->config.n_vocab);
        free(want);
        tern_session_free(&s);
    }
    tern_model_free(&model);
}

/* A saved session goes on as the one that was saved, and a damaged file is refused. */
static void test_saved(void **state) {
    char path[TINY_PATH_BYTES];
    tern_model *model = tiny_open(preset, NULL);
    const parted p = part(model, ALL);
    float *want = fresh(model, p.one, ALL);
    (void)state;
    tern_session *s = open(model, 16), *restored = open(model, 256);
    tiny_path(path);
    (void)tiny_eval(s, p.one, PROMPT);
    assert_int_equal(tern_session_save(s, path, NULL), TERN_OK);
    (void)tiny_eval(restored, p.one, 5);
    assert_int_equal(tern_session_restore(restored, path, NULL), TERN_OK);
    check_floats("logits", want, tiny_eval(restored, p.one + PROMPT, LATER), model->config.n_vocab);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, -100, SEEK_END), 0); /* among the states */
    assert_int_equal(fputc('x', f), 'x');
    assert_int_equal(fclose(f), 0);
    assert_int_equal(tern_session_restore(restored, path, NULL), TERN_ERR_SESSION);
    unlink(path);
    free(want);
    tern_session_free(&s);
    tern_session_free(&restored);
    tern_model_free(&model);
}

/* The memory of states is in what sessions and engines are said to take. Layers that have states
 * have no keys and values. */
static void test_memory(void **state) {
    tern_model *model = tiny_open(preset, NULL);
    const tern_delta_sizes *d = &model->config.delta;
    const tern_session_params params = {.n_ctx = 64, .n_batch = 8, .kv = TERN_FORMAT_F16};
    tern_session_cache_size size;
    (void)state;
    assert_int_equal(tern_session_cache_bytes(model, &params, &size, NULL), TERN_OK);
    assert_int_equal(size.layers, 1);
    const size_t states = 2 * (3 * tern_delta_channels(d) + d->n_states * 40 * 40) * sizeof(float);
    const size_t rows = (size_t)64 * 2 * 2 * 32 * 2; /* positions, heads, k and v, halves */
    assert_in_range(size.bytes, states + rows, states + rows + 256);
    assert_int_equal(tern_model_kv_bytes(model, 64, TERN_FORMAT_F16), rows);
    tern_engine_params two = {.n_ctx = 64, .n_sequences = 2, .kv = TERN_FORMAT_F16};
    tern_engine_params three = two;
    uint64_t less, more;
    three.n_sequences = 3;
    assert_int_equal(tern_engine_pool_bytes(model, &two, 64, &less, NULL), TERN_OK);
    assert_int_equal(tern_engine_pool_bytes(model, &three, 64, &more, NULL), TERN_OK);
    assert_in_range(more - less, states - 128, states + 128); /* parts begin at whole lines */
    tern_model_free(&model);
}

/* ---- many sequences -------------------------------------------------------------------------- */

typedef struct answer {
    int32_t tokens[LATER];
    size_t n;
} answer;

/* Guesses that are wrong, but for chance. */
static size_t guess_wrong(void *user, const tern_progress *progress, int32_t *guesses,
                          size_t most) {
    (void)user, (void)progress;
    for (size_t i = 0; i < most && i < 3; i++)
        guesses[i] = (int32_t)i + 5;
    return most < 3 ? most : 3;
}

static void run(tern_engine *e, const int32_t *const *prompts, size_t n, bool guesses,
                answer *answers) {
    uint64_t ids[4] = {0};
    const tern_event *events;
    size_t n_events;
    for (size_t i = 0; i < n; i++) {
        const tern_request r = {.tokens = prompts[i],
                                .n_tokens = PROMPT,
                                .max_tokens = LATER,
                                .ignore_end = true,
                                .guess = guesses ? guess_wrong : NULL};
        answers[i].n = 0;
        assert_int_equal(tern_engine_submit(e, &r, &ids[i], NULL), TERN_OK);
    }
    for (size_t over = 0; over < n;) {
        assert_int_equal(tern_engine_step(e, &events, &n_events, NULL), TERN_OK);
        for (size_t k = 0; k < n_events; k++)
            for (size_t i = 0; i < n; i++) {
                if (events[k].request != ids[i])
                    continue;
                over += events[k].kind == TERN_EVENT_END;
                if (events[k].kind == TERN_EVENT_TOKEN)
                    answers[i].tokens[answers[i].n++] = events[k].token;
            }
    }
}

/* Sequences that begin alike, at once and in turn, in passes of any size, with guesses asked for
 * or not: each gets what it gets alone. Nothing of another one's state is left in its own. */
static void test_sequences(void **state) {
    tern_model *model = tiny_open(preset, NULL);
    const parted p = part(model, PROMPT / 2), same = part(model, PROMPT - 1);
    const int32_t *const prompts[] = {p.one, p.other, p.one, same.other};
    answer alone[4], now[4];
    (void)state;
    for (uint32_t batch = brief ? 38 : 4; batch < 90; batch += brief ? 90 : 17) {
        tern_engine *e = NULL;
        const tern_engine_params params = {.n_ctx = 256,
                                           .n_sequences = 3,
                                           .n_batch = batch,
                                           .threads = 2,
                                           .pool_bytes = 1 << 20,
                                           .kv = TERN_FORMAT_F16};
        check_case("passes of %u", batch);
        assert_int_equal(tern_engine_new(model, &params, &e, NULL), TERN_OK);
        for (size_t i = 0; i < 4; i++)
            run(e, &prompts[i], 1, false, &alone[i]);
        for (int guesses = 0; guesses < 2; guesses++) {
            run(e, prompts, 4, guesses != 0, now);
            check_bytes("answers", alone, now, sizeof alone);
        }
        tern_engine_free(&e);
    }
    tern_session *s = open(model, 16);
    float *want = fresh(model, p.one, PROMPT);
    assert_int_equal(tern_argmax(want, model->config.n_vocab), alone[0].tokens[0]);
    free(want);
    tern_session_free(&s);
    tern_model_free(&model);
}

int main(void) {
    static const char *const others[] = {"qwen35moe-tiny", "qwen3next-tiny"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds), cmocka_unit_test(test_step),
        cmocka_unit_test(test_rewind), cmocka_unit_test(test_saved),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_sequences),
    };
    const struct CMUnitTest of_others[] = {
        cmocka_unit_test(test_rewind), cmocka_unit_test(test_saved), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_sequences)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        preset = others[i];
        brief = true;
        failed += cmocka_run_group_tests(of_others, NULL, NULL);
    }
    return failed;
}
