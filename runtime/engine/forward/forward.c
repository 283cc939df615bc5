/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The transformer, layer by layer, in operations of a backend (tern/device.h). Every worker of the
 * team runs forward() as a lane of the backend, which splits the work of each operation and makes a
 * lane wait where it needs the results of another one (device/lane.h). No sum crosses the share of
 * a lane, so neither the number of lanes nor the rest of the batch changes a bit.
 *
 * Steps by row (norms, quantization, gates) cannot be split where there is one row. They take
 * microseconds, so every worker then does all of them for itself, in its own inputs: a copy of the
 * residual stream in each core's cache, which needs no waiting.
 *
 * A layer computes the rows p->rows: all rows, but in the last layer only those whose results are
 * wanted. There the other rows only write their keys and values.
 */

#include "base/hash64.h"
#include "runtime/engine/forward/delta.h"
#include "runtime/engine/forward/pass.h"
#include "runtime/model/config/rope.h"

size_t tern_list_products(pass *p, const map *maps, size_t count,
                          tern_device_product products[MAPS]) {
    const tern_linear *linear[MAPS] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const map *m = &maps[i];
        const tern_activations x = tern_activations_of(p->s, p->in, m->linear, m->rows.begin);
        if (count_of(m->rows) == 0 || m->linear->matrix.rows == 0)
            continue;
        linear[n] = m->linear;
        products[n++] = tern_product_of(m->linear, &x, count_of(m->rows),
                                        m->y + m->rows.begin * m->stride, m->stride);
    }
    show(p, products, linear, n, NULL);
    return n;
}

/* ---- the beginning of a pass --------------------------------------------------------------- */

/* Copies rows that stand in for tokens. Those of a span lie together in the batch, in two parts. */
static void copy_given(pass *p) {
    const size_t width = p->config->n_embd;
    const tern_batch *b = p->batch;
    for (size_t t = 0, n; t < b->n; t += n) {
        const tern_pass_span *span = &b->spans[b->at[t].sequence];
        const size_t first = b->at[t].position - span->position;
        n = t < b->first_wanted ? span->n - span->wanted : span->wanted;
        if (span->tokens != NULL)
            continue;
        const tern_device_rows from = {
            .data = (float *)span->rows + first * width, .stride = width, .n = width, .rows = n};
        tern_device_rows to = stream_rows(p);
        to.data += t * width;
        to.rows = n;
        keep(p, p->ops->copy(p->d, p->stream, &from, &to, error_of(p)));
    }
}

/* y[T][n_embd] = rows ids[T] of an embedding. */
static void look_up(pass *p, const tern_embedding *e, size_t rows, const int32_t *ids, float scale,
                    const tern_device_rows *y) {
    const tern_matrix w = {.format = e->kernel->format,
                           .layout = TERN_LAYOUT_ROWS,
                           .rows = rows,
                           .cols = p->config->n_embd,
                           .data = e->data};
    keep(p, p->ops->embed(p->d, p->stream, &w, ids, scale, y, error_of(p)));
}

/* x[T][n_embd] = layernorm(x) * g + b. */
static void norm_stream(pass *p, const float *g, const float *b, tern_overflow_place place) {
    const tern_device_rows x = stream_rows(p);
    watch_below(p, &x, 1, p->rows.begin, TERN_LAYERNORM_LIMIT, place);
    keep(p, p->ops->layernorm(p->d, p->stream, &x, g, b, p->config->norm_eps, &x, error_of(p)));
}

/* x[T][n_embd] += rows of another embedding. */
static void add_embedding(pass *p, const tern_embedding *e, size_t rows, const int32_t *ids) {
    const tern_device_rows x = stream_rows(p), y = out_rows(p);
    look_up(p, e, rows, ids, 1.0f, &y);
    keep(p, p->ops->add(p->d, p->stream, &x, &y, error_of(p)));
}

