/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How ranks divide a model: parts cover everything once, memory is divided, and a rank that
 * computes other numbers than the others is found out.
 */
#include "runtime/model/load/split.h"

#include <string.h>
#include <unistd.h>

#include "runtime/model/model.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

/* Opens so many ranks. */
static tern_ranks *ranks_new(const char *n) {
    tern_ranks *ranks = NULL;
    tern_error err = {0};
    if (tern_ranks_open(n, 60.0, &ranks, &err) != TERN_OK)
        check_fail("%s", err.message);
    return ranks;
}

static tern_model *open_model(const char *preset, tern_ranks *ranks) {
    tern_model_params params = tern_model_params_default();
    params.ranks = ranks;
    return tiny_open_with(preset, params);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Checks that the parts of a kind follow each other, in whole units. */
static void check_kind(const tern_split *s, tern_split_kind kind, size_t count, size_t unit) {
    size_t end = 0;
    for (uint32_t r = 0; r < s->size; r++) {
        check_case("kind %d, rank %u of %u", (int)kind, r, s->size);
        assert_int_equal(s->bounds[kind][r], end);
        end = s->bounds[kind][r + 1];
        assert_true(end % unit == 0 || end == count);
        for (size_t at = s->bounds[kind][r]; at < end; at++)
            assert_int_equal(tern_split_owner(s, kind, at), r);
    }
    assert_int_equal(end, count);
}

static void check_parts(const tern_config *c, const char *n) {
    tern_ranks *ranks = ranks_new(n);
    if (tern_ranks_rank(ranks) > 0)
        _exit(0);
    const tern_split s = tern_split_of(ranks, c);
    const size_t kv = c->n_head_kv;
    check_kind(&s, TERN_SPLIT_HEADS, kv, 1);
    check_kind(&s, TERN_SPLIT_KV, kv * c->head_dim, TERN_ROW_GROUP);
    check_kind(&s, TERN_SPLIT_Q, (size_t)c->n_head * c->head_dim, TERN_ROW_GROUP);
    check_kind(&s, TERN_SPLIT_EMBD, c->n_embd, TERN_ROW_GROUP);
    check_kind(&s, TERN_SPLIT_FF, c->n_ff, TERN_ROW_GROUP);
    check_kind(&s, TERN_SPLIT_VOCAB, c->n_vocab, TERN_ROW_GROUP);
    tern_ranks_free(&ranks);
}

static void test_parts(void **state) {
    (void)state;
    static const char *const presets[] = {"bitnet-tiny-odd", "llama-tiny-f16", "qwen2-tiny"};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        tern_model *model = tiny_open(presets[i], NULL);
        check_parts(&model->config, "1");
        check_parts(&model->config, "3");
        check_parts(&model->config, "8");
        /* heads of 8, two of which make a group of rows */
        tern_config odd = model->config;
        odd.head_dim = 8;
        odd.n_head = odd.n_head_kv = 6;
        check_parts(&odd, "4");
        tern_model_free(&model);
    }
}

static void test_whole(void **state) {
    (void)state;
    tern_model *norms = tiny_open("olmo2-tiny", NULL), *experts = tiny_open("olmoe-tiny", NULL);
    tern_ranks *ranks = ranks_new("2");
    if (tern_ranks_rank(ranks) > 0)
        _exit(0);
    const tern_split of_norms = tern_split_of(ranks, &norms->config);
    assert_false(of_norms.divided[TERN_SPLIT_HEADS] || of_norms.divided[TERN_SPLIT_Q] ||
                 of_norms.divided[TERN_SPLIT_KV]);
    assert_true(of_norms.divided[TERN_SPLIT_FF]);
    const tern_split of_experts = tern_split_of(ranks, &experts->config);
    assert_false(of_experts.divided[TERN_SPLIT_FF]);
    assert_true(of_experts.divided[TERN_SPLIT_EMBD]);
    check_kind(&of_experts, TERN_SPLIT_EXPERTS, 5, 2); /* two of 40 rows make whole groups */
    tern_ranks_free(&ranks);
    tern_model_free(&norms);
    tern_model_free(&experts);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Bytes of packed matrices and of the image of the head. */
static size_t packed_bytes(const tern_model *m) {
    size_t bytes = 0;
    for (size_t i = 0; i < m->list.n; i++) {
        const tern_load_entry *e = &m->list.entries[i];
        if (e->kind == TERN_LOAD_MATRIX || e->kind == TERN_LOAD_IMAGE)
            bytes += e->bytes;
    }
    return bytes;
}

/* Ends a rank that follows. */
static void follow(tern_model *model, tern_ranks *ranks) {
    const bool done = tern_model_follow(model, NULL) == TERN_OK;
    tern_model_free(&model);
    tern_ranks_free(&ranks);
    _exit(done ? 0 : 1);
}

static void check_memory(const char *preset) {
    size_t held[2] = {0};
    tern_model *whole = tiny_open(preset, NULL);
    const size_t all = packed_bytes(whole);
    tern_ranks *ranks = ranks_new("2");
    tern_model *model = open_model(preset, ranks);
    held[tern_ranks_rank(ranks)] = packed_bytes(model);
    const tern_status status = tern_ranks_collect(ranks, held, sizeof *held, NULL);
    if (tern_ranks_rank(ranks) > 0)
        follow(model, ranks);
    assert_int_equal(status, TERN_OK);
    size_t sum = 0;
    for (size_t i = 0; i < 2; i++) {
        check_case("%s, rank %zu: %zu of %zu bytes", preset, i, held[i], all);
        assert_true((double)held[i] < 0.575 * (double)all); /* half, and 15 % of it */
        sum += held[i];
    }
    assert_true(sum < all + all / 20); /* padding of pieces */
    tern_model_free(&model);
    tern_ranks_free(&ranks);
    tern_model_free(&whole);
}

static void test_memory(void **state) {
    (void)state;
    check_memory("bonsai-tiny-q2_0");
    check_memory("bitnet-3b-tiny");
    check_memory("maple-tiny");
}

/* ---- other numbers --------------------------------------------------------------------------- */

/* One rank's gains are others: of the output norm, or of a norm between two matrices, which a pass
 * of one row compares. */
static void check_digest(size_t n) {
    static const int32_t tokens[] = {1, 2, 3};
    tern_ranks *ranks = ranks_new("3");
    tern_model *model = open_model("bitnet-tiny", ranks);
    const float *gains = n > 1 ? model->own.output_norm : model->own.layers[0].ffn_norm;
    if (tern_ranks_rank(ranks) == 2)
        ((float *)(uintptr_t)gains)[0] += 1.0f;
    if (tern_ranks_rank(ranks) > 0)
        follow(model, ranks);
    tern_session *session = tiny_session(model, tern_session_params_default());
    tern_error err = {0};
    assert_int_equal(tern_session_eval(session, tokens, n, TERN_LOGITS_NONE, NULL, &err),
                     TERN_ERR_RANKS);
    assert_non_null(strstr(err.message, "ranks 0 and 2 computed different numbers in pass 0"));
    tern_session_free(&session);
    tern_model_free(&model);
    tern_ranks_free(&ranks);
}

static void test_digest(void **state) {
    (void)state;
    check_digest(3);
    check_digest(1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_whole),
                                       cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_digest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
