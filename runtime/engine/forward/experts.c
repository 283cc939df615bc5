/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/engine/forward/experts.h"

#include <string.h>

#include "device/finish.h"
#include "runtime/engine/forward/pass.h"
#include "runtime/engine/forward/shared_expert.h"

/* ---- memory -------------------------------------------------------------------------------- */

tern_expert_sizes tern_experts_sizes(const tern_model *m) {
    const tern_config *c = &m->config;
    tern_expert_sizes sizes = {.forms = 0};
    unsigned read = 0;
    for (uint32_t n = 0; c->n_expert > 0 && n < c->n_layer; n++) {
        const tern_layer *l = &m->layers[n];
        read |= l->expert_gate.form | l->expert_up.form;
        sizes.forms |= read | l->expert_down.form;
    }
    const size_t width = c->n_embd > c->n_ff ? c->n_embd : c->n_ff;
    sizes.stride = read & TERN_INPUT_FLOAT ? width : c->n_ff;
    sizes.q_stride = (width + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    sizes.blocks = (width + TERN_BLOCK - 1) / TERN_BLOCK;
    return sizes;
}

static tern_routes lay_out_routes(const tern_config *c, size_t choices, tern_taker *t) {
    tern_routes r;
    r.ids = tern_take(t, choices, sizeof *r.ids);
    r.weights = tern_take(t, choices, sizeof *r.weights);
    r.places = tern_take(t, choices, sizeof *r.places);
    r.rows = tern_take(t, choices, sizeof *r.rows);
    r.at = tern_take(t, choices, sizeof *r.at);
    r.begins = tern_take(t, (size_t)c->n_expert + 1, sizeof *r.begins);
    r.used = tern_take(t, c->n_expert, sizeof *r.used);
    r.n = tern_take(t, 1, sizeof *r.n);
    return r;
}

tern_expert_inputs tern_experts_lay_out(const tern_config *c, const tern_expert_sizes *sizes,
                                        size_t rows, tern_taker *t) {
    const size_t choices = tern_taker_times(t, rows, c->n_used);
    const size_t codes = tern_taker_times(t, choices, sizes->q_stride);
    tern_expert_inputs in = {.scores = NULL};
    if (c->n_expert == 0)
        return in;
    in.routes = lay_out_routes(c, choices, t);
    in.scores = tern_take(t, tern_taker_times(t, rows, c->n_expert), sizeof *in.scores);
    in.x = tern_take(t, tern_taker_times(t, choices, sizes->stride), sizeof *in.x);
    if (sizes->forms & TERN_INPUT_TOKEN) {
        in.q = tern_take(t, codes, 1);
        in.s = tern_take(t, choices, sizeof *in.s);
        in.sum = tern_take(t, choices, sizeof *in.sum);
    }
    if (sizes->forms & TERN_INPUT_BLOCK) {
        in.b = tern_take(t, codes, 1);
        in.d = tern_take(t, tern_taker_times(t, choices, sizes->blocks), sizeof *in.d);
        in.block_sum =
            tern_take(t, tern_taker_times(t, choices, sizes->blocks), sizeof *in.block_sum);
    }
    return in;
}

tern_expert_outputs tern_experts_lay_out_shared(const tern_config *c, size_t rows, tern_taker *t) {
    const size_t choices = tern_taker_times(t, rows, c->n_used);
    tern_expert_outputs out = {.scores = NULL};
    if (c->n_expert == 0)
        return out;
    out.scores = tern_take(t, tern_taker_times(t, rows, c->n_expert), sizeof *out.scores);
    out.gate = tern_take(t, tern_taker_times(t, choices, c->n_ff), sizeof *out.gate);
    out.up = tern_take(t, tern_taker_times(t, choices, c->n_ff), sizeof *out.up);
    out.down = tern_take(t, tern_taker_times(t, choices, c->n_embd), sizeof *out.down);
    return out;
}

/* ---- memory of a worker -------------------------------------------------------------------- */

static size_t choices_of(const pass *p) {
    return count_of(p->rows) * p->config->n_used;
}

static const tern_expert_inputs *inputs_of(const pass *p) {
    return &p->in->experts;
}

/* The use of inputs: none if they are a worker's own, which no other worker touches. */
static tern_lane_use use_input(const pass *p, const void *begin, size_t bytes, bool writes) {
    return tern_lane_use_all(begin, is_own(p) ? 0 : bytes, writes);
}

/* The use of the order of the choices, all of which `places` stands for. */
static tern_lane_use use_order(const pass *p, bool writes) {
    const uint32_t *places = inputs_of(p)->routes.places;
    return use_input(p, places, choices_of(p) * sizeof *places, writes);
}

/* True if experts read a copy of its row for each choice; false if they read the only row. */
static bool copies_rows(const pass *p) {
    return count_of(p->rows) > 1;
}

/* The experts that this rank has, and their choices, which are known once these are in order. */
static tern_part own_experts(const pass *p) {
    return tern_split_part(&p->model->split, TERN_SPLIT_EXPERTS, p->config->n_expert);
}

static tern_part own_choices(const pass *p) {
    const uint32_t *begins = inputs_of(p)->routes.begins;
    const tern_part own = own_experts(p);
    return (tern_part){begins[own.begin], begins[own.end]};
}

/* ---- the choice ---------------------------------------------------------------------------- */

/* Finds the k largest of p[n], in descending order, the first of equal ones. A NaN is never
 * larger. */
static void find_largest(const float *p, uint32_t n, uint32_t k, uint32_t *ids) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (found == k && !(p[i] > p[ids[k - 1]]))
            continue;
        uint32_t at = found < k ? found++ : k - 1;
        for (; at > 0 && p[i] > p[ids[at - 1]]; at--)
            ids[at] = ids[at - 1];
        ids[at] = i;
    }
}