/* x[T][n_embd] = rows of the embedding, or the caller's own; encoders add kinds and positions. */
static void embed(pass *p) {
    const tern_weight_set *w = p->weights;
    const tern_config *c = p->config;
    const tern_hadamard *back = &p->model->hadamards.embedding;
    const tern_device_rows x = stream_rows(p);
    look_up(p, &w->embedding, c->n_vocab, p->batch->ids, c->embedding_scale, &x);
    if (back->block > 0) /* the embedding's rows, before the caller's replace some */
        keep(p, p->ops->hadamard(p->d, p->stream, &x, NULL, back->signs, back->block, &x,
                                 error_of(p)));
    copy_given(p);
    if (!c->arch->encodes)
        return;
    add_embedding(p, &w->types, c->n_types, p->batch->types);
    add_embedding(p, &w->positions, c->n_ctx, p->batch->places);
    norm_stream(p, w->embd_norm, w->embd_norm_bias, TERN_OVERFLOW_EMBEDDING);
}

/* cosine, sine[tables][T][n_rot/2] of the positions, computed on the host. With them everything
 * that a pass begins with is there. */
static void find_angles(pass *p) {
    const size_t half = p->config->n_rot / 2, rows = p->batch->n;
    const size_t count = tern_config_angle_tables(p->config) * rows,
                 bytes = count * half * sizeof(float);
    const tern_lane_use uses[] = {tern_lane_use_all(p->s->cosine, bytes, true),
                                  tern_lane_use_all(p->s->sine, bytes, true)};
    tern_lane_enter(&p->lane, uses, 2);
    const tern_part part = tern_lane_part(&p->lane, count);
    for (size_t i = part.begin; i < part.end; i++) {
        const uint32_t table = (uint32_t)(i / rows), position = p->batch->at[i % rows].position;
        tern_rope_angles(p->model->frequency[table % p->config->n_kinds],
                         tern_config_angle_gain(p->config, table, position), half, position,
                         p->s->cosine + i * half, p->s->sine + i * half);
    }
}

/* ---- steps --------------------------------------------------------------------------------- */

/* norm[T][width] of x[T][width] and its quantized forms. x may be norm itself where g is not
 * NULL. */
static void norm(pass *p, const tern_device_rows *x, const float *g, wanted next,
                 tern_overflow_place place) {
    norm_of(p, x, g, place);
    quantize(p, x->n, next);
}

/* Heads of q or k that this rank has, for some rows of the batch. */
typedef struct heads {
    float *x; /* of all rows */
    size_t count;
    tern_part rows;
} heads;

/* Each head as a row. */
static tern_device_rows head_rows(const pass *p, const heads *h) {
    const size_t dim = p->config->head_dim;
    return (tern_device_rows){.data = h->x + h->rows.begin * h->count * dim,
                              .stride = dim,
                              .n = dim,
                              .rows = count_of(h->rows) * h->count};
}

/* Norms the heads, each for itself or all of a row together, if the block does that. */
static void norm_heads(pass *p, const heads *h, const float *each, const float *all) {
    const tern_config *c = p->config;
    const size_t width = h->count * c->head_dim, group = each != NULL ? h->count : 1;
    const tern_device_rows x = each != NULL
                                   ? head_rows(p, h)
                                   : (tern_device_rows){.data = h->x + h->rows.begin * width,
                                                        .stride = width,
                                                        .n = width,
                                                        .rows = count_of(h->rows)};
    if (each == NULL && all == NULL)
        return;
    watch_squares(p, &x, group, h->rows.begin, TERN_OVERFLOW_QUERY);
    keep(p, p->ops->rmsnorm(p->d, p->stream, &x, each != NULL ? each : all, c->norm_eps, &x,
                            error_of(p)));
}

/* Rotates the heads by the positions of their rows, with a table of angles. */
static void turn(pass *p, const heads *h, size_t table) {
    const tern_config *c = p->config;
    const size_t half = c->n_rot / 2, width = h->count * c->head_dim;
    const size_t angles = table * p->batch->n + h->rows.begin;
    const tern_device_rope rope = {.op = c->arch->rope,
                                   .x = h->x + h->rows.begin * width,
                                   .stride = width,
                                   .c = p->s->cosine + angles * half,
                                   .s = p->s->sine + angles * half,
                                   .half = half,
                                   .heads = h->count,
                                   .tokens = count_of(h->rows),
                                   .dim = c->head_dim};
    if (!c->arch->encodes)
        keep(p, p->ops->rope(p->d, p->stream, &rope, error_of(p)));
}

