/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a block's tensors and of architectures: complete, and without duplicates. */

#include <string.h>

#include "runtime/model/parts/block.h"
#include "tests/support/check.h"

/* Every byte of a layer's pointers and matrices belongs to exactly one tensor of the table. */
static void test_members(void **state) {
    uint8_t owners[sizeof(tern_layer)] = {0};
    size_t n, matrices = 0, members = 0;
    const tern_block_tensor *tensors = tern_block_tensors(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        const bool matrix = tensors[i].kind == TERN_BLOCK_MATRIX;
        if (tensors[i].when == TERN_HAS_LATE_FFN_NORM) /* ffn_norm by another name */
            continue;
        const size_t size = matrix ? offsetof(tern_linear, bias) : sizeof(float *);
        for (size_t k = 0; k < size; k++)
            owners[tensors[i].at + k]++;
        matrices += matrix;
        members += tensors[i].kind != TERN_BLOCK_BIAS;
    }
    check_case("%zu tensors", n);
    assert_int_equal(matrices, TERN_LAYER_LINEARS);
    for (size_t i = 0; i < sizeof owners; i++)
        assert_in_range(owners[i], 0, 1);
    /* Only the kind, its padding up to a pointer, norms and matrices. */
    assert_int_equal(sizeof(tern_layer), sizeof(float *) + matrices * sizeof(tern_linear) +
                                             (members - matrices) * sizeof(float *));
}

/* Names differ, and shapes are those of vectors and matrices. */
static void test_entries(void **state) {
    size_t n;
    const tern_block_tensor *tensors = tern_block_tensors(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        const tern_block_tensor *t = &tensors[i];
        check_case("%s", t->name);
        const bool of_one = strcmp(t->name, "ffn_gate_inp_shexp.weight") == 0; /* its only row */
        assert_int_equal(t->rows == TERN_SIZE_ONE,
                         of_one || (t->kind != TERN_BLOCK_MATRIX && t->kind != TERN_BLOCK_TAPS));
        assert_int_not_equal(t->columns, TERN_SIZE_ONE);
        const bool of_norm = (t->kind == TERN_BLOCK_NORM && strstr(t->name, "norm.bias") != NULL) ||
                             strcmp(t->name, "ssm_dt.bias") == 0; /* every delta net has it */
        assert_int_equal(strstr(t->name, ".bias") != NULL, t->kind == TERN_BLOCK_BIAS || of_norm);
        for (size_t k = 0; k < i; k++) {
            /* Two kinds of norms share a name; an architecture has one of them. */
            if ((t->when & (TERN_HAS_QK_NORMS | TERN_HAS_WIDE_QK_NORMS | TERN_HAS_LATE_FFN_NORM)) !=
                    0 &&
                t->when != tensors[k].when)
                continue;
            assert_string_not_equal(t->name, tensors[k].name);
            if (t->hf != NULL && tensors[k].hf != NULL)
                assert_string_not_equal(t->hf, tensors[k].hf);
        }
    }
}

/* tern_layer_linear returns the matrices in the order of the table. */
static void test_linears(void **state) {
    static const char *const names[TERN_LAYER_LINEARS] = {
        "attn_q.weight",         "attn_k.weight",        "attn_v.weight",
        "attn_output.weight",    "ffn_gate.weight",      "ffn_up.weight",
        "ffn_down.weight",       "ffn_gate_inp.weight",  "ffn_gate_exps.weight",
        "ffn_up_exps.weight",    "ffn_down_exps.weight", "ffn_gate_inp_shexp.weight",
        "ffn_gate_shexp.weight", "ffn_up_shexp.weight",  "ffn_down_shexp.weight",
        "attn_qkv.weight",       "attn_gate.weight",     "ssm_alpha.weight",
        "ssm_beta.weight",       "ssm_ba.weight",        "ssm_out.weight"};
    const tern_layer layer = {.kind = 0};
    const tern_linear *const members[TERN_LAYER_LINEARS] = {
        &layer.q,           &layer.k,         &layer.v,           &layer.o,
        &layer.gate,        &layer.up,        &layer.down,        &layer.router,
        &layer.expert_gate, &layer.expert_up, &layer.expert_down, &layer.shared_router,
        &layer.shared_gate, &layer.shared_up, &layer.shared_down, &layer.mixed,
        &layer.z,           &layer.alpha,     &layer.beta,        &layer.rates,
        &layer.delta_out};
    (void)state;
    for (size_t i = 0; i < TERN_LAYER_LINEARS; i++) {
        assert_string_equal(tern_block_matrix(i)->name, names[i]);
        assert_ptr_equal(tern_layer_linear(&layer, i), members[i]);
    }
}

/* Sizes that all differ, so that none can be mistaken for another. */
static void test_lengths(void **state) {
    const tern_block_sizes sizes = {
        .n_embd = 11,
        .n_ff = 13,
        .n_head = 17,
        .n_head_kv = 19,
        .head_dim = 23,
        .n_expert = 29,
        .n_ff_shared = 47,
        .query_gates = true,
        .delta = {.n_keys = 31, .n_states = 37, .state_dim = 41, .n_taps = 43}};
    static const struct {
        tern_block_size side;
        size_t length;
    } want[] = {{TERN_SIZE_ONE, 1},
                {TERN_SIZE_EMBD, 11},
                {TERN_SIZE_FF, 13},
                {TERN_SIZE_Q, 17 * 23},
                {TERN_SIZE_KV, 19 * 23},
                {TERN_SIZE_HEAD, 23},
                {TERN_SIZE_HEADS, 17},
                {TERN_SIZE_EXPERTS, 29},
                {TERN_SIZE_SHARED, 47},
                {TERN_SIZE_QUERIES, 2 * 17 * 23},
                {TERN_SIZE_CHANNELS, (2 * 31 + 37) * 41},
                {TERN_SIZE_INNER, 37 * 41},
                {TERN_SIZE_STATES, 37},
                {TERN_SIZE_STATE, 41},
                {TERN_SIZE_TAPS, 43}};
    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_int_equal(tern_block_length(&sizes, want[i].side), want[i].length);
}

/* A name finds its entry, a part of a name does not. Messages list all names, cut off where memory
 * ends. */
static void test_architectures(void **state) {
    char names[TERN_ARCH_NAMES_BYTES], few[8];
    size_t n;
    const tern_arch *archs = tern_archs(&n);
    (void)state;
    assert_string_equal(tern_arch_names(few, sizeof few), "llama, ");
    tern_arch_names(names, sizeof names);
    const char *at = names;
    for (size_t i = 0; i < n; i++) {
        const size_t size = strlen(archs[i].name);
        assert_ptr_equal(tern_arch_find((tern_span){archs[i].name, size}), &archs[i]);
        const tern_arch *shorter = tern_arch_find((tern_span){archs[i].name, size - 1});
        assert_true(shorter == NULL || strlen(shorter->name) == size - 1); /* qwen3 of qwen35 */
        assert_memory_equal(at, archs[i].name, size);
        at += size;
        assert_true(i + 1 < n ? memcmp(at, ", ", 2) == 0 : *at == '\0');
        at += 2;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),       cmocka_unit_test(test_entries),
        cmocka_unit_test(test_linears),       cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_architectures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
