/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers with a window keep only the pages that the window sees. Nothing else differs from a
 * session that keeps everything, with steps back, other tokens, failures and files in between.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash64.h"
#include "runtime/engine/session/session_file.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { CONTEXT = 500, BATCH = 7, MODELS = 3, ROUNDS = 60, ROUND = 3 };

/* Windows of 6 in the first of two layers, of 20 in both, and of 6 in three of four. */
static const char *const presets[MODELS] = {"gemma3-tiny", "mistral-tiny", "maple-tiny"};
static const uint32_t windows[MODELS] = {6, 20, 6};
static const uint32_t windowed_layers[MODELS] = {1, 2, 3};

static tern_model *models[MODELS];

static int open_models(void **state) {
    (void)state;
    for (size_t i = 0; i < MODELS; i++)
        models[i] = tiny_open(presets[i], NULL);
    return 0;
}

static int close_models(void **state) {
    (void)state;
    for (size_t i = 0; i < MODELS; i++)
        tern_model_free(&models[i]);
    return 0;
}

static tern_session *open_session(const tern_model *m, bool keep_all) {
    return tiny_session(m, (tern_session_params){.n_ctx = CONTEXT,
                                                 .n_batch = BATCH,
                                                 .threads = 2,
                                                 .kv = TERN_FORMAT_F16,
                                                 .keep_all = keep_all});
}

/* Two sessions of one model that do the same; `all` keeps all pages. */
typedef struct pair {
    const tern_model *model;
    tern_session *s, *all;
    tern_model_info info;
    uint32_t window;
    int32_t tokens[CONTEXT];
} pair;

static pair open_pair(size_t i) {
    pair p = {.model = models[i], .window = windows[i]};
    check_case("%s", presets[i]);
    tern_model_describe(p.model, &p.info);
    p.s = open_session(p.model, false);
    p.all = open_session(p.model, true);
    tiny_prompt(p.model, 3 + i, p.tokens, CONTEXT);
    assert_int_equal(p.s->pool.parts[TERN_PART_WINDOW].n, ROUND);
    assert_int_equal(p.all->pool.parts[TERN_PART_WINDOW].n, 0);
    return p;
}

static void close_pair(pair *p) {
    tern_session_free(&p->s);
    tern_session_free(&p->all);
}

/* Evaluates the next n tokens in both. The logits must be equal. */
static void go_on(const pair *p, size_t n) {
    const uint32_t at = tern_session_position(p->all);
    assert_int_equal(tern_session_position(p->s), at);
    const float *want = tiny_eval(p->all, p->tokens + at, n);
    check_floats("logits", want, tiny_eval(p->s, p->tokens + at, n), p->info.n_vocab);
    check_bytes("tokens", p->tokens, tern_session_tokens(p->s), (at + n) * sizeof *p->tokens);
}

/* Present rows are equal. Rows are missing only in layers with a window, before `kept`. */
static void check_cache(const pair *p) {
    const uint32_t n = tern_session_position(p->s), kept = p->s->sequence.kept * TERN_PAGE;
    const size_t row = tiny_cache_row_bytes(TERN_FORMAT_F16, p->info.head_dim);
    for (uint32_t layer = 0; layer < p->info.n_layer; layer++) {
        const uint32_t first = tern_config_has_window(&p->model->config, layer) ? kept : 0;
        for (uint32_t at = 0; at < n; at++) {
            const void *got = tern_session_kv(p->s, at % 2 != 0, layer, 0, at);
            assert_true((got != NULL) == (at >= first));
            if (got != NULL)
                check_bytes("row", tern_session_kv(p->all, at % 2 != 0, layer, 0, at), got, row);
        }
    }
}

/* ---- going on and back ----------------------------------------------------------------------- */

static void test_going_on(void **state) {
    (void)state;
    check_rng rng = {5};
    for (size_t i = 0; i < MODELS; i++) {
        pair p = open_pair(i);
        for (uint32_t n; (n = tern_session_position(p.all)) < CONTEXT;) {
            const uint32_t most = check_below(&rng, 3) == 0 ? 90 : 9;
            const uint32_t wish = 1 + check_below(&rng, most);
            go_on(&p, n + wish < CONTEXT ? wish : CONTEXT - n);
            check_cache(&p);
            assert_int_equal(p.s->sequence.kept,
                             tern_pages_of(tern_session_position(p.s)) > ROUND
                                 ? tern_pages_of(tern_session_position(p.s)) - ROUND
                                 : 0);
        }
        close_pair(&p);
    }
}