/* Norms and rotates, in the architecture's order. */
static void rotate(pass *p, const heads *h, size_t table, const float *each, const float *all) {
    const bool late = (p->config->arch->has & TERN_HAS_TURNED_QK_NORMS) != 0;
    if (!late)
        norm_heads(p, h, each, all);
    turn(p, h, table);
    if (late)
        norm_heads(p, h, each, all);
}

/* The key/value heads that this rank has. */
static tern_part kv_heads(const pass *p) {
    return tern_split_part(&p->model->split, TERN_SPLIT_HEADS, p->config->n_head_kv);
}

static tern_device_pages pages_of(const pass *p, bool value) {
    const tern_pool *pool = p->batch->pool;
    const uint32_t layer = (uint32_t)p->layer;
    const tern_pool_part part = tern_pool_part_of(pool, layer);
    return (tern_device_pages){.format = pool->kv,
                               .data = tern_pool_head(pool, value, layer, kv_heads(p).begin),
                               .head_stride = pool->head_stride,
                               .page_stride = pool->parts[part].page_stride,
                               .tables = p->batch->tables[part]};
}

/* Stores keys or values of all rows in the cache. */
static void store(pass *p, const heads *h, bool value) {
    const tern_batch *b = p->batch;
    const tern_device_rows x = head_rows(p, h);
    const tern_device_store a = {.to = pages_of(p, value),
                                 .x = h->x,
                                 .stride = h->count * p->config->head_dim,
                                 .at = b->at,
                                 .tokens = b->n,
                                 .heads = h->count,
                                 .dim = p->config->head_dim};
    watch_below(p, &x, h->count, 0, tern_cache_limit(b->kv), TERN_OVERFLOW_CACHE);
    keep(p, p->ops->store_pages(p->d, p->stream, &a, error_of(p)));
}

/* Rotates q and k by their positions; stores k and v in the cache. */
static void rotate_and_store(pass *p) {
    const tern_config *c = p->config;
    const tern_layer *l = &p->weights->layers[p->layer];
    const tern_part all = {0, p->batch->n};
    const size_t count = count_of(kv_heads(p)), group = c->n_head / c->n_head_kv;
    const heads q = {p->s->q, count * group, p->rows};
    const heads k = {p->s->k, count, all}, v = {p->s->v, count, all};
    if (count == 0)
        return;
    if (count_of(p->rows) > 0) {
        const tern_device_rows x = head_rows(p, &q);
        rotate(p, &q, tern_config_query_angles(c, l->kind), l->q_norm, l->q_wide);
        watch_below(p, &x, q.count, p->rows.begin, INFINITY, TERN_OVERFLOW_QUERY);
    }
    rotate(p, &k, l->kind, l->k_norm, l->k_wide);
    store(p, &k, false);
    store(p, &v, true);
}

/* attended[T][n_head * head_dim] = attention of q over the cache. */
static void attend(pass *p) {
    const tern_config *c = p->config;
    const tern_part kv = kv_heads(p);
    const size_t group = c->n_head / c->n_head_kv, count = count_of(kv) * group;
    const size_t width = (size_t)c->n_head * c->head_dim, first = p->rows.begin;
    const float *sinks = p->weights->layers[p->layer].sinks;
    const tern_device_attend_pages a = {
        .k = pages_of(p, false),
        .v = pages_of(p, true),
        .at = p->batch->sees + first,
        .q = p->s->q + first * count * c->head_dim,
        .q_stride = count * c->head_dim,
        .tokens = count_of(p->rows),
        .heads = count,
        .kv_heads = count_of(kv),
        .dim = c->head_dim,
        .scale = c->attention_scale,
        .cap = c->attention_cap,
        .window = c->kinds[p->weights->layers[p->layer].kind].window,
        .out = p->s->attended + first * width + kv.begin * group * c->head_dim,
        .out_stride = width,
        .sinks = sinks != NULL ? sinks + kv.begin * group : NULL};
    if (count > 0)
        keep(p, p->ops->attend_pages(p->d, p->stream, &a, error_of(p)));
    join(p, p->s->attended, width, TERN_SPLIT_Q);
}

