/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of hot weights on every node: which weights, on which nodes, that they are true copies,
 * and that they are read. */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/engine/session.h"
#include "runtime/model/model.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { NODES = 3, PROMPT = 21 };

#define TWO_SOCKETS "pack:2 [numa] core:2 pu:1"
#define FOUR_NODES "pack:2 die:2 [numa] core:1 pu:1"

/* ---- the choice ------------------------------------------------------------------------------ */

static void add(tern_hot_list *list, const void *data, size_t bytes, tern_heat heat) {
    const tern_hot_piece piece = {.data = data, .bytes = bytes, .heat = heat};
    assert_int_equal(tern_hot_add(list, piece, NULL), TERN_OK);
}

static void test_choose(void **state) {
    static const char data[8];
    tern_hot_list list = {.n = 0};
    (void)state;
    add(NULL, data, 1, TERN_HEAT_ONCE);
    add(&list, data + 0, 1000, TERN_HEAT_SOME);
    add(&list, data + 1, 64, TERN_HEAT_ONCE);
    add(&list, data + 2, 65, TERN_HEAT_EVERYBODY);
    add(&list, NULL, 10, TERN_HEAT_ONCE); /* planned: each is a piece of its own */
    add(&list, NULL, 10, TERN_HEAT_ONCE);
    assert_int_equal(list.n, 5);
    assert_int_equal(tern_hot_choose(&list, 0), 128 + 64 + 64 + 64 + 1024);
    assert_int_equal(list.pieces[2].offset, 0);
    assert_int_equal(list.pieces[1].offset, 128);
    assert_int_equal(list.pieces[0].offset, 128 + 3 * 64);
    /* Pieces that are too large are left out. Colder ones may still fit. */
    assert_int_equal(tern_hot_choose(&list, 127), 64);
    assert_false(list.pieces[2].chosen);
    assert_true(list.pieces[1].chosen);
    assert_false(list.pieces[3].chosen);
    assert_int_equal(tern_hot_choose(&list, 63), 0);
    assert_int_equal(tern_hot_choose(&list, 128 + 64), 128 + 64);
    /* A piece that is listed twice gets the hotter use, in either order. */
    add(&list, data + 0, 1000, TERN_HEAT_EVERYBODY);
    add(&list, data + 0, 1000, TERN_HEAT_ONCE);
    assert_int_equal(list.n, 5);
    assert_int_equal(list.pieces[0].heat, TERN_HEAT_EVERYBODY);
    tern_hot_clear(&list);
    tern_hot_clear(NULL);
    assert_int_equal(tern_hot_choose(&list, 0), 0);
    tern_hot_free(&list);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* An imagined machine: nodes of two cores. */
static tern_topology *machine(void) {
    tern_processor list[2 * NODES];
    uint32_t os[NODES];
    tern_topology *t = NULL;
    for (uint32_t i = 0; i < 2 * NODES; i++) {
        list[i] = (tern_processor){
            .os = i, .node = i / 2, .socket = i / 2, .core = i, .speed = TERN_FULL_SPEED};
        os[i / 2] = i / 2 * 10;
    }
    assert_int_equal(tern_topology_of(list, 2 * NODES, os, NODES, &t, NULL), TERN_OK);
    t->foreign = true;
    return t;
}

static const tern_places none = {.numa = TERN_NUMA_NONE};

static tern_team *team_on(const tern_topology *t, uint32_t threads, tern_places wish) {
    tern_team *team = NULL;
    assert_int_equal(tern_team_new_placed(threads, t, &wish, &team, NULL), TERN_OK);
    return team;
}

static void test_nodes(void **state) {
    tern_topology *t = machine();
    (void)state;
    const tern_place places[] = {{.first = 2, .end = 3, .node = 1},
                                 {.first = 0, .end = 0, .node = 0}, /* not bound */
                                 {.first = 3, .end = 4, .node = 1},
                                 {.first = 4, .end = 6, .node = 2}};
    assert_int_equal(tern_replica_nodes(t, places, 4), 2);
    assert_int_equal(tern_replica_nodes(t, places, 3), 1);
    assert_int_equal(tern_replica_nodes(t, places + 1, 1), 0);
    t->n_nodes = 1;
    assert_int_equal(tern_replica_nodes(t, places, 4), 0);
    t->n_nodes = NODES;
    tern_topology_free(&t);
}

/* Pieces of odd sizes, together more than two huge pages. */
static const size_t sizes[] = {1, 63, 64, 65, 5000003, 4096, 777, 2097152, 3};
enum { N_PIECES = sizeof sizes / sizeof *sizes };

static void check_copies(const tern_topology *t, uint32_t threads, const uint8_t *data) {
    tern_hot_list list = {.n = 0};
    tern_replicas r;
    const uint8_t *at = data;
    tern_team *team = team_on(t, threads, (tern_places){.affinity = TERN_AFFINITY_SCATTER});
    check_case("%u threads", threads);
    for (size_t i = 0; i < N_PIECES; at += sizes[i++]) {
        const tern_hot_piece piece = {
            .data = at, .bytes = sizes[i], .heat = (tern_heat)(i % 3), .in_file = i % 2};
        assert_int_equal(tern_hot_add(&list, piece, NULL), TERN_OK);
    }
    const size_t bytes = tern_hot_choose(&list, 0);
    assert_int_equal(tern_replicas_new(&list, bytes, t, &none, team, &r, NULL), TERN_OK);
    assert_int_equal(r.problem.status, TERN_OK);
    assert_int_equal(r.refused, 0);
    for (uint32_t node = 0; node < NODES; node++)
        for (size_t i = 0; i < N_PIECES; i++) {
            const tern_hot_piece *p = &list.pieces[i];
            const uint8_t *copy = tern_replica_find(&list, &r, node, p->data);
            if (node >= threads) { /* scattered: no thread runs there */
                assert_ptr_equal(copy, p->data);
                continue;
            }
            assert_true(copy >= r.arenas[node].base &&
                        copy + p->bytes <= r.arenas[node].base + bytes);
            assert_memory_equal(copy, p->data, p->bytes);
        }
    assert_ptr_equal(tern_replica_find(&list, &r, 0, &r), &r); /* not a piece */
    assert_null(tern_replica_find(&list, &r, 0, NULL));
    tern_replicas_free(&r);
    assert_ptr_equal(tern_replica_find(&list, &r, 0, data), data);
    tern_team_free(&team);
    tern_hot_free(&list);
}

static void test_copies(void **state) {
    tern_topology *t = machine();
    check_rng rng = {1};
    size_t total = 0;
    (void)state;
    for (size_t i = 0; i < N_PIECES; i++)
        total += sizes[i];
    uint8_t *data = malloc(total);
    assert_non_null(data);
    for (size_t i = 0; i < total; i++)
        data[i] = (uint8_t)check_random(&rng);
    for (uint32_t threads = 1; threads <= 8; threads++)
        check_copies(t, threads, data);
    free(data);
    tern_topology_free(&t);
}

/* Without memory for copies, the error names the first node, and the data is read where it lies. */
static void test_no_memory(void **state) {
    tern_topology *t = machine();
    tern_team *team = team_on(t, 4, none);
    tern_hot_list list = {.n = 0};
    tern_replicas r;
    (void)state;
    add(&list, &list, SIZE_MAX / 4, TERN_HEAT_ONCE);
    const size_t bytes = tern_hot_choose(&list, 0);
    assert_int_equal(tern_replicas_new(&list, bytes, t, &none, team, &r, NULL), TERN_OK);
    assert_int_equal(r.problem.status, TERN_ERR_NOMEM);
    assert_non_null(strstr(r.problem.message, "bytes on node 0"));
    assert_ptr_equal(tern_replica_find(&list, &r, 0, &list), &list);
    tern_replicas_free(&r);
    tern_team_free(&team);
    tern_hot_free(&list);
    tern_topology_free(&t);
}

/* ---- models ---------------------------------------------------------------------------------- */

static tern_model *open_on(const char *description, const char *preset, tern_model_params params) {
    assert_int_equal(setenv("HWLOC_SYNTHETIC", description, 1), 0);
    tern_model *m = tiny_open_with(preset, params);
    assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
    return m;
}

/* Checks that a node's vector or matrix has the same bytes and lies in the node's replica. */
static void check_piece(const tern_model *m, uint32_t node, const void *own, const void *copy,
                        size_t bytes) {
    const tern_arena *arena = &m->replicas.copies.arenas[node];
    if (own == NULL) {
        assert_null(copy);
        return;
    }
    const uint8_t *c = copy;
    assert_true(c >= arena->base && c + bytes <= arena->base + arena->size);
    assert_memory_equal(own, copy, bytes);
}

static void check_linear(const tern_model *m, uint32_t node, const tern_linear *own,
                         const tern_linear *copy) {
    if (own->matrix.layout == TERN_LAYOUT_ROWS)
        check_piece(m, node, own->matrix.data, copy->matrix.data, (size_t)own->tensor->bytes);
    else
        assert_ptr_equal(own->matrix.data, copy->matrix.data); /* packed by its readers */
    check_piece(m, node, own->bias, copy->bias, own->matrix.rows * sizeof(float));
}

static void check_set(const tern_model *m, uint32_t node) {
    const tern_weight_set *w = &m->replicas.sets[node];
    const tern_config *c = &m->config;
    const size_t heads = (size_t)c->n_head * c->head_dim;
    for (uint32_t n = 0; n < c->n_layer; n++) {
        const tern_layer *a = &m->layers[n];
        const tern_layer *b = &w->layers[n];
        check_piece(m, node, a->attn_norm, b->attn_norm, 4 * c->n_embd);
        check_piece(m, node, a->ffn_norm, b->ffn_norm, 4 * c->n_embd);
        check_piece(m, node, a->attn_sub_norm, b->attn_sub_norm, 4 * heads);
        check_piece(m, node, a->ffn_sub_norm, b->ffn_sub_norm, 4 * c->n_ff);
        check_piece(m, node, a->attn_post_norm, b->attn_post_norm, 4 * c->n_embd);
        check_piece(m, node, a->ffn_post_norm, b->ffn_post_norm, 4 * c->n_embd);
        check_piece(m, node, a->q_norm, b->q_norm, 4 * c->head_dim);
        check_piece(m, node, a->k_norm, b->k_norm, 4 * c->head_dim);
        for (size_t i = 0; i < tern_block_linears(c->arch, a->kind); i++)
            check_linear(m, node, tern_layer_linear(a, i), tern_layer_linear(b, i));
    }
    check_linear(m, node, &m->own.head, &w->head);
    check_piece(m, node, m->own.output_norm, w->output_norm, 4 * c->n_embd);
    check_piece(m, node, m->own.embedding.data, w->embedding.data,
                c->n_vocab * m->own.embedding.row_bytes);
}

/* The logits of a prompt, and the tokens that follow it. */
static float *answer(const tern_model *m, uint32_t threads, int32_t *picked, size_t n) {
    int32_t tokens[PROMPT];
    tern_sampler *sampler = NULL;
    const tern_sampler_params greedy = tern_sampler_params_default();
    const uint32_t n_vocab = m->config.n_vocab;
    float *logits = tiny_floats((size_t)PROMPT * n_vocab);
    tern_session *s =
        tiny_session(m, (tern_session_params){.threads = threads, .kv = TERN_FORMAT_F16});
    tiny_prompt(m, 7, tokens, PROMPT);
    assert_int_equal(tern_session_eval(s, tokens, PROMPT, TERN_LOGITS_ALL, logits, NULL), TERN_OK);
    assert_int_equal(tern_sampler_new(&greedy, n_vocab, &sampler, NULL), TERN_OK);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(tern_session_pick(s, sampler, &picked[i], NULL), TERN_OK);
        assert_int_equal(tern_session_eval(s, &picked[i], 1, TERN_LOGITS_NONE, NULL, NULL),
                         TERN_OK);
    }
    tern_sampler_free(&sampler);
    tern_session_free(&s);
    return logits;
}

