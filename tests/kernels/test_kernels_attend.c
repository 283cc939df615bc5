/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every attention kernel of the table against the reference, bit for bit: all head sizes, and
 * context lengths around the vector widths and the chunk of positions, with the cache in one piece
 * and in pages.
 */

#include <math.h>
#include <string.h>

#include "kernels/cache_row.h"
#include "kernels/reference.h"
#include "tern/tern.h"
#include "tests/kernels/table.h"
#include "tests/support/check.h"

typedef enum scores {
    SCORES_NORMAL,
    SCORES_STEEP,  /* most weights underflow to zero */
    SCORES_EQUAL,  /* all keys equal */
    SCORES_RISING, /* every chunk has a new maximum */
    SCORES_ANY,    /* queries of every exponent: infinite and NaN scores */
    SCORES_BYTES,  /* random bytes as blocks: scales below 0, infinite, NaN */
    SCORES_COUNT
} scores;

enum { MAX_DIM = 256, MAX_CHUNKS = 16 };

typedef enum masking {
    MASK_NONE,
    MASK_ADDED,  /* added numbers near 0 */
    MASK_HIDING, /* hides half of the positions, and the whole first chunk if there are more */
    MASK_COUNT
} masking;

typedef struct attention {
    tern_format cache;
    size_t positions; /* seen by the first token */
    size_t tokens, dim, group;
    masking masked;
    size_t window; /* 0: none */
    float cap;     /* 0: none */
    bool paged;
    bool sinks_there;
    uint32_t pages[MAX_CHUNKS]; /* of each chunk */
    size_t page_stride;
    check_buffer q, k, v, mask, sinks, want, out, states, scratch;
} attention;

/* Number of positions that the last token sees. */
static size_t seen_of(const attention *a) {
    return a->positions + a->tokens - 1;
}

static size_t chunks_of(const attention *a) {
    return (seen_of(a) + TERN_ATTEND_CHUNK - 1) / TERN_ATTEND_CHUNK;
}

/*
 * Lays out the pages. Page 0 is not used, and between two pages lies data of other heads. The last
 * chunk has the last page, which ends with its last row; the others are in descending order.
 */
static void lay_out_pages(attention *a) {
    const size_t chunks = chunks_of(a);
    a->page_stride = tern_cache_page_bytes(a->cache, a->dim);
    if (!a->paged)
        return;
    a->page_stride = 2 * a->page_stride + 12;
    for (size_t c = 0; c < chunks; c++)
        a->pages[c] = (uint32_t)(c + 1 < chunks ? chunks - 1 - c : chunks);
}

/* The offset of a position's row in the memory of keys or values. */
static size_t row_offset(const attention *a, size_t position) {
    const size_t chunk = position / TERN_ATTEND_CHUNK;
    return (a->paged ? a->pages[chunk] : chunk) * a->page_stride +
           position % TERN_ATTEND_CHUNK * tern_cache_row_bytes(a->cache, a->dim);
}

static float key_factor(scores kind, size_t position) {
    switch (kind) {
    case SCORES_STEEP:
        return 30.0f;
    case SCORES_RISING:
        return 0.05f * (float)position;
    default:
        return 1.0f;
    }
}

/* Random rows of the cache, stored by the reference. */
static check_buffer cache_rows(const attention *a, scores kind, bool keys, check_place place,
                               check_rng *rng) {
    const tern_format_info *info = tern_format_describe(a->cache);
    const size_t row_bytes = tern_cache_row_bytes(a->cache, a->dim);
    const size_t align = info->block_elements == 1 ? info->block_bytes : 1;
    const size_t bytes = row_offset(a, seen_of(a) - 1) + row_bytes;
    check_buffer buffer = check_buffer_new(bytes, align, place);
    float row[MAX_DIM];

    memset(buffer.data, 0xff, buffer.bytes); /* NaN outside the sequence */
    for (size_t j = 0; j < seen_of(a); j++) {
        for (size_t i = 0; i < a->dim; i++) {
            row[i] = check_normal(rng);
            if (keys && kind == SCORES_EQUAL)
                row[i] = 0.5f;
            else if (keys && kind == SCORES_RISING)
                row[i] = fabsf(row[i]);
            row[i] *= keys ? key_factor(kind, j) : 1.0f;
        }
        tern_ref_store(a->cache, row, a->dim, (uint8_t *)buffer.data + row_offset(a, j));
    }
    for (size_t i = 0; kind == SCORES_BYTES && info->block_elements > 1 && i < buffer.bytes; i++)
        ((uint8_t *)buffer.data)[i] = (uint8_t)check_below(rng, 256);
    return buffer;
}