/* norm[T][n_head * head_dim] of the results of attention. */
static void norm_attended(pass *p, const float *sub_norm, wanted next) {
    const size_t width = (size_t)p->config->n_head * p->config->head_dim;
    const tern_device_rows attended = shared(p, p->s->attended, width, width);
    norm(p, &attended, sub_norm, next, TERN_OVERFLOW_ATTENTION);
}

/* LayerNorm of the residual stream after a sum; g NULL: the block has none. */
typedef struct sum_norm {
    const float *g, *b; /* [n_embd] */
} sum_norm;

/* x[T][n_embd] += out[T][n_embd], which is p->s->out or norm. If the block says so, out is normed
 * before or the sum after. Then comes the next norm. */
static void add_and_norm(pass *p, const tern_device_rows *out, const float *post_norm,
                         const sum_norm *sum, const float *g, wanted next) {
    const tern_device_rows x = stream_rows(p);
    const tern_device_rows normed = norm_rows(p, out->n);
    if (post_norm != NULL)
        norm_of(p, out, post_norm, TERN_OVERFLOW_SUM);
    keep(p, p->ops->add(p->d, p->stream, &x, post_norm != NULL ? &normed : out, error_of(p)));
    if (sum->g != NULL)
        norm_stream(p, sum->g, sum->b, TERN_OVERFLOW_SUM);
    norm(p, &x, g, next, TERN_OVERFLOW_SUM);
}

/* The next norm of the stream, without what attention adds to it after that. */
static void norm_and_add(pass *p, const tern_device_rows *out, const float *g, wanted next) {
    const tern_device_rows x = stream_rows(p);
    norm(p, &x, g, next, TERN_OVERFLOW_SUM);
    keep(p, p->ops->add(p->d, p->stream, &x, out, error_of(p)));
}

/* y[T][n_ff] = act(gate) * up. A rank makes its columns in s->gate, which y then is. */
static void gate(pass *p, const tern_device_rows *y) {
    const tern_op op = p->config->gate;
    const tern_part own = tern_split_part(&p->model->split, TERN_SPLIT_FF, p->config->n_ff);
    const bool joins = tern_split_is(&p->model->split);
    tern_device_rows g = shared(p, p->s->gate + own.begin, p->config->n_ff, count_of(own));
    const tern_device_rows u = shared(p, p->s->up + own.begin, p->config->n_ff, count_of(own));
    if (count_of(own) == 0)
        return;
    if (op == TERN_OP_GATE_RELU2) /* it turns a NaN into 0 */
        watch_below(p, &g, 1, p->rows.begin, INFINITY, TERN_OVERFLOW_GATE);
    keep(p, p->ops->gate(p->d, p->stream, op, &g, &u, joins ? &g : y, error_of(p)));
}

/* norm[T][n_ff] = act(gate) * up, followed by the block's norm if it has one. */
static void activate(pass *p, const float *sub_norm, wanted next) {
    const size_t width = p->config->n_ff;
    const tern_device_rows y = norm_rows(p, width);
    gate(p, &y);
    if (tern_split_is(&p->model->split)) {
        const tern_device_rows joined = shared(p, p->s->gate, width, width);
        join(p, p->s->gate, width, TERN_SPLIT_FF);
        norm(p, &joined, sub_norm, next, TERN_OVERFLOW_ACTIVATION);
        return;
    }
    if (sub_norm != NULL)
        norm_of(p, &y, sub_norm, TERN_OVERFLOW_ACTIVATION);
    else
        watch_below(p, &y, 1, p->rows.begin, INFINITY, TERN_OVERFLOW_ACTIVATION);
    quantize(p, width, next);
}

/* ---- layers -------------------------------------------------------------------------------- */

/* Multiplies each matrix with the stream, normed by g and then by the matrix's own norm. */
static void multiply_apart(pass *p, const map *maps, const float *const *own, size_t count,
                           const float *g, tern_block_input input) {
    const tern_part rows = p->rows;
    for (size_t i = 0; i < count; i++) {
        p->rows = maps[i].rows;
        if (count_of(p->rows) == 0)
            continue;
        const tern_device_rows x = stream_rows(p), normed = norm_rows(p, p->config->n_embd);
        norm_of(p, &x, g, TERN_OVERFLOW_SUM);
        norm(p, &normed, own[i], wanted_of(p, p->layer, input, maps[i].linear->form),
             TERN_OVERFLOW_SUM);
        multiply(p, &maps[i], 1);
    }
    p->rows = rows;
}