/* A step back by a batch and a page costs nothing. A longer one computes earlier tokens again. */
static void test_going_back(void **state) {
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        pair p = open_pair(i);
        for (uint32_t n = 70; n < CONTEXT; n += 13) {
            const uint32_t back = BATCH + TERN_PAGE < n ? n - BATCH - TERN_PAGE : 0;
            check_case("%s, back to %u of %u", presets[i], back, n);
            const uint32_t at = tern_session_position(p.all);
            go_on(&p, n - at);
            const uint64_t before = tern_session_work_done(p.s).tokens;
            assert_int_equal(tern_session_rewind(p.s, back, NULL), TERN_OK);
            assert_int_equal(tern_session_rewind(p.all, back, NULL), TERN_OK);
            assert_int_equal(tern_session_work_done(p.s).tokens, before);
            go_on(&p, n - back);
            check_cache(&p);
        }
        const uint64_t before = tern_session_work_done(p.s).tokens;
        assert_int_equal(tern_session_rewind(p.s, 200, NULL), TERN_OK);
        assert_int_equal(tern_session_rewind(p.all, 200, NULL), TERN_OK);
        assert_int_equal(tern_session_work_done(p.s).tokens, before + 200);
        go_on(&p, 50);
        check_cache(&p);
        close_pair(&p);
    }
}

static void test_random_steps(void **state) {
    (void)state;
    check_rng rng = {6};
    for (size_t i = 0; i < MODELS; i++) {
        pair p = open_pair(i);
        for (int round = 0; round < ROUNDS; round++) {
            const uint32_t n = tern_session_position(p.all);
            const uint32_t far = check_below(&rng, 3) == 0 ? n + 1 : n < 80 ? n + 1 : 80;
            const uint32_t to = n - check_below(&rng, far);
            const uint32_t room = CONTEXT - to, most = check_below(&rng, 4) == 0 ? 200 : 20;
            const uint32_t wish = 1 + check_below(&rng, most);
            check_case("%s, round %d: from %u to %u", presets[i], round, n, to);
            for (uint32_t at = to; at < CONTEXT; at++)
                p.tokens[at] = (int32_t)check_below(&rng, p.info.n_vocab);
            assert_int_equal(tern_session_rewind(p.s, to, NULL), TERN_OK);
            assert_int_equal(tern_session_rewind(p.all, to, NULL), TERN_OK);
            if (room > 0)
                go_on(&p, wish < room ? wish : room);
            check_cache(&p);
        }
        close_pair(&p);
    }
}

/* The common beginning with a new sequence is kept if its window is there; otherwise nothing is. */
static void test_reuse(void **state) {
    (void)state;
    size_t kept = 99;
    for (size_t i = 0; i < MODELS; i++) {
        pair p = open_pair(i);
        go_on(&p, 450);
        p.tokens[430] ^= 1;
        assert_int_equal(tern_session_reuse(p.s, p.tokens, 450, &kept, NULL), TERN_OK);
        assert_int_equal(kept, 430);
        assert_int_equal(tern_session_reuse(p.all, p.tokens, 450, &kept, NULL), TERN_OK);
        go_on(&p, 20);
        p.tokens[100] ^= 1;
        assert_int_equal(tern_session_reuse(p.s, p.tokens, 450, &kept, NULL), TERN_OK);
        assert_int_equal(kept, 0);
        assert_int_equal(tern_session_reuse(p.all, p.tokens, 450, &kept, NULL), TERN_OK);
        assert_int_equal(kept, 100);
        assert_int_equal(tern_session_rewind(p.all, 0, NULL), TERN_OK);
        go_on(&p, 450);
        check_cache(&p);
        close_pair(&p);
    }
}

/* Guesses are computed after the sequence and then taken back. None of them overwrites a page that
 * the sequence still sees. */
