/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The transformer, layer by layer. Every worker of the team runs forward(): each step takes its
 * part of the work, and a barrier stands between a step and the one that reads its result. The
 * split is by rows, heads or groups of matrix rows, none of which shares a sum, so neither it nor
 * what else is in the batch changes a bit.
 *
 * Steps by row (norms, quantization, gates) cannot be split where there is one row. They take
 * microseconds, so then every worker does them all for itself, in inputs of its own: a copy of the
 * residual stream in each core's cache, without a wait or a barrier after them.
 *
 * A layer computes the rows p->rows: all rows, but in the last layer only those that somebody
 * wants. There the others write their keys and values, and that is all.
 */

#include <math.h>
#include <string.h>

#include "runtime/forward/internal.h"
#include "runtime/model/rope.h"

/* One worker's view of the running batch. */
typedef struct pass {
    const tern_runner *runner;
    const tern_batch *batch;
    const tern_model *model;
    const tern_config *config;
    const tern_weight_set *weights; /* what this worker reads: perhaps of its own node */
    const tern_scratch *s;
    const tern_inputs *in; /* what this worker reads: everybody's, or its own for a single row */
    tern_stages *stages;   /* NULL: nobody measures */
    tern_worker worker;
    tern_part rows; /* that the layer computes */
    size_t layer;   /* that runs */
} pass;

static bool is_alone(const pass *p) {
    return p->batch->n == 1;
}

/* The rows whose inputs this worker makes. */
static tern_part my_rows(const pass *p) {
    const tern_part part = tern_team_split(p->worker, p->rows.end - p->rows.begin, 1);
    return is_alone(p) ? p->rows
                       : (tern_part){p->rows.begin + part.begin, p->rows.begin + part.end};
}

/* The end of a stage whose result others read. */
static void meet(const pass *p, tern_stage stage) {
    tern_stage_meet(p->stages, p->worker, stage);
}

/* The end of steps by row. */
static void meet_by_row(const pass *p, tern_stage stage) {
    if (is_alone(p))
        tern_stage_end(p->stages, p->worker, stage);
    else
        meet(p, stage);
}

static size_t head_width(const tern_config *c) {
    return (size_t)c->n_head * c->head_dim;
}

static size_t kv_width(const tern_config *c) {
    return (size_t)c->n_head_kv * c->head_dim;
}

/* x[T][n_embd] = rows of the embedding, or the caller's own. */
static void embed(const pass *p) {
    const tern_embedding *e = &p->weights->embedding;
    const size_t width = p->config->n_embd;
    const tern_part part = my_rows(p);
    for (size_t t = part.begin; t < part.end; t++) {
        const tern_row at = p->batch->rows[t];
        const tern_pass_span *span = &p->batch->spans[at.span];
        if (span->tokens)
            e->row->fn.embed(e->data + (size_t)span->tokens[at.index] * e->row_bytes, width,
                             p->in->x + t * width);
        else
            memcpy(p->in->x + t * width, span->rows + at.index * width, width * sizeof(float));
    }
}

/* cosine, sine[T][n_rot/2] of the positions; read after the barrier that follows q, k and v. */
static void find_angles(const pass *p) {
    const size_t half = p->config->n_rot / 2;
    const tern_part part = tern_team_split(p->worker, p->batch->n, 1);
    for (size_t t = part.begin; t < part.end; t++)
        tern_rope_angles(p->model->frequency[0], half, tern_batch_position(p->batch, t),
                         p->s->cosine + t * half, p->s->sine + t * half);
}

/* ---- overflows (overflow.h) ---------------------------------------------------------------- */

/* The part of an input that this worker looks at: where everybody made all of it, only a share. */
static tern_part my_share(const pass *p, size_t width) {
    return is_alone(p) ? tern_team_split(p->worker, width, 1) : (tern_part){0, width};
}

static void note(const pass *p, size_t t, tern_overflow_place place) {
    tern_overflow_note(&p->batch->overflow[p->batch->rows[t].span], p->layer, place);
}

