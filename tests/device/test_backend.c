/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes are operations of a backend. Through a table that counts them, they give the same logits
 * and take exactly the operations of the formula. With any operation left out, the logits differ.
 * When an operation is refused, the pass is refused. Lanes meet no more often than the formula
 * needs.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device/lane.h"
#include "runtime/engine/forward/internal.h"
#include "runtime/engine/session.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

/* X(entry, parameters after the stream, arguments): the entries that passes may call. */
#define CALLED(X)                                                                                  \
    X(multiply, (const tern_device_product *a, size_t n, tern_error *err), (d, stream, a, n, err)) \
    X(quantize_token,                                                                              \
      (const tern_device_rows *x, const tern_device_quantized *out, tern_error *err),              \
      (d, stream, x, out, err))                                                                    \
    X(quantize_block,                                                                              \
      (const tern_device_rows *x, const tern_device_quantized *out, tern_error *err),              \
      (d, stream, x, out, err))                                                                    \
    X(rmsnorm,                                                                                     \
      (const tern_device_rows *x, const float *g, float eps, const tern_device_rows *y,            \
       tern_error *err),                                                                           \
      (d, stream, x, g, eps, y, err))                                                              \
    X(hadamard,                                                                                    \
      (const tern_device_rows *x, const float *before, const float *after, size_t block,           \
       const tern_device_rows *y, tern_error *err),                                                \
      (d, stream, x, before, after, block, y, err))                                                \
    X(rope, (const tern_device_rope *a, tern_error *err), (d, stream, a, err))                     \
    X(gate,                                                                                        \
      (tern_op op, const tern_device_rows *g, const tern_device_rows *u,                           \
       const tern_device_rows *y, tern_error *err),                                                \
      (d, stream, op, g, u, y, err))                                                               \
    X(add, (const tern_device_rows *x, const tern_device_rows *y, tern_error *err),                \
      (d, stream, x, y, err))                                                                      \
    X(copy, (const tern_device_rows *x, const tern_device_rows *y, tern_error *err),               \
      (d, stream, x, y, err))                                                                      \
    X(round, (tern_op op, const tern_device_rows *x, const tern_device_rows *y, tern_error *err),  \
      (d, stream, op, x, y, err))                                                                  \
    X(embed,                                                                                       \
      (const tern_matrix *w, const int32_t *ids, float factor, const tern_device_rows *y,          \
       tern_error *err),                                                                           \
      (d, stream, w, ids, factor, y, err))                                                         \
    X(store_pages, (const tern_device_store *a, tern_error *err), (d, stream, a, err))             \
    X(attend_pages, (const tern_device_attend_pages *a, tern_error *err), (d, stream, a, err))     \
    X(watch, (const tern_device_watch *a, tern_error *err), (d, stream, a, err))

enum entry {
#define NUMBER(name, parameters, arguments) ENTRY_##name,
    CALLED(NUMBER)
#undef NUMBER
        ENTRIES
};

static const char *const names[ENTRIES] = {
#define NAME(name, parameters, arguments) #name,
    CALLED(NAME)
#undef NAME
};

enum { NONE = -1, THREADS = 3, PROMPT = 11 };

/* ---- a table between the passes and the processor's ------------------------------------------ */

static const tern_device_ops *real; /* the processor's */
static atomic_size_t calls[ENTRIES], meetings;
static _Thread_local bool runs; /* an operation does */
static bool alone;              /* one thread does the work of several lanes, so nobody comes */
static int left_out = NONE, refused = NONE;

void __real_tern_worker_meet(tern_worker worker);
void __wrap_tern_worker_meet(tern_worker worker);

/* Linked in the place of tern_worker_meet. */
void __wrap_tern_worker_meet(tern_worker worker) {
    meetings += runs || alone;
    if (!alone)
        __real_tern_worker_meet(worker);
}

/* True if the entry is to be left out or refused; then *status is its result. */
static bool is_changed(int entry, tern_status *status, tern_error *err) {
    *status =
        refused == entry ? tern_fail(err, TERN_ERR_DEVICE, "%s is refused", names[entry]) : TERN_OK;
    return left_out == entry || refused == entry;
}