static void test_guesses(void **state) {
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        pair p = open_pair(i);
        tern_sampler *sampler = NULL;
        const tern_sampler_params sampling = tern_sampler_params_default();
        tern_generation g = {0}, plain = {0};
        tern_generate_params params = {.max_tokens = 380, .ignore_end = true};
        assert_int_equal(tern_sampler_new(&sampling, p.info.n_vocab, &sampler, NULL), TERN_OK);
        for (size_t at = 30; at < 100; at++)
            p.tokens[at] = p.tokens[at % 30]; /* gives the draft something to find */
        params.draft = TERN_DRAFT_NEVER;
        assert_int_equal(
            tern_generate(p.all, sampler, p.tokens, 100, &params, NULL, NULL, &plain, NULL),
            TERN_OK);
        params.draft = TERN_DRAFT_ALWAYS;
        assert_int_equal(tern_generate(p.s, sampler, p.tokens, 100, &params, NULL, NULL, &g, NULL),
                         TERN_OK);
        assert_true(g.n_drafted > g.n_accepted);
        check_bytes("tokens", tern_session_tokens(p.all), tern_session_tokens(p.s),
                    480 * sizeof *p.tokens);
        check_cache(&p);
        tern_sampler_free(&sampler);
        close_pair(&p);
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Rows, of which the last but one is too large. */
static float *bad_rows(const pair *p, size_t n) {
    float *rows = tiny_floats(n * p->info.n_embd);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < p->info.n_embd; j++)
            rows[i * p->info.n_embd + j] = i + 2 == n ? 3e38F : 0.01F * (float)((i + j) % 17);
    return rows;
}

/* An evaluation fails after passes that took pages. The session is unchanged. */
static void test_failure(void **state) {
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        pair p = open_pair(i);
        float *rows = bad_rows(&p, 300);
        go_on(&p, 150);
        assert_int_equal(tern_session_eval_rows(p.s, rows, 300, TERN_LOGITS_NONE, NULL, NULL),
                         TERN_ERR_NONFINITE);
        assert_int_equal(tern_session_position(p.s), 150);
        assert_true(tern_session_sees(p.s, 150));
        check_cache(&p);
        go_on(&p, 40);
        check_cache(&p);
        free(rows);
        close_pair(&p);
    }
}

/* Positions that came from rows cannot be computed again. Going far back is refused, and if a
 * failure has overwritten pages, the session is empty. */