static void check_model(const char *preset, const char *description, tern_model_params params) {
    enum { MORE = 4 };
    int32_t wanted[MORE], got[MORE];
    check_case("%s on %s", preset, description);
    params.threads = 4;
    tern_model *plain = open_on(description, preset, params);
    params.replicate = true;
    tern_model *m = open_on(description, preset, params);
    const uint32_t nodes = tern_topology_nodes(tern_model_topology(m));
    assert_null(plain->replicas.sets);
    assert_int_equal(m->replicas.n, nodes);
    for (uint32_t node = 0; node < nodes; node++)
        check_set(m, node);
    float *logits = answer(plain, 1, wanted, MORE);
    for (uint32_t threads = 1; threads <= 6; threads++) {
        float *same = answer(m, threads, got, MORE);
        check_floats("logits", logits, same, (size_t)PROMPT * m->config.n_vocab);
        assert_memory_equal(wanted, got, sizeof wanted);
        free(same);
    }
    free(logits);
    tern_model_free(&m);
    tern_model_free(&plain);
}

static void need_hwloc(void) {
    if (!tern_topology_supported())
        check_skip("built without hwloc");
}

static void test_models(void **state) {
    (void)state;
    need_hwloc();
    for (size_t i = 0; tiny_presets()[i] != NULL; i++) {
        check_model(tiny_presets()[i], TWO_SOCKETS, (tern_model_params){.isa = NULL});
        if (i % 4 == 0)
            check_model(tiny_presets()[i], FOUR_NODES, (tern_model_params){.exact_head = true});
    }
}