#define STRIP(...) __VA_ARGS__
#define WRAP(name, parameters, arguments)                                                          \
    static tern_status counted_##name(tern_device *d, tern_device_stream *stream,                  \
                                      STRIP parameters) {                                          \
        tern_status status;                                                                        \
        calls[ENTRY_##name]++;                                                                     \
        runs = true;                                                                               \
        if (!is_changed(ENTRY_##name, &status, err))                                               \
            status = real->name arguments;                                                         \
        runs = false;                                                                              \
        return status;                                                                             \
    }
CALLED(WRAP)
#undef WRAP

/* An entry that is missing here would be called at address 0. */
static const tern_device_ops counted = {
#define PUT(name, parameters, arguments) .name = counted_##name,
    CALLED(PUT)
#undef PUT
};

static void rewind_session(tern_session *s) {
    assert_int_equal(tern_session_rewind(s, 0, NULL), TERN_OK);
}

static void put_between(tern_session *s) {
    tern_device *d = s->runner->backend;
    real = d->ops;
    d->ops = &counted;
    memset(calls, 0, sizeof calls);
    meetings = 0;
    left_out = refused = NONE;
}

/* ---- passes ---------------------------------------------------------------------------------- */

static tern_session *open_session(const tern_model *model, uint32_t threads) {
    return tiny_session(model, (tern_session_params){.n_ctx = 64, .threads = threads});
}

/* Evaluates a prompt and then one token. Returns both logits one after the other, or the error. */
static tern_status answer(tern_session *s, float *logits, tern_error *err) {
    const size_t n_vocab = tern_session_model(s)->config.n_vocab;
    int32_t prompt[PROMPT];
    tiny_prompt(tern_session_model(s), 3, prompt, PROMPT);
    const tern_status status =
        tern_session_eval(s, prompt, PROMPT - 1, TERN_LOGITS_LAST, logits, err);
    if (status != TERN_OK)
        return status;
    float *last = tiny_floats(n_vocab);
    const tern_status second =
        tern_session_eval(s, prompt + PROMPT - 1, 1, TERN_LOGITS_LAST, last, err);
    memcpy(logits + n_vocab, last, n_vocab * sizeof *last);
    free(last);
    return second;
}

/* Checks how often two passes call each entry, summed over the lanes. */
static void check_calls(const tern_model *m, uint32_t threads) {
    const size_t passes = 2, layers = m->config.n_layer;
    const size_t each = passes * threads;
    assert_int_equal(calls[ENTRY_embed], each);
    assert_int_equal(calls[ENTRY_rope], each * layers * 2);        /* q, k */
    assert_int_equal(calls[ENTRY_store_pages], each * layers * 2); /* k, v */
    assert_int_equal(calls[ENTRY_attend_pages], each * layers);
    assert_int_equal(calls[ENTRY_gate], each * layers);
    assert_int_equal(calls[ENTRY_add], each * layers * 2);
    assert_int_equal(calls[ENTRY_multiply], each * (layers * 4 + 1)); /* and the head */
    assert_true(calls[ENTRY_quantize_token] + calls[ENTRY_quantize_block] >= each * layers * 4);
    assert_true(calls[ENTRY_rmsnorm] >= each * (layers * 2 + 1));
    assert_true(calls[ENTRY_watch] >= each * layers * 7);
}

/* True if the logits depend on the operation. Blocks may be needed only for scans of the head. */
static bool is_read(const tern_model *m, int entry) {
    unsigned forms = m->own.head.form;
    for (uint32_t layer = 0; layer < m->config.n_layer; layer++)
        for (size_t i = 0; i < TERN_LAYER_LINEARS; i++)
            forms |= tern_layer_linear(&m->layers[layer], i)->form;
    return entry != ENTRY_watch && (entry != ENTRY_quantize_block || forms & TERN_INPUT_BLOCK);
}

/* True if leaving out an operation changes the logits, or leaves none. */
static bool matters(const tern_model *model, int entry, const float *want, size_t n) {
    tern_session *s = open_session(model, THREADS);
    float *got = tiny_floats(n);
    put_between(s);
    left_out = entry;
    const bool same = answer(s, got, NULL) == TERN_OK && memcmp(want, got, n * sizeof *want) == 0;
    tern_session_free(&s);
    free(got);
    return !same;
}

static void check_model(const char *preset) {
    tern_model *model = tiny_open(preset, NULL);
    const size_t n = 2 * (size_t)model->config.n_vocab;
    tern_session *plain = open_session(model, 1), *wrapped = open_session(model, THREADS);
    float *want = tiny_floats(n), *got = tiny_floats(n);
    size_t seen[ENTRIES];
    assert_int_equal(answer(plain, want, NULL), TERN_OK);
    put_between(wrapped);
    assert_int_equal(answer(wrapped, got, NULL), TERN_OK);
    check_case("%s, counted", preset);
    check_floats("logits", want, got, n);
    check_calls(model, tern_session_threads(wrapped));
    for (int i = 0; i < ENTRIES; i++)
        seen[i] = calls[i];
    for (int i = 0; i < ENTRIES; i++) {
        check_case("%s without %s", preset, names[i]);
        if (is_read(model, i) && seen[i] > 0 && !matters(model, i, want, n))
            check_fail("the logits are the same");
    }
    tern_session_free(&plain);
    tern_session_free(&wrapped);
    tern_model_free(&model);
    free(want);
    free(got);
}

static void test_passes_go_through(void **state) {
    (void)state;
    check_model("bitnet-tiny");
    check_model("llama-tiny-q4_0");
    check_model("qwen3-tiny");
}

/* The pass reports the refusal of any operation; the next pass is sound again. */
static void test_refusals(void **state) {
    (void)state;
    tern_model *model = tiny_open("llama-tiny-q4_0", NULL);
    const size_t n = 2 * (size_t)model->config.n_vocab;
    tern_session *s = open_session(model, THREADS);
    float *want = tiny_floats(n), *got = tiny_floats(n);
    put_between(s);
    assert_int_equal(answer(s, want, NULL), TERN_OK);
    for (int i = 0; i < ENTRIES; i++) {
        tern_error err = {0};
        if (calls[i] == 0)
            continue;
        check_case("refused %s", names[i]);
        refused = i;
        rewind_session(s);
        assert_int_equal(answer(s, got, &err), TERN_ERR_DEVICE);
        assert_memory_equal(err.message, names[i], strlen(names[i]));
        refused = NONE;
        rewind_session(s);
        assert_int_equal(answer(s, got, &err), TERN_OK);
        check_floats("logits", want, got, n);
    }
    tern_session_free(&s);
    tern_model_free(&model);
    free(want);
    free(got);
}

/* ---- what has run ---------------------------------------------------------------------------- */

/* The entry that runs kernels of an operation. ENTRIES: passes call none for it. */
static int entry_of(tern_op op) {
    static const int entries[TERN_OP_COUNT] = {[TERN_OP_GEMV] = ENTRY_multiply + 1,
                                               [TERN_OP_GEMM] = ENTRY_multiply + 1,
                                               [TERN_OP_QUANTIZE_TOKEN] = ENTRY_quantize_token + 1,
                                               [TERN_OP_QUANTIZE_BLOCK] = ENTRY_quantize_block + 1,
                                               [TERN_OP_RMSNORM] = ENTRY_rmsnorm + 1,
                                               [TERN_OP_HADAMARD] = ENTRY_hadamard + 1,
                                               [TERN_OP_ROPE_NORM] = ENTRY_rope + 1,
                                               [TERN_OP_ROPE_NEOX] = ENTRY_rope + 1,
                                               [TERN_OP_GATE_SILU] = ENTRY_gate + 1,
                                               [TERN_OP_GATE_RELU2] = ENTRY_gate + 1,
                                               [TERN_OP_GATE_GELU] = ENTRY_gate + 1,
                                               [TERN_OP_GATE_QUICK] = ENTRY_gate + 1,
                                               [TERN_OP_ADD] = ENTRY_add + 1,
                                               [TERN_OP_EMBED] = ENTRY_embed + 1,
                                               [TERN_OP_STORE] = ENTRY_store_pages + 1,
                                               [TERN_OP_ATTEND] = ENTRY_attend_pages + 1};
    return entries[op] > 0 ? entries[op] - 1 : ENTRIES;
}

/* How often kernels of each entry have run, by the runner's own account. Also checks that the list
 * names each kernel that has run exactly once. */
static void read_tally(const tern_session *s, size_t ran[ENTRIES]) {
    const tern_kernel_row *kernels[64];
    const size_t n = tern_session_kernels(s, kernels, 64);
    memset(ran, 0, ENTRIES * sizeof *ran);
    assert_true(n <= 64);
    for (size_t i = 0; i < n; i++) {
        const int entry = entry_of(kernels[i]->op);
        check_case("%s", kernels[i]->name);
        assert_in_range(entry, 0, ENTRIES - 1);
        assert_true(tern_runner_calls(s->runner, kernels[i]) > 0);
        ran[entry] += tern_runner_calls(s->runner, kernels[i]);
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(kernels[k], kernels[i]);
    }
}

/* An operation that the lanes of a team do together counts once; products count one by one. */
static void check_tally(const tern_model *model, const char *preset) {
    const size_t n = 2 * (size_t)model->config.n_vocab, layers = model->config.n_layer;
    size_t ran[ENTRIES];
    float *logits = tiny_floats(n);
    for (int without = NONE; without < ENTRIES; without++) {
        tern_session *s = open_session(model, THREADS);
        const size_t threads = tern_session_threads(s);
        put_between(s);
        tern_tally_free(&s->runner->tally); /* drop what the token in between has run */
        s->runner->tally = s->runner->processor.tally = tern_tally_new();
        left_out = without;
        assert_int_equal(tern_session_kernels(s, NULL, 0), 0);
        (void)answer(s, logits, NULL); /* without an operation numbers may be too large */
        read_tally(s, ran);
        for (int i = 0; i < ENTRIES; i++) {
            const size_t each = i == ENTRY_multiply ? 2 * (7 * layers + 1) : calls[i] / threads;
            check_case("%s without %s: %s", preset, without == NONE ? "nothing" : names[without],
                       names[i]);
            if (i != ENTRY_copy && i != ENTRY_watch && (without == NONE || i == without))
                assert_int_equal(ran[i], i == without ? 0 : each);
        }
        tern_session_free(&s);
    }
    free(logits);
}

static void test_what_ran(void **state) {
    static const char *const presets[] = {"bitnet-tiny", "llama-tiny-q4_0", "qwen3-tiny"};
    (void)state;
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        tern_model *model = tiny_open(presets[i], NULL);
        check_tally(model, presets[i]);
        tern_model_free(&model);
    }
}

/* How often kernels of an operation have run. */
static size_t calls_of(const tern_session *s, tern_op op) {
    const tern_kernel_row *kernels[64];
    const size_t n = tern_session_kernels(s, kernels, 64);
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += kernels[i]->op == op ? tern_runner_calls(s->runner, kernels[i]) : 0;
    return sum;
}

static tern_session *after_prompt(const tern_model *model, size_t n) {
    tern_session *s = open_session(model, THREADS);
    int32_t prompt[PROMPT];
    tiny_prompt(model, 3, prompt, PROMPT);
    assert_int_equal(tern_session_eval(s, prompt, n, TERN_LOGITS_NONE, NULL, NULL), TERN_OK);
    return s;
}

/* Experts multiply one matrix at a time, and only those of the chosen experts. */
static void test_experts_ran(void **state) {
    tern_model *model = tiny_open("qwen3moe-tiny", NULL);
    const size_t layers = model->config.n_layer, used = model->config.n_used;
    tern_session *one = after_prompt(model, 1), *several = after_prompt(model, PROMPT);
    (void)state;
    assert_int_equal(calls_of(one, TERN_OP_GEMV), layers * (4 + 1 + 3 * used)); /* 1: a router */
    assert_int_equal(calls_of(one, TERN_OP_GEMM), 0);
    assert_int_equal(calls_of(one, TERN_OP_SOFTMAX), layers);
    /* The last layer computes one row, because only one is wanted, except for k and v. */
    assert_in_range(calls_of(several, TERN_OP_GEMM), 5 * (layers - 1) + 2 + 3, SIZE_MAX);
    assert_in_range(calls_of(several, TERN_OP_GEMV), 3 + 3 * used, SIZE_MAX);
    tern_session_free(&one);
    tern_session_free(&several);
    tern_model_free(&model);
}

/* Picks by bounds count too: a scan of the head, and products with some of its rows. */
static void test_scans_ran(void **state) {
    const tern_sampler_params greedy = {.top_p = 1.0f, .repetition_penalty = 1.0f};
    tern_model *model = tiny_open("bitnet-tiny", NULL);
    tern_session *s = after_prompt(model, 1);
    tern_sampler *sampler = NULL;
    int32_t token;
    const size_t before = calls_of(s, TERN_OP_GEMV);
    (void)state;
    assert_int_equal(before, 7 * model->config.n_layer);
    assert_int_equal(tern_sampler_new(&greedy, model->config.n_vocab, &sampler, NULL), TERN_OK);
    assert_int_equal(tern_session_pick(s, sampler, &token, NULL), TERN_OK);
    assert_int_equal(tern_session_work_done(s).scans, 1);
    assert_int_equal(tern_runner_calls(s->runner, model->image.scan.gemv), 1);
    assert_int_equal(calls_of(s, TERN_OP_GEMV), before + 2);
    tern_sampler_free(&sampler);
    tern_session_free(&s);
    tern_model_free(&model);
}

/* ---- meetings -------------------------------------------------------------------------------- */

/*
 * Each layer waits for q k v, rope, attention, out, gate and up, and down if there is one row. With
 * more rows it also waits for what each worker normed, activated or took from attention. The head
 * has a region of its own.
 */
static void test_meetings(void **state) {
    (void)state;
    static const char *const presets[] = {"bitnet-tiny", "llama-tiny-q4_0", "qwen3-tiny"};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        for (uint32_t threads = 1; threads <= THREADS; threads += 2) {
            check_case("%s, %u threads", presets[i], threads);
            tern_model *model = tiny_open(presets[i], NULL);
            tern_session *s = open_session(model, threads);
            const size_t lanes = tern_session_threads(s), layers = model->config.n_layer;
            int32_t prompt[PROMPT];
            tiny_prompt(model, 3, prompt, PROMPT);
            put_between(s);
            (void)tiny_eval(s, prompt, PROMPT - 1);
            assert_int_equal(meetings, lanes * layers * 10);
            meetings = 0;
            (void)tiny_eval(s, prompt + PROMPT - 1, 1);
            assert_int_equal(meetings, lanes * layers * 6);
            tern_session_free(&s);
            tern_model_free(&model);
        }
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* Two lanes whose work one thread does. They are on two nodes, so none takes the other's items. */
static tern_place places[2] = {{.node = 0}, {.node = 1}};
static tern_ticket tickets[2];
static tern_team team = {.size = 2, .places = places, .tickets = tickets};

static tern_lane lane_of_two(uint32_t index) {
    return (tern_lane){.worker = {.team = &team, .index = index, .count = 2}};
}

static bool meets(tern_lane *lane, tern_lane_use use) {
    const size_t before = meetings;
    tern_lane_enter(lane, &use, 1);
    return meetings > before;
}

static void test_lane(void **state) {
    (void)state;
    static float x[64], y[64];
    tern_lane lane = lane_of_two(1);
    tern_device_rows a = {.data = x, .stride = 8, .n = 8, .rows = 8}, own = a;
    tern_device_rows four = a, shifted = a, other = a;
    alone = true;
    own.own = true;
    four.rows = shifted.rows = 4;
    shifted.data = x + 8;
    other.data = y;
    assert_int_equal(tern_lane_rows(&lane, &a).begin, 4);
    assert_int_equal(tern_lane_rows(&lane, &own).begin, 0);
    assert_false(meets(&lane, tern_lane_use_rows(&a, &a, true)));         /* the first use */
    assert_false(meets(&lane, tern_lane_use_rows(&a, &a, false)));        /* its own rows */
    assert_false(meets(&lane, tern_lane_use_rows(&other, &other, true))); /* other memory */
    assert_false(meets(&lane, tern_lane_use_rows(&own, &own, true)));
    assert_true(meets(&lane, tern_lane_use_rows(&four, &four, false))); /* divided differently */
    assert_false(meets(&lane, tern_lane_use_all(x, sizeof x, false)));  /* both only read */
    assert_true(meets(&lane, tern_lane_use_rows(&a, &a, true)));        /* another may read */
    assert_true(meets(&lane, tern_lane_use_all(x, 4, false)));
    assert_true(meets(&lane, tern_lane_use_rows(&four, &four, true)));
    assert_true(meets(&lane, tern_lane_use_rows(&shifted, &shifted, true))); /* rows overlap */
    assert_true(meets(&lane, tern_lane_use_rows(&a, &own, false)));          /* own: all rows */
    for (size_t i = 0; i < TERN_LANE_USES - 1; i++)
        assert_false(meets(&lane, tern_lane_use_all(y + i, 4, false)));
    assert_true(meets(&lane, tern_lane_use_all(y + 40, 4, false))); /* the list of uses is full */
    tern_lane_meet(&lane);
    const size_t before = meetings;
    tern_lane_meet(&lane); /* nothing was used since the last meeting */
    assert_int_equal(meetings, before);
    alone = false;
}

/* ---- consecutive works ----------------------------------------------------------------------- */

enum { WORKS = 4, UNIT = 16, ITEMS = 40 };
static const size_t counts[WORKS] = {ITEMS, UNIT, 5, 33};

static unsigned done[2][WORKS][ITEMS]; /* by lane */

static void note_piece(size_t lane, tern_lane_piece piece) {
    const tern_part items = piece.items;
    assert_true(piece.work < WORKS && items.begin < items.end && items.end <= counts[piece.work]);
    assert_true(items.begin % UNIT == 0 &&
                (items.end % UNIT == 0 || items.end == counts[piece.work]));
    for (size_t i = items.begin; i < items.end; i++)
        done[lane][piece.work][i]++;
}

/* How many works a lane has items of. Each item must belong to exactly one lane. */
static size_t works_of(size_t lane) {
    size_t n = 0;
    for (size_t k = 0; k < WORKS; k++) {
        n += done[lane][k][0] + done[lane][k][counts[k] - 1] > 0;
        for (size_t i = 0; i < counts[k]; i++)
            assert_int_equal(done[0][k][i] + done[1][k][i], 1);
    }
    return n;
}

static void do_works(const tern_lane *lane, size_t number, bool shared) {
    const tern_lane_works works = {counts, WORKS, UNIT};
    tern_lane_pieces pieces = tern_lane_divide(lane, &works, shared);
    for (tern_lane_piece piece; tern_lane_next(&pieces, &piece);)
        note_piece(number, piece);
}

static void do_works_of_two(bool one_node, bool shared) {
    memset(done, 0, sizeof done);
    memset(tickets, 0, sizeof tickets);
    team.one_node = one_node;
    for (uint32_t i = 0; i < 2; i++) {
        const tern_lane lane = lane_of_two(i);
        do_works(&lane, i, shared);
    }
}

/* Works that are divided as one give each lane items of few works; separately, each lane has half
 * of every work. */
static void test_works(void **state) {
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        do_works_of_two(true, shared); /* 3 + 1 + 1 + 3 units: four for each lane */
        assert_int_equal(works_of(0), 2);
        assert_int_equal(works_of(1), 2);
        do_works_of_two(false, shared);
        assert_true(works_of(0) + works_of(1) > WORKS);
        memset(done, 0, sizeof done);
        do_works(NULL, 0, shared); /* without a team */
        assert_int_equal(works_of(0), WORKS);
    }
}

/* A lane takes all that is left of a row when others on its node do not come. */
static void test_works_left(void **state) {
    const tern_lane lane = lane_of_two(0);
    (void)state;
    memset(done, 0, sizeof done);
    memset(tickets, 0, sizeof tickets);
    team.one_node = true;
    places[1].node = 0;
    do_works(&lane, 0, true);
    places[1].node = 1;
    assert_int_equal(works_of(0), WORKS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes_go_through),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_what_ran),
        cmocka_unit_test(test_experts_ran),
        cmocka_unit_test(test_scans_ran),
        cmocka_unit_test(test_meetings),
        cmocka_unit_test(test_lane),
        cmocka_unit_test(test_works),
        cmocka_unit_test(test_works_left),
    };
    return cmocka_run_group_tests_name("backend", tests, NULL, NULL);
}