static void test_rows(void **state) {
    (void)state;
    tern_error err = {0};
    pair p = open_pair(0);
    float *row = tiny_floats(p.info.n_embd), *rows = bad_rows(&p, 300);
    assert_int_equal(tern_model_embed(p.model, 5, row, NULL), TERN_OK);
    go_on(&p, 50);
    assert_int_equal(tern_session_eval_rows(p.s, row, 1, TERN_LOGITS_NONE, NULL, NULL), TERN_OK);
    tiny_eval(p.s, p.tokens, 250);
    assert_int_equal(tern_session_rewind(p.s, 250, NULL), TERN_OK);
    assert_int_equal(tern_session_rewind(p.s, 100, &err), TERN_ERR_STATE);
    assert_string_equal(err.message,
                        "cannot rewind to position 100: layers with a window have positions from "
                        "128 on, and position 50 came from a row, which cannot be computed again");
    assert_int_equal(tern_session_position(p.s), 250);
    assert_int_equal(tern_session_eval_at(p.s, 100, p.tokens, 3, TERN_LOGITS_NONE, NULL, NULL),
                     TERN_ERR_STATE);
    assert_int_equal(tern_session_position(p.s), 250);
    assert_int_equal(tern_session_rewind(p.s, 40, NULL), TERN_OK); /* to before the row */
    assert_int_equal(tern_session_rewind(p.all, 40, NULL), TERN_OK);
    go_on(&p, 30);
    check_cache(&p);
    assert_int_equal(tern_session_eval_rows(p.s, row, 1, TERN_LOGITS_NONE, NULL, NULL), TERN_OK);
    assert_int_equal(tern_session_eval_rows(p.s, rows, 300, TERN_LOGITS_NONE, NULL, NULL),
                     TERN_ERR_NONFINITE);
    assert_int_equal(tern_session_position(p.s), 0);
    assert_int_equal(tern_session_rewind(p.all, 0, NULL), TERN_OK);
    go_on(&p, 300);
    free(row);
    free(rows);
    close_pair(&p);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t resident(const tern_session *s) {
    return check_resident(s->pool.arena.base, s->pool.arena.size);
}

/* In layers with a window, a long context takes as much memory as a short one. */
static void test_memory(void **state) {
    (void)state;
    enum { LONG = 6000, SEEN = 3 * TERN_PAGE };
    for (size_t i = 0; i < MODELS; i++) {
        tern_model m = *models[i]; /* pretend a longer one */
        tern_model_info info;
        tern_session_cache_size size = {0}, all = {0};
        uint64_t bytes = 0, all_bytes = 0;
        m.config.n_ctx = LONG;
        check_case("%s", presets[i]);
        tern_model_describe(&m, &info);
        tern_session_params params = {
            .n_ctx = LONG, .n_batch = BATCH, .threads = 1, .kv = TERN_FORMAT_F32};
        assert_int_equal(tern_session_cache_bytes(&m, &params, &size, NULL), TERN_OK);
        assert_int_equal(tern_session_bytes(&m, &params, &bytes, NULL), TERN_OK);
        const uint64_t row = 2 * (uint64_t)info.n_head_kv * info.head_dim * sizeof(float);
        const uint32_t rest = info.n_layer - windowed_layers[i];
        const uint32_t positions = tern_pages_of(LONG) * TERN_PAGE;
        assert_int_equal(size.layers, rest);
        assert_int_equal(size.positions, positions);
        assert_int_equal(size.window_layers, windowed_layers[i]);
        assert_int_equal(size.window_positions, SEEN);
        assert_int_equal(size.bytes, row * (rest * positions + windowed_layers[i] * SEEN));
        params.keep_all = true;
        assert_int_equal(tern_session_cache_bytes(&m, &params, &all, NULL), TERN_OK);
        assert_int_equal(tern_session_bytes(&m, &params, &all_bytes, NULL), TERN_OK);
        assert_int_equal(all.window_layers, 0);
        assert_int_equal(all.bytes, row * info.n_layer * positions);
        assert_int_equal(all_bytes - bytes, all.bytes - size.bytes);
        if (i > 0)
            continue;
        params.keep_all = false;
        params.n_batch = 64;
        assert_int_equal(tern_session_cache_bytes(&m, &params, &size, NULL), TERN_OK);
        tern_session *s = tiny_session(&m, params);
        for (uint32_t at = 0; at < LONG; at += 500)
            tiny_eval(s, (const int32_t[500]){0}, 500);
        assert_int_equal(s->pool.arena.size, size.bytes);
        assert_true(resident(s) <= size.bytes + 4096);
        assert_true(resident(s) > size.bytes / 2 && resident(s) < all.bytes * 3 / 5);
        tern_session_free(&s);
    }
}

/* If a window sees the whole context, or nearly, all pages are kept and none is used twice. */
static void test_short_context(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 257; n += 64) {
        tern_session *s = tiny_session(
            models[0],
            (tern_session_params){.n_ctx = n, .n_batch = 7, .kv = TERN_FORMAT_F16, .threads = 1});
        assert_int_equal(s->pool.parts[TERN_PART_WINDOW].n, n > 192 ? ROUND : 0);
        tern_session_free(&s);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static uint64_t file_size(const char *path) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    const long size = ftell(f);
    fclose(f);
    return (uint64_t)size;
}

/* Restores a file that holds n tokens, and continues like the pair's other session. */
static void check_restored(pair *p, const char *path, bool keep_all, uint32_t n) {
    tern_session *const before = p->s;
    p->s = open_session(p->model, keep_all);
    tiny_eval(p->s, p->tokens + 3, 200); /* other tokens */
    assert_int_equal(tern_session_restore(p->s, path, NULL), TERN_OK);
    assert_int_equal(tern_session_rewind(p->all, n, NULL), TERN_OK);
    check_cache(p);
    go_on(p, 70);
    check_cache(p);
    assert_int_equal(tern_session_rewind(p->s, n / 2, NULL), TERN_OK);
    assert_int_equal(tern_session_rewind(p->all, n / 2, NULL), TERN_OK);
    go_on(p, CONTEXT - n / 2);
    check_cache(p);
    tern_session_free(&p->s);
    p->s = before;
}

/* A file holds, for layers with a window, what the session has. A session that has all can write
 * it, and one that keeps all can read it. */
static void test_files(void **state) {
    (void)state;
    static const uint32_t lengths[] = {1, 63, 64, 130, 192, 193, 400, 411};
    char path[TINY_PATH_BYTES];
    tiny_path(path);
    for (size_t i = 0; i < MODELS; i++) {
        pair p = open_pair(i);
        const uint64_t row = tiny_cache_row_bytes(TERN_FORMAT_F16, p.info.head_dim);
        for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++) {
            const uint32_t n = lengths[j];
            check_case("%s, %u tokens", presets[i], n);
            assert_int_equal(tern_session_rewind(p.s, 0, NULL), TERN_OK);
            assert_int_equal(tern_session_rewind(p.all, 0, NULL), TERN_OK);
            go_on(&p, n);
            assert_int_equal(tern_session_save(p.s, path, NULL), TERN_OK);
            const uint32_t gone = p.s->sequence.kept * TERN_PAGE;
            const uint64_t rows =
                (uint64_t)p.info.n_layer * n - (uint64_t)windowed_layers[i] * gone;
            assert_int_equal(file_size(path), 64 + 4 * n + 2 * p.info.n_head_kv * rows * row + 8);
            check_restored(&p, path, false, n);
            check_restored(&p, path, true, n);
            assert_int_equal(tern_session_rewind(p.all, n, NULL), TERN_OK);
            assert_int_equal(tern_session_save(p.all, path, NULL), TERN_OK);
            check_restored(&p, path, false, n);
        }
        close_pair(&p);
    }
    unlink(path);
}

