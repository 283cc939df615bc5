/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The transformer, layer by layer. Every worker of the team runs forward(): each step takes its
 * part of the work, and a barrier stands between a step and the one that reads its result. The
 * split is by tokens, heads or groups of matrix rows, none of which shares a sum, so neither it nor
 * the batch changes a bit.
 *
 * Steps by token (norms, quantization, gates) cannot be split where there is one token. They take
 * microseconds, so then every worker does them all for itself, in inputs of its own: a copy of the
 * residual stream in each core's cache, and neither anybody who waits nor a barrier behind them.
 */

#include <math.h>
#include <string.h>

#include "runtime/forward/attention.h"
#include "runtime/model/rope.h"
#include "runtime/session/session.h"

/* One worker's view of the running batch. */
typedef struct pass {
    tern_batch *batch;
    const tern_session *session;
    const tern_model *model;
    const tern_config *config;
    const tern_weight_set *weights; /* what this worker reads: perhaps of its own node */
    const tern_scratch *s;
    const tern_inputs *in; /* what this worker reads: everybody's, or its own for a single token */
    tern_stages *stages;   /* NULL: nobody measures */
    tern_worker worker;
    size_t layer; /* that runs */
} pass;

static bool is_alone(const pass *p) {
    return p->batch->n == 1;
}

/* The tokens whose inputs this worker makes. */
static tern_part my_tokens(const pass *p) {
    return is_alone(p) ? (tern_part){0, 1} : tern_team_split(p->worker, p->batch->n, 1);
}

/* The end of a stage whose result others read. */
static void meet(const pass *p, tern_stage stage) {
    tern_stage_meet(p->stages, p->worker, stage);
}

/* The end of steps by token. */
static void meet_by_token(const pass *p, tern_stage stage) {
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
    const tern_part part = my_tokens(p);
    for (size_t t = part.begin; t < part.end; t++)
        if (p->batch->rows)
            memcpy(p->in->x + t * width, p->batch->rows + t * width, width * sizeof(float));
        else
            e->row->fn.embed(e->data + (size_t)p->batch->tokens[t] * e->row_bytes, width,
                             p->in->x + t * width);
}

/* cosine, sine[T][n_rot/2] of the positions; read behind the barrier that follows q, k and v. */
static void find_angles(const pass *p) {
    const size_t half = p->config->n_rot / 2;
    const tern_part part = tern_team_split(p->worker, p->batch->n, 1);
    for (size_t t = part.begin; t < part.end; t++)
        tern_rope_angles(p->model->frequency, half, p->batch->position + t, p->s->cosine + t * half,
                         p->s->sine + t * half);
}

/* ---- overflows (overflow.h) ---------------------------------------------------------------- */

/* The part of an input that this worker looks at: where everybody made all of it, only a share. */
static tern_part my_share(const pass *p, size_t width) {
    return is_alone(p) ? tern_team_split(p->worker, width, 1) : (tern_part){0, width};
}

/* x[width], that this worker made, and perhaps others for themselves, must be finite. */
static void watch(const pass *p, const float *x, size_t width, tern_overflow_place place) {
    const tern_part part = my_share(p, width);
    if (!tern_all_below(x + part.begin, part.end - part.begin, INFINITY))
        tern_overflow_note(&p->batch->overflow, p->layer, place);
}