/* x[width] of row t, that this worker made, and perhaps others for themselves, must be finite. */
static void watch(const pass *p, size_t t, const float *x, size_t width,
                  tern_overflow_place place) {
    const tern_part part = my_share(p, width);
    if (!tern_all_below(x + part.begin, part.end - part.begin, INFINITY))
        note(p, t, place);
}

/* The same where rmsnorm follows: the sum of squares must be finite, too. */
static void watch_squares(const pass *p, size_t t, const float *x, size_t width,
                          tern_overflow_place place) {
    const tern_part part = my_share(p, width);
    if (!tern_all_below(x + part.begin, part.end - part.begin, TERN_SQUARES_LIMIT) &&
        !tern_squares_fit(x, width))
        note(p, t, place);
}

/* ---- steps --------------------------------------------------------------------------------- */

/* The forms of norm[t][width] that the next matrices read. */
static void prepare(const pass *p, size_t t, size_t width, unsigned forms) {
    const tern_scratch *s = p->s;
    const tern_inputs *in = p->in;
    const float *x = in->norm + t * s->width;
    const tern_row_set *rows = &p->model->rows;
    if (forms & TERN_INPUT_TOKEN)
        rows->quantize_token->fn.quantize_token(x, width, in->qx + t * s->q_stride, in->qx_s + t,
                                                in->qx_sum + t);
    if (forms & TERN_INPUT_BLOCK)
        rows->quantize_block->fn.quantize_block(x, width, in->bx + t * s->q_stride,
                                                in->bx_d + t * s->blocks,
                                                in->bx_sum + t * s->blocks);
}

/* norm[t][width] = rmsnorm(x[width]) * g. g NULL: the block has no norm here, norm[t] = x. */
static const float *norm_row(const pass *p, size_t t, const float *x, const float *g, size_t width,
                             tern_overflow_place place) {
    float *y = p->in->norm + t * p->s->width;
    if (g) {
        watch_squares(p, t, x, width, place);
        p->model->rows.rmsnorm->fn.rmsnorm(x, g, width, p->config->norm_eps, y);
    } else {
        watch(p, t, x, width, place);
        memcpy(y, x, width * sizeof *y);
    }
    return y;
}

/* norm[T][width] of x[T][width] and its quantized forms. x may be norm itself where g is there. */
static void norm(const pass *p, const float *x, size_t x_stride, const float *g, size_t width,
                 unsigned forms, tern_overflow_place place) {
    const tern_part part = my_rows(p);
    for (size_t t = part.begin; t < part.end; t++) {
        (void)norm_row(p, t, x + t * x_stride, g, width, place);
        prepare(p, t, width, forms);
    }
}

/* y[t][rows] = matrix * norm[t][cols] (+ bias) for rows t of the batch. */
static void multiply(const pass *p, const tern_linear *linear, tern_part rows, float *y) {
    const tern_matrix *m = &linear->matrix;
    const tern_activations x = tern_activations_of(p->s, p->in, linear, rows.begin);
    const size_t n = rows.end - rows.begin;
    const tern_kernel_row *row = tern_linear_row(linear, n);
    if (n == 0)
        return;
    y += rows.begin * m->rows;
    if (p->runner->observer && p->worker.index == 0)
        p->runner->observer(p->runner->observer_user, linear, &x, n);
    tern_pieces pieces = tern_team_pieces(p->worker, m->rows, TERN_ROW_GROUP);
    for (tern_part piece; tern_pieces_next(&pieces, &piece);) {
        const tern_tile tile = {.t0 = 0, .t1 = n, .r0 = piece.begin, .r1 = piece.end};
        row->fn.matmul(m, &x, &tile, y, m->rows);
        for (size_t t = 0; linear->bias && t < n; t++)
            p->model->rows.add->fn.add(y + t * m->rows + piece.begin, linear->bias + piece.begin,
                                       piece.end - piece.begin);
    }
}