/* A mask row for each token. The last position is never hidden. */
static check_buffer mask_of(const attention *a, check_place place, check_rng *rng) {
    const size_t seen = seen_of(a);
    check_buffer buffer = check_buffer_new(a->tokens * seen * sizeof(float), sizeof(float), place);

    for (size_t t = 0; t < a->tokens; t++) {
        float *mask = (float *)buffer.data + t * seen;
        for (size_t j = 0; j < seen; j++) {
            const bool first_chunk = j < TERN_ATTEND_CHUNK && a->positions > TERN_ATTEND_CHUNK;
            mask[j] = check_normal(rng);
            if (a->masked == MASK_HIDING)
                mask[j] = first_chunk || check_below(rng, 2) ? -INFINITY : 0.0f;
        }
        if (a->masked == MASK_HIDING)
            mask[a->positions + t - 1] = 0.0f;
    }
    return buffer;
}

/* The stride between tokens in q and out is larger than their heads need. */
static size_t token_stride(const attention *a) {
    return a->group * a->dim + 3;
}

static size_t token_bytes(const attention *a) {
    return ((a->tokens - 1) * token_stride(a) + a->group * a->dim) * sizeof(float);
}

/* Every third shape has a window, which begins in the first chunk for all tokens. */
static size_t window_of(const attention *a) {
    const size_t most = TERN_ATTEND_CHUNK - a->tokens; /* hidden from the first token */
    const size_t hidden = a->positions * 7 % (most + 1);
    if ((a->positions + a->dim + a->group) % 3 != 0)
        return 0;
    return hidden < a->positions ? a->positions - hidden : 1;
}

/* A logit for each head of a token, from far below the scores to far above them. */
static check_buffer sinks_of(const attention *a, check_place place, check_rng *rng) {
    check_buffer buffer = check_buffer_new(a->group * sizeof(float), sizeof(float), place);

    for (size_t h = 0; h < a->group; h++)
        ((float *)buffer.data)[h] = check_normal(rng) * (h % 3 == 2 ? 200.0f : 2.0f);
    return buffer;
}

static attention attention_new(const attention *shape, scores kind, check_place place,
                               check_rng *rng) {
    attention a = *shape;
    a.masked = (masking)((a.positions + a.dim / 4 + a.group) % MASK_COUNT);
    a.window = window_of(&a);
    a.cap = (a.positions / 2 + a.dim / 2 + a.group) % 3 == 0 ? 1.5f : 0.0f;
    a.sinks_there = (a.positions + a.dim + a.tokens) % 2 == 0;
    lay_out_pages(&a);
    a.q = check_buffer_new(token_bytes(&a), sizeof(float), place);
    for (size_t i = 0; i < a.q.bytes / sizeof(float); i++)
        ((float *)a.q.data)[i] = kind == SCORES_ANY      ? check_any_finite(rng)
                                 : kind == SCORES_RISING ? fabsf(check_normal(rng))
                                                         : check_normal(rng);
    a.k = cache_rows(&a, kind, true, place, rng);
    a.v = cache_rows(&a, kind, false, place, rng);
    a.mask = mask_of(&a, place, rng);
    a.sinks = sinks_of(&a, place, rng);
    a.want = check_buffer_new(token_bytes(&a), sizeof(float), place);
    a.out = check_buffer_new(token_bytes(&a), sizeof(float), place);
    const size_t heads = a.tokens * a.group;
    a.states = check_buffer_new(tern_attend_state_bytes(heads, a.dim), TERN_ALIGN, place);
    a.scratch = check_buffer_new(tern_attend_scratch_bytes(heads, a.dim), TERN_ALIGN, place);
    return a;
}