/* Multiplies q, k and v with the stream: k and v for all rows. */
static void multiply_qkv(pass *p, const tern_layer *l) {
    const tern_part all = {0, p->batch->n};
    const bool gated = (p->config->arch->has & TERN_HAS_QUERY_GATES) != 0;
    const map maps[] = {own_map(&l->q, p->rows, gated ? p->s->gated_q : p->s->q),
                        own_map(&l->k, all, p->s->k), own_map(&l->v, all, p->s->v)};
    if (l->q_in != NULL)
        multiply_apart(p, maps, (const float *const[]){l->q_in, l->k_in, l->v_in}, 3, l->attn_norm,
                       TERN_BLOCK_QKV);
    else
        multiply(p, maps, 3);
    if (gated)
        tern_queries_take(p);
}

static void multiply_gate_up(pass *p, const tern_layer *l) {
    const map maps[] = {map_of(&l->gate, p->rows, p->s->gate), map_of(&l->up, p->rows, p->s->up)};
    if (l->gate_in != NULL)
        multiply_apart(p, maps, (const float *const[]){l->gate_in, l->up_in}, 2, l->ffn_norm,
                       TERN_BLOCK_GATE_UP);
    else if (p->config->arch->ungated) /* the other factor, s->up, holds ones */
        multiply(p, (const map[]){map_of(&l->up, p->rows, p->s->gate)}, 1);
    else
        multiply(p, maps, 2);
}

/* The inputs of the first matrices of the feed-forward part, unless each has its own. */
static wanted feed_forward_wanted(const pass *p, const tern_layer *l) {
    if (l->gate_in != NULL)
        return (wanted){.forms = 0};
    return wanted_of(p, p->layer, TERN_BLOCK_GATE_UP,
                     l->gate.form | l->up.form | l->router.form | l->expert_gate.form |
                         l->expert_up.form | l->shared_router.form | l->shared_gate.form |
                         l->shared_up.form);
}

/* Computes the sum that the feed-forward part adds to the residual stream. */
static tern_device_rows feed_forward(pass *p, const tern_layer *l) {
    const tern_scratch *s = p->s;
    if (p->config->n_expert > 0) {
        tern_experts_run(p);
        return norm_rows(p, p->config->n_embd);
    }
    stage(p, TERN_STAGE_GATE_UP);
    multiply_gate_up(p, l);
    stage(p, TERN_STAGE_ACTIVATION);
    activate(p, l->down_in != NULL ? l->down_in : l->ffn_sub_norm,
             wanted_of(p, p->layer, TERN_BLOCK_DOWN, l->down.form));
    stage(p, TERN_STAGE_DOWN);
    multiply(p, (const map[]){map_of(&l->down, p->rows, s->out)}, 1);
    join(p, s->out, p->config->n_embd, TERN_SPLIT_EMBD);
    return out_rows(p);
}

/* Adds the input of the next matrices to the digest. With several rows another lane may have made
 * it: then only the end of the pass is compared. */
static void note_input(pass *p) {
    if (!tern_split_is(&p->model->split) || !is_own(p) || p->lane.worker.index > 0)
        return;
    p->digest =
        p->digest * 31 + tern_hash64_of(p->in->norm, p->config->n_embd * sizeof *p->in->norm);
}

/* out[T][n_embd] = the result of attention, for p->rows; keys and values of all rows are stored. */
static void forward_attention(pass *p, const tern_layer *l) {
    const tern_scratch *s = p->s;

    stage(p, TERN_STAGE_QKV);
    multiply_qkv(p, l);
    stage(p, TERN_STAGE_ROPE);
    rotate_and_store(p);
    if (count_of(p->rows) == 0)
        return;
    stage(p, TERN_STAGE_ATTENTION);
    attend(p);
    if (p->config->arch->has & TERN_HAS_QUERY_GATES)
        tern_queries_gate(p);
    stage(p, TERN_STAGE_ATTENDED);
    norm_attended(p, l->o_in != NULL ? l->o_in : l->attn_sub_norm,
                  wanted_of(p, p->layer, TERN_BLOCK_OUT, l->o.form));
    stage(p, TERN_STAGE_OUT);
    multiply(p, (const map[]){map_of(&l->o, p->rows, s->out)}, 1);
    join(p, s->out, p->config->n_embd, TERN_SPLIT_EMBD);
}