/* One head of q or k of row t, normed if the block does that, then turned by its position. */
static void turn(const pass *p, size_t t, float *head, const float *g) {
    const tern_row_set *rows = &p->model->rows;
    const size_t half = p->config->n_rot / 2;
    if (g && !tern_squares_fit(head, p->config->head_dim))
        note(p, t, TERN_OVERFLOW_QUERY);
    if (g)
        rows->rmsnorm->fn.rmsnorm(head, g, p->config->head_dim, p->config->norm_eps, head);
    rows->rope->fn.rope(head, p->s->cosine + t * half, p->s->sine + t * half, half);
}

/* The query heads of row t that share key/value head h. */
static void turn_queries(const pass *p, size_t t, size_t h) {
    const tern_config *c = p->config;
    const size_t group = c->n_head / c->n_head_kv;
    float *q = p->s->q + t * head_width(c) + h * group * c->head_dim;
    for (size_t g = 0; g < group; g++)
        turn(p, t, q + g * c->head_dim, p->weights->layers[p->layer].q_norm);
    if (!tern_all_below(q, group * c->head_dim, INFINITY))
        note(p, t, TERN_OVERFLOW_QUERY);
}

/* Keys and values of row t and head h, into the cache. */
static void store(const pass *p, size_t t, size_t h) {
    const tern_config *c = p->config;
    const tern_batch *b = p->batch;
    const float limit = tern_cache_limit(b->kv);
    const uint32_t *pages = b->spans[b->rows[t].span].pages;
    const uint32_t position = tern_batch_position(b, t);
    tern_store_fn *to_cache = p->model->rows.store[b->kv]->fn.store;
    float *k = p->s->k + t * kv_width(c) + h * c->head_dim;
    const float *v = p->s->v + t * kv_width(c) + h * c->head_dim;
    turn(p, t, k, p->weights->layers[p->layer].k_norm);
    if (!tern_all_below(k, c->head_dim, limit) || !tern_all_below(v, c->head_dim, limit))
        note(p, t, TERN_OVERFLOW_CACHE);
    to_cache(k, c->head_dim, tern_pool_row(b->pool, false, p->layer, h, pages, position));
    to_cache(v, c->head_dim, tern_pool_row(b->pool, true, p->layer, h, pages, position));
}

/* q, k turned by their positions; k, v into the cache; by (row, key/value head). */
static void rotate_and_store(const pass *p) {
    const size_t heads = p->config->n_head_kv;
    const tern_part part = tern_team_split(p->worker, p->batch->n * heads, 1);
    for (size_t i = part.begin; i < part.end; i++) {
        const size_t t = i / heads;
        if (t >= p->rows.begin)
            turn_queries(p, t, i % heads);
        store(p, t, i % heads);
    }
}

/* x[T][n_embd] += out[T][n_embd], normed before if the block does that; then the next norm. */
static void add_and_norm(const pass *p, const float *post_norm, const float *g, unsigned forms) {
    const size_t width = p->config->n_embd;
    const tern_part part = my_rows(p);
    for (size_t t = part.begin; t < part.end; t++) {
        const float *out = p->s->out + t * width;
        if (post_norm)
            out = norm_row(p, t, out, post_norm, width, TERN_OVERFLOW_SUM);
        p->model->rows.add->fn.add(p->in->x + t * width, out, width);
    }
    norm(p, p->in->x, width, g, width, forms, TERN_OVERFLOW_SUM);
}

/* norm[T][n_ff] = act(gate) * up, with the block's norm after it if it has one. */
static void gate(const pass *p, const float *sub_norm, unsigned forms) {
    const size_t width = p->config->n_ff;
    const tern_part part = my_rows(p);
    for (size_t t = part.begin; t < part.end; t++) {
        float *y = p->in->norm + t * p->s->width;
        if (p->config->arch->gate == TERN_OP_GATE_RELU2) /* makes 0 of a NaN */
            watch(p, t, p->s->gate + t * width, width, TERN_OVERFLOW_GATE);
        p->model->rows.gate->fn.gate(p->s->gate + t * width, p->s->up + t * width, width, y);
        if (sub_norm)
            continue;
        watch(p, t, y, width, TERN_OVERFLOW_ACTIVATION);
        prepare(p, t, width, forms);
    }
    if (sub_norm)
        norm(p, p->in->norm, p->s->width, sub_norm, width, forms, TERN_OVERFLOW_ACTIVATION);
}