static void put_hashes(uint8_t *bytes, size_t size) {
    tern_session_header header;
    tern_hash64 h;
    memcpy(&header, bytes, sizeof header);
    header.hash = tern_session_header_hash(&header);
    memcpy(bytes, &header, sizeof header);
    tern_hash64_start(&h);
    tern_hash64_add(&h, bytes, size - sizeof(uint64_t));
    const uint64_t hash = tern_hash64_value(&h);
    memcpy(bytes + size - sizeof hash, &hash, sizeof hash);
}

/* The file with another version and first position of layers with a window, and correct hashes. */
static void check_refused(tern_session *s, uint8_t *bytes, size_t size, uint32_t version,
                          uint32_t kept, const char *text) {
    tern_error err = {0};
    tern_session_header header;
    memcpy(&header, bytes, sizeof header);
    header.version = version;
    header.kept = kept;
    memcpy(bytes, &header, sizeof header);
    put_hashes(bytes, size);
    FILE *in = fmemopen(bytes, size, "rb");
    assert_non_null(in);
    const uint32_t before = tern_session_position(s);
    assert_int_equal(tern_session_read(s, in, "NAME", &err), TERN_ERR_SESSION);
    if (strstr(err.message, text) == NULL)
        check_fail("version %u, kept %u: %s", version, kept, err.message);
    assert_int_equal(tern_session_position(s), before);
    fclose(in);
}

static void test_wrong_files(void **state) {
    (void)state;
    char path[TINY_PATH_BYTES];
    tiny_path(path);
    pair p = open_pair(0);
    go_on(&p, 450);
    assert_int_equal(tern_session_save(p.s, path, NULL), TERN_OK);
    const size_t size = file_size(path);
    uint8_t *bytes = malloc(size);
    FILE *f = fopen(path, "rb");
    assert_true(bytes != NULL && f != NULL);
    assert_int_equal(fread(bytes, 1, size, f), size);
    fclose(f);
    assert_int_equal(bytes[8], TERN_SESSION_VERSION_KEPT);
    check_refused(p.s, bytes, size, TERN_SESSION_VERSION, 320,
                  "header of the session file is damaged");
    check_refused(p.s, bytes, size, TERN_SESSION_VERSION_KEPT, 0,
                  "header of the session file is damaged");
    check_refused(p.s, bytes, size, TERN_SESSION_VERSION_KEPT, 255,
                  "header of the session file is damaged");
    check_refused(p.s, bytes, size, TERN_SESSION_VERSION, 0, "ends after");
    check_refused(p.s, bytes, size, TERN_SESSION_VERSION_KEPT, 384, "goes on after its end");
    check_refused(p.s, bytes, size, TERN_SESSION_VERSION_KEPT, 448,
                  "layers with a window from position 448 on, what follows its 450 positions needs "
                  "them from 384 on");
    check_refused(p.s, bytes, size, TERN_SESSION_VERSION_KEPT, UINT32_MAX - 63,
                  "layers with a window from position");
    go_on(&p, 20);
    free(bytes);
    unlink(path);
    close_pair(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_going_on),      cmocka_unit_test(test_going_back),
        cmocka_unit_test(test_random_steps),  cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_guesses),       cmocka_unit_test(test_failure),
        cmocka_unit_test(test_rows),          cmocka_unit_test(test_memory),
        cmocka_unit_test(test_short_context), cmocka_unit_test(test_files),
        cmocka_unit_test(test_wrong_files),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