static void attention_free(attention *a) {
    check_buffer_free(&a->q);
    check_buffer_free(&a->k);
    check_buffer_free(&a->v);
    check_buffer_free(&a->mask);
    check_buffer_free(&a->sinks);
    check_buffer_free(&a->want);
    check_buffer_free(&a->out);
    check_buffer_free(&a->states);
    check_buffer_free(&a->scratch);
}

static tern_attend_args attention_args(const attention *a) {
    return (tern_attend_args){.heads = {.positions = a->positions,
                                        .tokens = a->tokens,
                                        .group = a->group,
                                        .dim = a->dim,
                                        .sinks = a->sinks_there ? a->sinks.data : NULL},
                              .q = a->q.data,
                              .q_stride = token_stride(a),
                              .k = a->k.data,
                              .v = a->v.data,
                              .pages = a->paged ? a->pages : NULL,
                              .page_stride = a->page_stride,
                              .scale = 1.0f / sqrtf((float)a->dim),
                              .cap = a->cap,
                              .mask = a->masked == MASK_NONE ? NULL : a->mask.data,
                              .mask_stride = seen_of(a),
                              .window = a->window,
                              .scratch = a->scratch.data};
}

/* Runs all steps and writes a->out. */
static void attend(const tern_kernel_row *kernel, const attention *a,
                   const tern_attend_args *args) {
    check_canary_fill(a->states.data, a->states.bytes);
    tern_attend_all(kernel, args, a->states.data, a->out.data, token_stride(a));
}

static void check_out(const attention *a) {
    for (size_t t = 0; t < a->tokens; t++)
        check_floats("out", (const float *)a->want.data + t * token_stride(a),
                     (const float *)a->out.data + t * token_stride(a), a->group * a->dim);
}

/*
 * Computes the chunks in parts, later ones first, as threads would share them: the first `lead`
 * chunks in one state, then runs of `run` chunks with a state each. The states are merged all at
 * once or, if `run` is 1, one by one.
 */
static void attend_in_parts(const tern_kernel_row *kernel, const attention *a,
                            const tern_attend_args *args, size_t lead, size_t run) {
    const tern_attend_functions *f = &kernel->fn.attend;
    const size_t chunks = chunks_of(a);
    const size_t first = lead < chunks ? lead : chunks;
    const size_t bytes = tern_attend_state_bytes(a->tokens * a->group, a->dim);
    check_buffer states = check_buffer_new(chunks * bytes, TERN_ALIGN, CHECK_END);
    uint8_t *const places = states.data;

    check_canary_fill(states.data, states.bytes);
    for (size_t end = chunks, from; end > first; end = from) {
        from = end - first < run ? first : end - run;
        f->chunks(args, from, end, places + from * bytes, bytes);
    }
    f->chunks(args, 0, first, places, 0);
    for (size_t from = first, end; from < chunks; from = end) {
        end = run == 1 ? from + 1 : chunks;
        f->merge(&args->heads, from, end, places + from * bytes, bytes, places);
    }
    f->finish(&args->heads, places, a->out.data, token_stride(a));
    check_buffer_free(&states);
}

static void check_attention(const attention *shape, scores kind) {
    check_rng rng = {shape->positions * 4096 + shape->dim * 8 + shape->group};
    const size_t place = shape->positions + shape->dim + shape->group;
    attention a = attention_new(shape, kind, place % 2 ? CHECK_END : CHECK_START, &rng);
    const tern_attend_args args = attention_args(&a);
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    tern_ref_attend(a.cache, &args, a.want.data, token_stride(&a));
    for (size_t r = 0; r < count; r++) {
        if (kernels[r].op != TERN_OP_ATTEND || kernels[r].format != a.cache ||
            !table_runnable(&kernels[r]))
            continue;
        for (size_t lead = 0; lead < 4; lead++) {
            check_case("%s, %zu positions, %zu tokens, dim %zu, group %zu, scores %d, mask %d, "
                       "paged %d, window %zu, cap %g, sinks %d, lead %zu",
                       kernels[r].name, a.positions, a.tokens, a.dim, a.group, (int)kind,
                       (int)a.masked, (int)a.paged, a.window, (double)a.cap, (int)a.sinks_there,
                       lead);
            check_canary_fill(a.out.data, a.out.bytes);
            check_canary_fill(a.scratch.data, a.scratch.bytes);
            if (lead == 0)
                attend(&kernels[r], &a, &args);
            else
                attend_in_parts(&kernels[r], &a, &args, lead, 1 + (a.dim + lead) % 2);
            check_out(&a);
        }
    }
    attention_free(&a);
}