static void sort_ascending(uint32_t *ids, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t id = ids[i];
        uint32_t at = i;
        for (; at > 0 && ids[at - 1] > id; at--)
            ids[at] = ids[at - 1];
        ids[at] = id;
    }
}

void tern_experts_choose(const tern_config *c, const float *p, uint32_t *ids, float *weights) {
    float sum = 0.0f;
    find_largest(p, c->n_expert, c->n_used, ids);
    sort_ascending(ids, c->n_used);
    for (uint32_t i = 0; i < c->n_used; i++)
        sum += weights[i] = p[ids[i]];
    for (uint32_t i = 0; i < c->n_used; i++) {
        if (c->expert_norm)
            weights[i] /= sum;
        weights[i] *= c->expert_scale;
    }
}

/* Chooses the experts of all rows. */
static void choose(pass *p, const tern_device_rows *scores) {
    const tern_routes *r = &inputs_of(p)->routes;
    const size_t k = p->config->n_used;
    const tern_lane_use uses[] = {
        tern_lane_use_rows(scores, scores, false),
        {.begin = r->ids,
         .bytes = is_own(p) ? 0 : choices_of(p) * sizeof *r->ids,
         .stride = k * sizeof *r->ids,
         .count = scores->rows,
         .writes = true},
    };
    tern_lane_enter(&p->lane, uses, 2);
    const tern_part part = tern_lane_rows(&p->lane, scores);
    for (size_t t = part.begin; t < part.end; t++)
        tern_experts_choose(p->config, scores->data + t * scores->stride, r->ids + t * k,
                            r->weights + t * k);
}

/* Counts the choices of each expert: begins, used and n. */
static void count_choices(const pass *p, const tern_routes *r) {
    const size_t n_expert = p->config->n_expert;
    memset(r->begins, 0, (n_expert + 1) * sizeof *r->begins);
    for (size_t i = 0; i < choices_of(p); i++)
        r->begins[r->ids[i] + 1]++;
    *r->n = 0;
    for (size_t e = 0; e < n_expert; e++) {
        if (r->begins[e + 1] > 0)
            r->used[(*r->n)++] = (uint32_t)e;
        r->begins[e + 1] += r->begins[e];
    }
}