/* Flips the sign of a number in a node's replica. `sign` points to its last byte. */
static void spoil(const tern_model *m, uint32_t node, const void *sign) {
    uint8_t *base = m->replicas.copies.arenas[node].base;
    base[(const uint8_t *)sign - base] ^= 0x80;
}

/* The last logit after one token, requested after the pass. */
static float last_logit(const tern_model *m, uint32_t threads) {
    const int32_t token = 1;
    const float *logits = NULL;
    tern_session *s =
        tiny_session(m, (tern_session_params){.threads = threads, .kv = TERN_FORMAT_F16});
    assert_int_equal(tern_session_eval(s, &token, 1, TERN_LOGITS_NONE, NULL, NULL), TERN_OK);
    assert_int_equal(tern_session_last_logits(s, &logits, NULL), TERN_OK);
    const float logit = logits[m->config.n_vocab - 1];
    tern_session_free(&s);
    return logit;
}

/* Shows which copy is read by changing a weight in one replica alone. Every node computes norms. */
static void test_norms_are_read(void **state) {
    int32_t nothing[1];
    (void)state;
    need_hwloc();
    tern_model *m = open_on(TWO_SOCKETS, "llama-tiny-f16",
                            (tern_model_params){.threads = 4, .replicate = true});
    const size_t count = (size_t)PROMPT * m->config.n_vocab;
    float *whole = answer(m, 4, nothing, 0);
    for (uint32_t node = 0; node < 2; node++) {
        const tern_weight_set *w = &m->replicas.sets[node];
        spoil(m, node, (const uint8_t *)w->layers[0].attn_norm + sizeof(float) - 1);
        float *spoiled = answer(m, 4, nothing, 0);
        assert_memory_not_equal(whole, spoiled, count * sizeof *whole);
        free(spoiled);
        spoil(m, node, (const uint8_t *)w->layers[0].attn_norm + sizeof(float) - 1);
    }
    free(whole);
    tern_model_free(&m);
}