static void check_shapes(tern_format cache) {
    static const size_t positions[] = {1,  2,  15,  16,  17,  31,  32,  33,  48, 63,
                                       64, 65, 100, 127, 128, 129, 192, 193, 257};
    static const size_t dims[] = {1,  4,  7,  8,  12, 15,  16,  17, 20,
                                  32, 48, 64, 80, 96, 100, 128, 256};
    enum { GROUPS = 8 };
    size_t shape = 0;

    for (size_t p = 0; p < sizeof positions / sizeof *positions; p++)
        for (size_t d = 0; d < sizeof dims / sizeof *dims; d++, shape++) {
            attention a = {.cache = cache, .positions = positions[p], .dim = dims[d]};
            a.group = 1 + shape % GROUPS;
            a.tokens = 1 + shape / GROUPS % 5;
            a.paged = shape / SCORES_COUNT % 2;
            if (!table_left_out())
                check_attention(&a, (scores)(shape % SCORES_COUNT));
        }
    for (int kind = 0; kind < SCORES_COUNT; kind++) {
        const attention a = {
            .cache = cache, .positions = 1000, .tokens = 1, .dim = 128, .group = 4, .paged = true};
        if (!table_left_out())
            check_attention(&a, (scores)kind);
    }
}

/* Groups of 1 .. 8 heads with 1 .. 8 tokens, where the tokens end in different chunks. */
static void test_tokens(void **state) {
    (void)state;
    for (size_t group = 1; group <= 8; group++)
        for (size_t tokens = 1; tokens <= 8; tokens++) {
            const attention a = {.cache = group % 2 ? TERN_FORMAT_F16 : TERN_FORMAT_Q8_0,
                                 .positions = 60 + group + 65 * (tokens % 2),
                                 .tokens = tokens,
                                 .dim = 24,
                                 .group = group,
                                 .paged = (group + tokens) % 2};
            if (!table_left_out())
                check_attention(&a, (scores)((group + tokens) % SCORES_COUNT));
        }
}

/*
 * More heads than a tile takes, where the last tile has few, some or many, over chunks that all of
 * them see and chunks in which tokens end; head sizes that are whole vectors, and others.
 */
static void test_tiles(void **state) {
    static const struct {
        size_t tokens, group, dim;
    } shapes[] = {{16, 4, 128}, {17, 4, 128}, {11, 7, 80}, {16, 5, 100},
                  {12, 8, 64},  {16, 1, 48},  {16, 3, 17}, {18, 8, 16}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < SCORES_COUNT; kind++) {
            const attention a = {.cache = TERN_FORMAT_F16,
                                 .positions = 40 + 16 * i + 37 * (size_t)kind,
                                 .tokens = shapes[i].tokens,
                                 .dim = shapes[i].dim,
                                 .group = shapes[i].group,
                                 .paged = (i + (size_t)kind) % 2};
            if (!table_left_out())
                check_attention(&a, (scores)kind);
        }
}

/* Positions that only later tokens see do not affect earlier ones, even if they are infinite. */
static void test_later_tokens(void **state) {
    const attention shape = {
        .cache = TERN_FORMAT_F32, .positions = 70, .tokens = 4, .dim = 20, .group = 3};
    check_rng rng = {70};
    attention a = attention_new(&shape, SCORES_NORMAL, CHECK_END, &rng);
    const tern_attend_args args = attention_args(&a);
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    (void)state;
    for (size_t i = shape.positions * shape.dim; i < seen_of(&shape) * shape.dim; i++)
        ((float *)a.k.data)[i] = ((float *)a.v.data)[i] = INFINITY;
    for (size_t r = 0; r < count; r++) {
        if (kernels[r].op != TERN_OP_ATTEND || kernels[r].format != a.cache ||
            !table_runnable(&kernels[r]))
            continue;
        attend(&kernels[r], &a, &args);
        for (size_t i = 0; i < shape.group * shape.dim; i++)
            if (!isfinite(((float *)a.out.data)[i]))
                check_fail("%s: a later token's value in element %zu", kernels[r].name, i);
    }
    attention_free(&a);
}