/* Sorts the choices by expert: one worker does it, or each for itself. */
static void order_choices(pass *p) {
    const tern_routes *r = &inputs_of(p)->routes;
    const size_t k = p->config->n_used;
    const tern_lane_use uses[] = {
        use_input(p, r->ids, choices_of(p) * sizeof *r->ids, false),
        use_order(p, true),
    };
    tern_lane_enter(&p->lane, uses, 2);
    if (!is_own(p) && p->lane.worker.index > 0)
        return;
    count_choices(p, r);
    for (size_t i = 0; i < choices_of(p); i++) {
        const uint32_t place = r->begins[r->ids[i]]++; /* it becomes the expert's end */
        r->places[i] = place;
        r->rows[place] = (uint32_t)(i / k);
        r->at[place] = p->batch->at[p->rows.begin + i / k];
    }
    memmove(r->begins + 1, r->begins, p->config->n_expert * sizeof *r->begins);
    r->begins[0] = 0;
}

static void route(pass *p, const tern_layer *l) {
    const size_t n = p->config->n_expert;
    const tern_device_rows made = shared(p, p->s->experts.scores, n, n);
    const tern_device_rows scores = input(p, inputs_of(p)->scores, n, n);
    multiply(p, (const map[]){map_of(&l->router, p->rows, p->s->experts.scores)}, 1);
    watch_below(p, &made, 1, p->rows.begin, INFINITY, TERN_OVERFLOW_ROUTER);
    keep(p, p->ops->copy(p->d, p->stream, &made, &scores, error_of(p)));
    keep(p, p->ops->softmax(p->d, p->stream, &scores, error_of(p)));
    choose(p, &scores);
    order_choices(p);
}

/* ---- inputs of experts --------------------------------------------------------------------- */