/* Any free thread takes rows of the head. A single thread runs on the first node. */
static void test_heads_are_read(void **state) {
    const uint8_t *sign[2];
    (void)state;
    need_hwloc();
    tern_model *m = open_on(TWO_SOCKETS, "llama-tiny-f16",
                            (tern_model_params){.threads = 4, .replicate = true});
    const float right = last_logit(m, 1);
    for (uint32_t node = 0; node < 2; node++) /* the last row's first weight, f16 */
        sign[node] = tern_float_row(&m->replicas.sets[node].head.matrix, m->config.n_vocab - 1) + 1;
    spoil(m, 1, sign[1]);
    assert_true(last_logit(m, 1) == right);
    spoil(m, 0, sign[0]);
    for (uint32_t threads = 1; threads <= 4; threads++)
        assert_true(last_logit(m, threads) != right);
    spoil(m, 0, sign[0]);
    spoil(m, 1, sign[1]);
    assert_true(last_logit(m, 4) == right);
    tern_model_free(&m);
}

/* A model without weights plans what a model with weights takes. */
static void test_plan(void **state) {
    static const uint64_t limits[] = {0, 1, 5000, 1 << 20};
    (void)state;
    need_hwloc();
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        tern_model_params params = {
            .threads = 4, .replicate = true, .replicate_limit = limits[i], .no_weights = true};
        tern_model_info planned, loaded;
        tern_model *m = open_on(TWO_SOCKETS, "qwen2-tiny", params);
        tern_model_describe(m, &planned);
        tern_model_free(&m);
        params.no_weights = false;
        m = open_on(TWO_SOCKETS, "qwen2-tiny", params);
        tern_model_describe(m, &loaded);
        tern_model_free(&m);
        assert_int_equal(planned.replicas, loaded.replicas);
        assert_int_equal(planned.replica_bytes, loaded.replica_bytes);
        assert_int_equal(loaded.replicas, limits[i] == 1 ? 0 : 2);
        assert_true(limits[i] == 0 || loaded.replica_bytes <= limits[i]);
        assert_true(limits[i] == 1 || loaded.replica_bytes > 0);
    }
}