static void forward_layer(const pass *p, const float *next_norm, unsigned next_forms) {
    const tern_layer *l = &p->weights->layers[p->layer];
    const tern_scratch *s = p->s;
    const size_t heads = head_width(p->config);
    const tern_part all = {0, p->batch->n};

    multiply(p, &l->q, p->rows, s->q);
    multiply(p, &l->k, all, s->k);
    multiply(p, &l->v, all, s->v);
    meet(p, TERN_STAGE_QKV);
    rotate_and_store(p);
    if (p->rows.begin == p->rows.end)
        return;
    meet(p, TERN_STAGE_ROPE);
    tern_attention(p->runner, p->worker, p->layer,
                   p->rows.begin == 0 ? &p->batch->all : &p->batch->wanted);
    meet(p, TERN_STAGE_ATTENTION);
    norm(p, s->attended, heads, l->attn_sub_norm, heads, l->o.form, TERN_OVERFLOW_ATTENTION);
    meet_by_row(p, TERN_STAGE_ATTENDED);
    multiply(p, &l->o, p->rows, s->out);
    meet(p, TERN_STAGE_OUT);

    add_and_norm(p, l->attn_post_norm, l->ffn_norm, l->gate.form | l->up.form);
    meet_by_row(p, TERN_STAGE_NORM);
    multiply(p, &l->gate, p->rows, s->gate);
    multiply(p, &l->up, p->rows, s->up);
    meet(p, TERN_STAGE_GATE_UP);
    gate(p, l->ffn_sub_norm, l->down.form);
    meet_by_row(p, TERN_STAGE_ACTIVATION);
    multiply(p, &l->down, p->rows, s->out);
    meet(p, TERN_STAGE_DOWN);
    add_and_norm(p, l->ffn_post_norm, next_norm, next_forms);
    meet_by_row(p, TERN_STAGE_NORM);
}

static unsigned qkv_forms(const tern_layer *l) {
    return l->q.form | l->k.form | l->v.form;
}

/* What follows the last layer: the output norm. */
static void forward_last_layer(pass *p) {
    if (!p->runner->observer) /* who looks sees all rows */
        p->rows.begin = p->batch->first_wanted;
    forward_layer(p, p->weights->output_norm, p->weights->head.form | p->model->image.scan.form);
}

static void forward(tern_worker worker, void *argument) {
    const tern_runner *r = argument;
    const tern_model *m = r->model;
    const tern_weight_set *w = tern_model_weights(m, tern_team_place(worker.team, worker.index));
    const tern_scratch *s = &r->scratch;
    const bool own = r->batch.n == 1 && worker.index > 0;
    pass p = {.runner = r,
              .batch = &r->batch,
              .model = m,
              .config = &m->config,
              .weights = w,
              .s = s,
              .in = own ? &s->own[worker.index - 1] : &s->in,
              .stages = r->stages,
              .worker = worker,
              .rows = {0, r->batch.n}};

    embed(&p);
    find_angles(&p);
    tern_stage_end(p.stages, worker, TERN_STAGE_EMBED);
    norm(&p, p.in->x, m->config.n_embd, w->layers[0].attn_norm, m->config.n_embd,
         qkv_forms(&w->layers[0]), TERN_OVERFLOW_EMBEDDING);
    meet_by_row(&p, TERN_STAGE_NORM);
    for (; p.layer + 1 < m->config.n_layer; p.layer++)
        forward_layer(&p, w->layers[p.layer + 1].attn_norm, qkv_forms(&w->layers[p.layer + 1]));
    forward_last_layer(&p);
}

void tern_forward(tern_runner *r) {
    tern_stages_run(r->stages, r->team, forward, r,
                    tern_batch_wanted(&r->batch) > 0 ? TERN_STAGE_NORM : TERN_STAGE_ROPE);
}