/* Copies row `from` of the layer's inputs to choice `to`. */
static void copy_row(const pass *p, unsigned forms, size_t from, size_t to) {
    const tern_scratch *s = p->s;
    const tern_expert_sizes *z = &s->expert_sizes;
    const tern_expert_inputs *e = inputs_of(p);
    const size_t width = p->config->n_embd;
    const size_t codes = (width + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    const size_t blocks = (width + TERN_BLOCK - 1) / TERN_BLOCK;
    if (forms & TERN_INPUT_FLOAT)
        memcpy(e->x + to * z->stride, p->in->norm + from * s->width, width * sizeof(float));
    if (forms & TERN_INPUT_TOKEN) {
        memcpy(e->q + to * z->q_stride, p->in->qx + from * s->q_stride, codes);
        e->s[to] = p->in->qx_s[from];
        e->sum[to] = p->in->qx_sum[from];
    }
    if (forms & TERN_INPUT_BLOCK) {
        memcpy(e->b + to * z->q_stride, p->in->bx + from * s->q_stride, codes);
        memcpy(e->d + to * z->blocks, p->in->bx_d + from * s->blocks, blocks * sizeof(float));
        memcpy(e->block_sum + to * z->blocks, p->in->bx_sum + from * s->blocks,
               blocks * sizeof(int32_t));
    }
}

/* Lists the shared memory of an input in its forms; returns how many there are. */
static size_t list_uses(const pass *p, const float *x, const int8_t *q, const int8_t *b,
                        size_t rows, size_t stride, size_t q_stride, bool writes,
                        tern_lane_use uses[3]) {
    size_t n = 0;
    uses[n++] = use_input(p, x, rows * stride * sizeof *x, writes);
    if (q != NULL)
        uses[n++] = use_input(p, q, rows * q_stride, writes);
    if (b != NULL)
        uses[n++] = use_input(p, b, rows * q_stride, writes);
    return n;
}

static size_t use_rows_of_layer(const pass *p, tern_lane_use uses[3]) {
    const tern_scratch *s = p->s;
    const size_t first = p->rows.begin;
    return list_uses(p, p->in->norm + first * s->width, p->in->qx + first * s->q_stride,
                     p->in->bx + first * s->q_stride, count_of(p->rows), s->width, s->q_stride,
                     false, uses);
}

static size_t use_choices(const pass *p, bool writes, tern_lane_use uses[3]) {
    const tern_expert_inputs *e = inputs_of(p);
    const tern_expert_sizes *z = &p->s->expert_sizes;
    return list_uses(p, e->x, e->q, e->b, choices_of(p), z->stride, z->q_stride, writes, uses);
}

/* Copies its row for each choice. */
static void copy_rows(pass *p, unsigned forms) {
    const tern_routes *r = &inputs_of(p)->routes;
    tern_lane_use uses[7];
    size_t n = use_rows_of_layer(p, uses);
    n += use_choices(p, true, uses + n);
    uses[n++] = use_order(p, false);
    tern_lane_enter(&p->lane, uses, n);
    const tern_part own = own_choices(p);
    const tern_part part = tern_lane_part(&p->lane, count_of(own));
    for (size_t i = own.begin + part.begin; i < own.begin + part.end; i++)
        copy_row(p, forms, p->rows.begin + r->rows[i], i);
}

static tern_activations choice_activations(const pass *p, const tern_linear *linear) {
    const tern_expert_inputs *e = inputs_of(p);
    const tern_expert_sizes *z = &p->s->expert_sizes;
    return (tern_activations){.cols = linear->matrix.cols,
                              .x = e->x,
                              .x_stride = z->stride,
                              .q = linear->form == TERN_INPUT_TOKEN ? e->q : e->b,
                              .q_stride = z->q_stride,
                              .s = e->s,
                              .sum = e->sum,
                              .d = e->d,
                              .block_sum = e->block_sum,
                              .d_stride = z->blocks};
}

/* ---- products ------------------------------------------------------------------------------ */

/* Products of all experts with their choices. */
typedef struct routed {
    const tern_linear *linear;
    const tern_kernel_row *add; /* for biases */
    tern_activations x;         /* of the choices, or of the one row */
    bool one;                   /* x has one row only */
    float *y;                   /* [choices][rows of an expert] */
    float least, most;          /* limits of y; infinite: none */
    const tern_routes *routes;
    tern_part used;      /* of routes->used: experts that this rank has */
    size_t rows, groups; /* of an expert's matrix */
} routed;

/* Multiplies results of an expert by its factor and adds its bias, where it has them. */
static void finish(const routed *r, uint32_t expert, float *y, const tern_tile *tile) {
    const float *factor = tern_linear_expert_factor(r->linear, expert);
    const float *bias = tern_linear_expert_bias(r->linear, expert);
    for (size_t t = tile->t0; t < tile->t1; t++)
        tern_finish_row(r->add, factor, bias != NULL ? bias + tile->r0 : NULL,
                        y + t * r->rows + tile->r0, tile->r1 - tile->r0);
}

static void cut(const routed *r, float *y, const tern_tile *tile) {
    for (size_t t = tile->t0; r->most < INFINITY && t < tile->t1; t++)
        for (size_t i = tile->r0; i < tile->r1; i++) {
            float *v = y + t * r->rows + i;
            *v = *v > r->most ? r->most : *v < r->least ? r->least : *v;
        }
}

/* Multiplies row groups [g0, g1) of the matrix of one expert with all of its choices. */
static void multiply_expert(const routed *r, uint32_t expert, size_t g0, size_t g1) {
    const size_t first = r->routes->begins[expert], last = r->routes->begins[expert + 1];
    const size_t end = g1 * TERN_ROW_GROUP;
    const tern_tile tile = {.t0 = r->one ? 0 : first,
                            .t1 = r->one ? 1 : last,
                            .r0 = g0 * TERN_ROW_GROUP,
                            .r1 = end < r->rows ? end : r->rows};
    const tern_matrix m = tern_linear_expert(r->linear, expert);
    float *y = r->one ? r->y + first * r->rows : r->y;
    tern_linear_kernel(r->linear, last - first)->fn.matmul(&m, &r->x, &tile, y, r->rows);
    finish(r, expert, y, &tile);
    cut(r, y, &tile);
}

/* Multiplies row groups of a product, whose used experts' matrices count as one. */
static void multiply_groups(const routed *r, tern_part piece) {
    for (size_t g = piece.begin, end; g < piece.end; g = end) {
        const size_t i = g / r->groups, begin = i * r->groups;
        end = begin + r->groups < piece.end ? begin + r->groups : piece.end;
        multiply_expert(r, r->routes->used[r->used.begin + i], g - begin, end - begin);
    }
}

/* Counts the kernel of each used expert, which depends on its number of choices. */
static void count_experts(const pass *p, const routed *product) {
    const tern_routes *r = product->routes;
    const tern_part used = product->used;
    for (size_t i = used.begin; p->lane.worker.index == 0 && i < used.end; i++) {
        const uint32_t *begin = &r->begins[r->used[i]];
        tern_tally_count(p->runner->tally,
                         tern_linear_kernel(product->linear, begin[1] - begin[0]));
        if (product->linear->bias != NULL)
            tern_tally_count(p->runner->tally, product->add);
    }
}

/* The part of the used experts, which stand in ascending order, that this rank has. */
static tern_part own_used(const pass *p) {
    const tern_routes *r = &inputs_of(p)->routes;
    const tern_part own = own_experts(p);
    tern_part used = {0, 0};
    for (size_t i = 0; i < *r->n; i++) {
        used.begin += r->used[i] < own.begin;
        used.end += r->used[i] < own.end;
    }
    return used;
}

enum { MOST_ROUTED = 2 };

/* Computes up to MOST_ROUTED products of the same rows; `reads` are the uses of those rows. */
static void multiply_routed(pass *p, routed *products, size_t count, const tern_lane_use *reads,
                            size_t n_reads) {
    const tern_routes *r = &inputs_of(p)->routes;
    tern_lane_use uses[6];
    size_t groups[MOST_ROUTED];
    size_t n = 0;
    for (; n < n_reads; n++)
        uses[n] = reads[n];
    uses[n++] = use_order(p, false);
    for (size_t i = 0; i < count; i++) {
        routed *product = &products[i];
        product->routes = r;
        product->add = p->model->kernels.add;
        product->rows = tern_linear_expert_rows(product->linear);
        product->groups = (product->rows + TERN_ROW_GROUP - 1) / TERN_ROW_GROUP;
        uses[n++] =
            tern_lane_use_all(product->y, choices_of(p) * product->rows * sizeof *product->y, true);
    }
    tern_lane_enter(&p->lane, uses, n);
    for (size_t i = 0; i < count; i++) {
        products[i].used = own_used(p);
        groups[i] = count_of(products[i].used) * products[i].groups;
        count_experts(p, &products[i]);
    }
    tern_lane_pieces pieces =
        tern_lane_divide(&p->lane, &(const tern_lane_works){groups, count, 1}, true);
    for (tern_lane_piece piece; tern_lane_next(&pieces, &piece);)
        multiply_groups(&products[piece.work], piece.items);
}

/* ---- steps --------------------------------------------------------------------------------- */

/* The choices as the observer sees them; rows: the row of each choice, or NULL. */
static tern_product_routes routes_of(const pass *p, const uint32_t *rows) {
    return (tern_product_routes){
        .experts = p->config->n_expert, .begins = inputs_of(p)->routes.begins, .rows = rows};
}

/* Multiplies gate and up for all choices. */
static void multiply_gate_up(pass *p, const tern_layer *l) {
    const tern_expert_outputs *out = &p->s->experts;
    const tern_linear *linear[] = {&l->expert_gate, &l->expert_up};
    const float clamp = p->config->expert_clamp > 0.0f ? p->config->expert_clamp : INFINITY;
    routed products[] = {{.y = out->gate, .least = -INFINITY, .most = clamp},
                         {.y = out->up, .least = -clamp, .most = clamp}};
    tern_device_product shown[2];
    tern_lane_use reads[3];
    size_t n;
    for (size_t i = 0; i < 2; i++) {
        const tern_activations x = tern_activations_of(p->s, p->in, linear[i], p->rows.begin);
        products[i].linear = linear[i];
        products[i].one = !copies_rows(p);
        products[i].x = products[i].one ? x : choice_activations(p, linear[i]);
        shown[i] = tern_product_of(linear[i], &x, count_of(p->rows), products[i].y,
                                   linear[i]->matrix.rows);
    }
    const tern_product_routes routes = routes_of(p, inputs_of(p)->routes.rows);
    show(p, shown, linear, 2, &routes);
    if (copies_rows(p)) {
        copy_rows(p, l->expert_gate.form | l->expert_up.form);
        n = use_choices(p, false, reads);
    } else {
        n = use_rows_of_layer(p, reads);
    }
    multiply_routed(p, products, 2, reads, n);
}

/* Rows with one row for each choice that this rank computes; own: in a worker's inputs. */
static tern_device_rows choice_rows(const pass *p, float *x, size_t stride, bool own) {
    const tern_part choices = own_choices(p);
    return (tern_device_rows){.data = x + choices.begin * stride,
                              .stride = stride,
                              .n = p->config->n_ff,
                              .rows = count_of(choices),
                              .own = own && is_own(p)};
}

static void watch_choices(pass *p, const tern_device_rows *x, tern_overflow_place place) {
    const tern_device_place *at = inputs_of(p)->routes.at + own_choices(p).begin;
    watch(p, (tern_device_watch){.x = *x, .group = 1, .limit = INFINITY, .at = at}, place);
}

/* The forms of choices, from the first that this rank computes on. */
static tern_device_quantized token_form(const tern_expert_inputs *e, const tern_expert_sizes *z,
                                        size_t first) {
    if (e->q == NULL)
        return (tern_device_quantized){.q = NULL};
    return (tern_device_quantized){.q = e->q + first * z->q_stride,
                                   .q_stride = z->q_stride,
                                   .s = e->s + first,
                                   .sum = e->sum + first};
}

static tern_device_quantized block_form(const tern_expert_inputs *e, const tern_expert_sizes *z,
                                        size_t first) {
    if (e->b == NULL)
        return (tern_device_quantized){.q = NULL};
    return (tern_device_quantized){.q = e->b + first * z->q_stride,
                                   .q_stride = z->q_stride,
                                   .d = e->d + first * z->blocks,
                                   .block_sum = e->block_sum + first * z->blocks,
                                   .d_stride = z->blocks};
}

/* x[choices][n_ff] = act(gate) * up, and the forms of it that down reads. */
static void activate_choices(pass *p, unsigned forms) {
    const tern_expert_inputs *e = inputs_of(p);
    const tern_expert_sizes *z = &p->s->expert_sizes;
    const size_t width = p->config->n_ff;
    const tern_device_rows g = choice_rows(p, p->s->experts.gate, width, false);
    const tern_device_rows u = choice_rows(p, p->s->experts.up, width, false);
    const tern_device_rows y = choice_rows(p, e->x, z->stride, true);
    const size_t first = own_choices(p).begin;
    const tern_device_quantized token = token_form(e, z, first);
    const tern_device_quantized block = block_form(e, z, first);
    if (y.rows == 0)
        return;
    if (p->config->gate == TERN_OP_GATE_RELU2) /* it turns a NaN into 0 */
        watch_choices(p, &g, TERN_OVERFLOW_GATE);
    keep(p, p->ops->gate(p->d, p->stream, p->config->gate, &g, &u, &y, error_of(p)));
    watch_choices(p, &y, TERN_OVERFLOW_ACTIVATION);
    make_forms(p, forms, &y, &token, &block);
}

static void multiply_down(pass *p, const tern_linear *down) {
    const tern_activations x = choice_activations(p, down);
    const tern_device_product shown =
        tern_product_of(down, &x, choices_of(p), p->s->experts.down, down->matrix.rows);
    routed product = {
        .linear = down, .x = x, .y = p->s->experts.down, .least = -INFINITY, .most = INFINITY};
    tern_lane_use reads[3];
    const tern_product_routes routes = routes_of(p, NULL);
    show(p, &shown, &down, 1, &routes);
    multiply_routed(p, &product, 1, reads, use_choices(p, false, reads));
}

/* Brings the results of all choices together: those of a rank's experts follow each other. */
static void join_choices(pass *p) {
    const tern_split *split = &p->model->split;
    const size_t width = p->config->n_embd;
    float *down = p->s->experts.down;
    const tern_lane_use uses[] = {
        tern_lane_use_all(down, choices_of(p) * width * sizeof *down, true),
        use_order(p, false),
    };
    if (!tern_split_is(split))
        return;
    tern_lane_enter(&p->lane, uses, 2);
    if (p->lane.worker.index == 0)
        keep(p, tern_runner_join_choices(p->runner, down, inputs_of(p)->routes.begins, width,
                                         error_of(p)));
}

/* y[n] = the weighted sum of the results of a row's k choices, in the order of the experts. */
static void mix_row(const float *down, const uint32_t *places, const float *weights, size_t k,
                    size_t n, float *y) {
    const float *first = down + places[0] * n;
    for (size_t i = 0; i < n; i++)
        y[i] = first[i] * weights[0];
    for (size_t j = 1; j < k; j++) {
        const float *next = down + places[j] * n;
        for (size_t i = 0; i < n; i++)
            y[i] += next[i] * weights[j];
    }
}

static void mix(pass *p) {
    const tern_routes *r = &inputs_of(p)->routes;
    const size_t k = p->config->n_used, n = p->config->n_embd;
    const tern_device_rows y = norm_rows(p, n);
    const float *down = p->s->experts.down;
    const tern_lane_use uses[] = {
        tern_lane_use_all(down, choices_of(p) * n * sizeof *down, false),
        use_input(p, r->ids, choices_of(p) * sizeof *r->ids, false),
        use_order(p, false),
        tern_lane_use_rows(&y, &y, true),
    };
    tern_lane_enter(&p->lane, uses, 4);
    const tern_part part = tern_lane_rows(&p->lane, &y);
    for (size_t t = part.begin; t < part.end; t++)
        mix_row(down, r->places + t * k, r->weights + t * k, k, n, y.data + t * y.stride);
}

void tern_experts_run(pass *p) {
    const tern_layer *l = &p->weights->layers[p->layer];
    const bool shared_expert = p->config->n_ff_shared > 0;
    stage(p, TERN_STAGE_GATE_UP);
    route(p, l);
    multiply_gate_up(p, l);
    if (shared_expert)
        tern_shared_expert_begin(p);
    stage(p, TERN_STAGE_ACTIVATION);
    activate_choices(p, l->expert_down.form);
    if (shared_expert)
        tern_shared_expert_activate(p);
    stage(p, TERN_STAGE_DOWN);
    multiply_down(p, &l->expert_down);
    join_choices(p);
    if (shared_expert)
        tern_shared_expert_end(p);
    stage(p, TERN_STAGE_NORM);
    mix(p);
    if (shared_expert)
        tern_shared_expert_add(p);
}