/* The same where rmsnorm follows: the sum of squares must be finite, too. */
static void watch_squares(const pass *p, const float *x, size_t width, tern_overflow_place place) {
    const tern_part part = my_share(p, width);
    if (!tern_all_below(x + part.begin, part.end - part.begin, TERN_SQUARES_LIMIT) &&
        !tern_squares_fit(x, width))
        tern_overflow_note(&p->batch->overflow, p->layer, place);
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

/* norm[T][width] = rmsnorm(x[T][width]) * g, and its quantized forms. x may be norm itself. */
static void norm(const pass *p, const float *x, size_t x_stride, const float *g, size_t width,
                 unsigned forms, tern_overflow_place place) {
    const tern_part part = my_tokens(p);
    for (size_t t = part.begin; t < part.end; t++) {
        watch_squares(p, x + t * x_stride, width, place);
        p->model->rows.rmsnorm->fn.rmsnorm(x + t * x_stride, g, width, p->config->norm_eps,
                                           p->in->norm + t * p->s->width);
        prepare(p, t, width, forms);
    }
}

/* y[t - t0][rows] = matrix * norm[t][cols] (+ bias) for tokens t in [t0, t1). */
static void multiply(const pass *p, const tern_linear *linear, size_t t0, size_t t1, float *y) {
    const tern_matrix *m = &linear->matrix;
    const tern_activations x = tern_activations_of(p->s, p->in, linear, t0);
    if (p->session->observer && p->worker.index == 0)
        p->session->observer(p->session->observer_user, linear, &x, t1 - t0);
    const tern_kernel_row *row = tern_linear_row(linear, t1 - t0);
    tern_pieces pieces = tern_team_pieces(p->worker, m->rows, TERN_ROW_GROUP);
    for (tern_part piece; tern_pieces_next(&pieces, &piece);) {
        const tern_tile tile = {.t0 = 0, .t1 = t1 - t0, .r0 = piece.begin, .r1 = piece.end};
        row->fn.matmul(m, &x, &tile, y, m->rows);
        for (size_t t = 0; linear->bias && t < t1 - t0; t++)
            p->model->rows.add->fn.add(y + t * m->rows + piece.begin, linear->bias + piece.begin,
                                       piece.end - piece.begin);
    }
}

/* One head of q or k, normed if the block does that, then turned by its position. */
static void turn(const pass *p, float *head, const float *g, const float *cosine,
                 const float *sine) {
    const tern_row_set *rows = &p->model->rows;
    if (g && !tern_squares_fit(head, p->config->head_dim))
        tern_overflow_note(&p->batch->overflow, p->layer, TERN_OVERFLOW_QUERY);
    if (g)
        rows->rmsnorm->fn.rmsnorm(head, g, p->config->head_dim, p->config->norm_eps, head);
    rows->rope->fn.rope(head, cosine, sine, p->config->n_rot / 2);
}

/* q, k turned by their positions; k, v into the cache; by (token, key/value head). */
static void rotate_and_store(const pass *p, size_t layer) {
    const tern_config *c = p->config;
    const tern_layer *l = &p->weights->layers[layer];
    const tern_session *session = p->session;
    const size_t half = c->n_rot / 2;
    const size_t group = c->n_head / c->n_head_kv;
    const float limit = tern_cache_limit(session->kv);
    const tern_part part = tern_team_split(p->worker, p->batch->n * c->n_head_kv, 1);
    for (size_t i = part.begin; i < part.end; i++) {
        const size_t t = i / c->n_head_kv;
        const size_t h = i % c->n_head_kv;
        const float *cosine = p->s->cosine + t * half;
        const float *sine = p->s->sine + t * half;
        const size_t offset = (p->batch->position + t) * session->kv_row_bytes;
        float *q = p->s->q + t * head_width(c) + h * group * c->head_dim;
        float *k = p->s->k + t * kv_width(c) + h * c->head_dim;
        const float *v = p->s->v + t * kv_width(c) + h * c->head_dim;
        for (size_t g = 0; g < group; g++)
            turn(p, q + g * c->head_dim, l->q_norm, cosine, sine);
        turn(p, k, l->k_norm, cosine, sine);
        if (!tern_all_below(q, group * c->head_dim, INFINITY))
            tern_overflow_note(&p->batch->overflow, layer, TERN_OVERFLOW_QUERY);
        if (!tern_all_below(k, c->head_dim, limit) || !tern_all_below(v, c->head_dim, limit))
            tern_overflow_note(&p->batch->overflow, layer, TERN_OVERFLOW_CACHE);
        session->store->fn.store(k, c->head_dim,
                                 tern_cache_head(session, session->cache_k, layer, h) + offset);
        session->store->fn.store(v, c->head_dim,
                                 tern_cache_head(session, session->cache_v, layer, h) + offset);
    }
}

/* x[T][n_embd] += out[T][n_embd], then the norm that follows. */
static void add_and_norm(const pass *p, const float *g, unsigned forms) {
    const size_t width = p->config->n_embd;
    const tern_part part = my_tokens(p);
    for (size_t t = part.begin; t < part.end; t++)
        p->model->rows.add->fn.add(p->in->x + t * width, p->s->out + t * width, width);
    norm(p, p->in->x, width, g, width, forms, TERN_OVERFLOW_SUM);
}

/* norm[T][n_ff] = act(gate) * up, with the block's norm behind it if it has one. */
static void gate(const pass *p, const float *sub_norm, unsigned forms) {
    const size_t width = p->config->n_ff;
    const tern_part part = my_tokens(p);
    for (size_t t = part.begin; t < part.end; t++) {
        float *y = p->in->norm + t * p->s->width;
        if (p->config->arch->gate == TERN_OP_GATE_RELU2) /* makes 0 of a NaN */
            watch(p, p->s->gate + t * width, width, TERN_OVERFLOW_GATE);
        p->model->rows.gate->fn.gate(p->s->gate + t * width, p->s->up + t * width, width, y);
        if (sub_norm)
            continue;
        watch(p, y, width, TERN_OVERFLOW_ACTIVATION);
        prepare(p, t, width, forms);
    }
    if (sub_norm)
        norm(p, p->in->norm, p->s->width, sub_norm, width, forms, TERN_OVERFLOW_ACTIVATION);
}

/* norm[T][n_head * head_dim]: attended, normed or not, in the forms that the output projection
 * reads. */
static void finish_attention(const pass *p, const float *sub_norm, unsigned forms) {
    const size_t width = head_width(p->config);
    const tern_part part = my_tokens(p);
    if (sub_norm) {
        norm(p, p->s->attended, width, sub_norm, width, forms, TERN_OVERFLOW_ATTENTION);
        return;
    }
    for (size_t t = part.begin; t < part.end; t++) {
        watch(p, p->s->attended + t * width, width, TERN_OVERFLOW_ATTENTION);
        memcpy(p->in->norm + t * p->s->width, p->s->attended + t * width, width * sizeof(float));
        prepare(p, t, width, forms);
    }
}

static void forward_layer(const pass *p, size_t n, const float *next_norm, unsigned next_forms) {
    const tern_layer *l = &p->weights->layers[n];
    const tern_scratch *s = p->s;
    const size_t tokens = p->batch->n;

    multiply(p, &l->q, 0, tokens, s->q);
    multiply(p, &l->k, 0, tokens, s->k);
    multiply(p, &l->v, 0, tokens, s->v);
    meet(p, TERN_STAGE_QKV);
    rotate_and_store(p, n);
    meet(p, TERN_STAGE_ROPE);
    tern_attention(p->batch, p->worker, n);
    meet(p, TERN_STAGE_ATTENTION);
    finish_attention(p, l->attn_sub_norm, l->o.form);
    meet_by_token(p, TERN_STAGE_ATTENDED);
    multiply(p, &l->o, 0, tokens, s->out);
    meet(p, TERN_STAGE_OUT);

    add_and_norm(p, l->ffn_norm, l->gate.form | l->up.form);
    meet_by_token(p, TERN_STAGE_NORM);
    multiply(p, &l->gate, 0, tokens, s->gate);
    multiply(p, &l->up, 0, tokens, s->up);
    meet(p, TERN_STAGE_GATE_UP);
    gate(p, l->ffn_sub_norm, l->down.form);
    meet_by_token(p, TERN_STAGE_ACTIVATION);
    multiply(p, &l->down, 0, tokens, s->out);
    meet(p, TERN_STAGE_DOWN);
    add_and_norm(p, next_norm, next_forms);
    meet_by_token(p, TERN_STAGE_NORM);
}

static unsigned qkv_forms(const tern_layer *l) {
    return l->q.form | l->k.form | l->v.form;
}

static void forward(tern_worker worker, void *argument) {
    tern_batch *batch = argument;
    const tern_model *m = batch->session->model;
    const tern_weight_set *w = tern_model_weights(m, tern_team_place(worker.team, worker.index));
    const tern_scratch *s = &batch->session->scratch;
    const bool own = batch->n == 1 && worker.index > 0;
    pass p = {.batch = batch,
              .session = batch->session,
              .model = m,
              .config = &m->config,
              .weights = w,
              .s = s,
              .in = own ? &s->own[worker.index - 1] : &s->in,
              .stages = batch->session->stages,
              .worker = worker};
    const size_t width = m->config.n_embd;

    embed(&p);
    find_angles(&p);
    tern_stage_end(p.stages, worker, TERN_STAGE_EMBED);
    norm(&p, p.in->x, width, w->layers[0].attn_norm, width, qkv_forms(&w->layers[0]),
         TERN_OVERFLOW_EMBEDDING);
    meet_by_token(&p, TERN_STAGE_NORM);
    for (size_t n = 0; n < m->config.n_layer; n++) {
        const bool last = n + 1 == m->config.n_layer;
        p.layer = n;
        forward_layer(&p, n, last ? w->output_norm : w->layers[n + 1].attn_norm,
                      last ? w->head.form | m->image.scan.form : qkv_forms(&w->layers[n + 1]));
    }
    if (batch->n_logits > 0) /* logits[0] belongs to token n - n_logits */
        multiply(&p, &w->head, batch->n - batch->n_logits, batch->n, batch->logits);
}

void tern_forward(tern_batch *batch) {
    tern_session *s = batch->session;
    tern_stages_run(s->stages, s->team, forward, batch,
                    batch->n_logits > 0 ? TERN_STAGE_HEAD : TERN_STAGE_NORM);
}