/* No replicas on a single node or with unbound threads; otherwise only where threads run. */
static void test_nothing_to_do(void **state) {
    tern_model_params params = {.threads = 2, .replicate = true};
    (void)state;
    need_hwloc();
    tern_model *m = open_on("pack:1 core:4 pu:1", "bitnet-tiny", params);
    assert_int_equal(m->replicas.n, 0);
    assert_null(m->replicas.sets);
    tern_model_free(&m);
    params.places.affinity = TERN_AFFINITY_NONE;
    m = open_on(TWO_SOCKETS, "bitnet-tiny", params);
    assert_int_equal(m->replicas.n, 0);
    tern_model_free(&m);
    params.places = (tern_places){.numa = TERN_NUMA_NODE, .node = 1};
    m = open_on(TWO_SOCKETS, "bitnet-tiny", params);
    assert_int_equal(m->replicas.n, 1);
    assert_null(m->replicas.sets[0].layers);
    assert_non_null(m->replicas.sets[1].layers);
    tern_model_free(&m);
}

/* ---- a machine with several nodes ------------------------------------------------------------ */

/* The system's number of the node that holds the page of `data`; below 0: unknown. */
static int node_of_page(const uint8_t *data) {
    void *page = (void *)((uintptr_t)data / 4096 * 4096);
    int node = -1;
    return syscall(SYS_move_pages, 0, 1, &page, NULL, &node, 0) == 0 ? node : -1;
}

/* The memory policy of the page: 0 is the system's default, 2 (MPOL_BIND) allows one node. */
static int policy_of(const uint8_t *data) {
    enum { OF_ADDRESS = 2 };
    int policy = -1;
    return syscall(SYS_get_mempolicy, &policy, NULL, 0, data, OF_ADDRESS) == 0 ? policy : -1;
}

/* Every page of a replica lies on its node, whatever policy applies to the rest. */
static void check_pages(tern_places places) {
    tern_model *m =
        tiny_open_with("llama-tiny-f32", (tern_model_params){.places = places, .replicate = true});
    const tern_topology *t = tern_model_topology(m);
    check_case("affinity %d, numa %d", (int)places.affinity, (int)places.numa);
    assert_int_equal(m->refused, 0);
    assert_int_equal(m->replicas.n, places.numa == TERN_NUMA_NODE ? 1 : t->n_nodes);
    for (uint32_t node = 0; node < t->n_nodes; node++) {
        const tern_arena *arena = &m->replicas.copies.arenas[node];
        for (size_t at = 0; arena->base != NULL && at < arena->size; at += 4096)
            assert_int_equal(node_of_page(arena->base + at), (int)t->node_os[node]);
        if (arena->base == NULL)
            continue;
        assert_true(places.numa == TERN_NUMA_STRICT ? policy_of(arena->base) == 2
                                                    : policy_of(arena->base) > 0);
        check_set(m, node);
    }
    tern_model_free(&m);
}

static void test_real_nodes(void **state) {
    tern_topology *t = NULL;
    (void)state;
    assert_int_equal(tern_topology_new(&t, NULL), TERN_OK);
    const uint32_t nodes = t->n_nodes;
    const uint32_t last = t->node_os[nodes - 1];
    const bool here = !t->foreign && tern_topology_threads(t) >= nodes;
    tern_topology_free(&t);
    if (nodes < 2 || !here)
        check_skip("this machine has one node of memory, or fewer processors than nodes");
    check_pages((tern_places){.affinity = TERN_AFFINITY_AUTO});
    check_pages((tern_places){.affinity = TERN_AFFINITY_SCATTER});
    check_pages((tern_places){.numa = TERN_NUMA_INTERLEAVE});
    check_pages((tern_places){.numa = TERN_NUMA_STRICT});
    check_pages((tern_places){.numa = TERN_NUMA_NODE, .node = last});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choose),         cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_copies),         cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_models),         cmocka_unit_test(test_norms_are_read),
        cmocka_unit_test(test_heads_are_read), cmocka_unit_test(test_plan),
        cmocka_unit_test(test_nothing_to_do),  cmocka_unit_test(test_real_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