static void test_f32(void **state) {
    (void)state;
    check_shapes(TERN_FORMAT_F32);
}

static void test_f16(void **state) {
    (void)state;
    check_shapes(TERN_FORMAT_F16);
}

static void test_q8_0(void **state) {
    (void)state;
    check_shapes(TERN_FORMAT_Q8_0);
}

/* Hidden positions do not affect the result: a causal mask equals fewer positions. */
static void test_causal_mask(void **state) {
    enum { POSITIONS = 140, DIM = 24 };
    check_rng rng = {365};
    const attention shape = {
        .cache = TERN_FORMAT_F16, .positions = POSITIONS, .tokens = 1, .dim = DIM, .group = 2};
    attention a = attention_new(&shape, SCORES_NORMAL, CHECK_END, &rng);
    tern_attend_args seen = attention_args(&a);
    tern_attend_args masked = attention_args(&a);
    check_buffer mask =
        check_buffer_new((size_t)POSITIONS * POSITIONS * sizeof(float), sizeof(float), CHECK_END);
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    (void)state;
    tern_causal_mask(POSITIONS, mask.data);
    seen.mask = NULL;
    for (size_t r = 0; r < count; r++) {
        if (kernels[r].op != TERN_OP_ATTEND || kernels[r].format != TERN_FORMAT_F16 ||
            !table_runnable(&kernels[r]))
            continue;
        for (size_t t = 0; t < POSITIONS; t++) {
            check_case("%s, token %zu", kernels[r].name, t);
            seen.heads.positions = t + 1;
            masked.mask = (const float *)mask.data + t * POSITIONS;
            attend(&kernels[r], &a, &seen);
            memcpy(a.want.data, a.out.data, a.out.bytes);
            attend(&kernels[r], &a, &masked);
            check_floats("out", a.want.data, a.out.data, 2 * DIM);
        }
    }
    check_buffer_free(&mask);
    attention_free(&a);
}

/* Every key has an effect, even one that no query prefers, and so does every value. */
static void test_sensitivity(void **state) {
    enum { POSITIONS = 131, DIM = 20 };
    check_rng rng = {3};
    const attention shape = {
        .cache = TERN_FORMAT_F32, .positions = POSITIONS, .tokens = 1, .dim = DIM, .group = 1};
    attention a = attention_new(&shape, SCORES_NORMAL, CHECK_END, &rng);
    tern_attend_args args = attention_args(&a);
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    (void)state;
    args.mask = NULL;
    for (size_t r = 0; r < count; r++) {
        if (kernels[r].op != TERN_OP_ATTEND || kernels[r].format != TERN_FORMAT_F32 ||
            !table_runnable(&kernels[r]))
            continue;
        attend(&kernels[r], &a, &args);
        memcpy(a.want.data, a.out.data, a.out.bytes);
        for (size_t i = 0; i < 2 * POSITIONS * DIM; i++) {
            float *value =
                (float *)(i < POSITIONS * DIM ? a.k.data : a.v.data) + i % (POSITIONS * DIM);
            const float kept = *value;
            *value += 4.0f;
            attend(&kernels[r], &a, &args);
            *value = kept;
            if (memcmp(a.want.data, a.out.data, a.out.bytes) == 0)
                check_fail("%s: element %zu of the cache has no effect", kernels[r].name, i);
        }
    }
    attention_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32),          cmocka_unit_test(test_f16),
        cmocka_unit_test(test_q8_0),         cmocka_unit_test(test_causal_mask),
        cmocka_unit_test(test_sensitivity),  cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_later_tokens), cmocka_unit_test(test_tiles),
    };
    table_report();
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