static void forward_layer(pass *p, const float *next_norm, wanted next) {
    const tern_layer *l = &p->weights->layers[p->layer];

    if (tern_block_is_delta(p->config->arch, l->kind))
        tern_delta_run(p);
    else
        forward_attention(p, l);
    if (count_of(p->rows) == 0)
        return;
    stage(p, TERN_STAGE_NORM);
    const tern_device_rows attended = out_rows(p);
    if (p->config->arch->parallel)
        norm_and_add(p, &attended, l->attn_norm, feed_forward_wanted(p, l));
    else
        add_and_norm(p, &attended, l->attn_post_norm,
                     &(sum_norm){l->attn_sum_norm, l->attn_sum_bias}, l->ffn_norm,
                     feed_forward_wanted(p, l));
    note_input(p);
    const tern_device_rows fed = feed_forward(p, l);
    stage(p, TERN_STAGE_NORM);
    add_and_norm(p, &fed, l->ffn_post_norm, &(sum_norm){l->ffn_sum_norm, l->ffn_sum_bias},
                 next_norm, next);
    note_input(p);
}

/* The inputs of the first matrices of a layer. */
static wanted qkv_wanted(const pass *p, size_t layer) {
    const tern_layer *l = &p->weights->layers[layer];
    if (l->q_in != NULL)
        return (wanted){.forms = 0};
    return wanted_of(p, layer, TERN_BLOCK_QKV,
                     l->q.form | l->k.form | l->v.form | tern_delta_forms(l));
}

/* Runs the last layer, followed by the output norm. */
static void forward_last_layer(pass *p) {
    /* an observer sees all rows; ranks have none */
    if (p->runner->observer == NULL || tern_split_is(&p->model->split))
        p->rows.begin = p->batch->first_wanted;
    const tern_hadamard turned = p->model->hadamards.head;
    const wanted next = {.forms = p->weights->head.form | p->model->image.scan.form,
                         .turned = turned,
                         .kept = turned.block > 0};
    forward_layer(p, p->weights->output_norm, next);
}

static void forward_layers(pass *p) {
    const tern_layer *layers = p->weights->layers;
    const tern_device_rows x = stream_rows(p);

    tern_delta_begin(p);
    embed(p);
    stage(p, TERN_STAGE_NORM);
    norm(p, &x, layers[0].attn_norm, qkv_wanted(p, 0), TERN_OVERFLOW_EMBEDDING);
    for (; p->layer + 1 < p->config->n_layer; p->layer++)
        forward_layer(p, layers[p->layer + 1].attn_norm, qkv_wanted(p, p->layer + 1));
    forward_last_layer(p);
}

static void forward(tern_worker worker, void *argument) {
    tern_runner *r = argument;
    const tern_model *m = r->model;
    const tern_scratch *s = &r->scratch;
    const bool own = r->batch.n == 1 && worker.index > 0;
    pass p = {.d = r->backend,
              .ops = r->backend->ops,
              .runner = r,
              .batch = &r->batch,
              .model = m,
              .config = &m->config,
              .weights = tern_model_weights(m, tern_team_place(worker.team, worker.index)),
              .s = s,
              .in = own ? &s->own[worker.index - 1] : &s->in,
              .rows = {0, r->batch.n}};

    tern_lane_begin(&p.lane, worker, &m->fetching, r->stages, TERN_STAGE_EMBED);
    p.stream = tern_lane_stream(&p.lane);
    find_angles(&p);
    bool done;
    keep(&p, tern_runner_begin_operations(r, &done, error_of(&p)));
    if (!done) {
        forward_layers(&p);
        keep(&p, tern_runner_end_operations(r, error_of(&p)));
    }
    if (worker.index == 0) { /* all workers had the same operands */
        r->far.digest = p.digest;
        r->failed = p.status;
        r->failure = p.err;
    }
}

void tern_forward(tern_runner *r) {
    tern_stages_run(r->stages, r->team, forward, r,
                    tern_batch_wanted(&r->batch) > 0 ? TERN_STAGE_NORM : TERN_STAGE_ROPE);
}
