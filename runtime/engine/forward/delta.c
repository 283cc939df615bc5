/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/engine/forward/delta.h"

#include <string.h>

#include "kernels/delta.h"
#include "runtime/engine/forward/pass.h"

enum { MOST_TAPS = 16 };

/* True if one matrix makes alpha and beta: for each head of q and k beta of its states, then alpha
 * of them, all of which are in s->alpha then. */
static bool joins_rates(const tern_config *c) {
    return (c->arch->has & TERN_HAS_JOINED_RATES) != 0;
}

tern_delta_scratch tern_delta_lay_out(const tern_config *c, size_t rows, tern_taker *t) {
    const tern_delta_sizes *d = &c->delta;
    const size_t channels = tern_taker_times(t, rows, tern_delta_channels(d));
    const size_t inner = tern_taker_times(t, rows, tern_delta_inner(d));
    const size_t states = tern_taker_times(t, rows, d->n_states);
    tern_delta_scratch s = {.mixed = NULL};
    if (tern_config_delta_layers(c) == 0)
        return s;
    s.mixed = tern_take(t, channels, sizeof *s.mixed);
    s.channels = tern_take(t, channels, sizeof *s.channels);
    s.z = tern_take(t, inner, sizeof *s.z);
    s.alpha = tern_take(t, tern_taker_times(t, states, joins_rates(c) ? 2 : 1), sizeof *s.alpha);
    s.beta = tern_take(t, states, sizeof *s.beta);
    s.read = tern_take(t, inner, sizeof *s.read);
    return s;
}

/* ---- memory of a pass ------------------------------------------------------------------------ */

/* A use of what any lane may have of all rows, `width` floats each. */
static tern_lane_use use_rows(const pass *p, const float *x, size_t width, bool writes) {
    return tern_lane_use_all(x, p->batch->n * width * sizeof *x, writes);
}

static tern_lane_use use_states(const pass *p, bool writes) {
    const tern_pool *pool = p->batch->pool;
    return tern_lane_use_all(pool->states,
                             pool->n_states * pool->state_stride * sizeof *pool->states, writes);
}

/* The row of token `i` of a span. */
static size_t row_of(const tern_batch *b, size_t span, size_t i) {
    const size_t before = b->spans[span].n - b->spans[span].wanted;
    return i < before ? b->rows[span].first + i : b->rows[span].first_wanted + (i - before);
}

static float *state_of(const pass *p, size_t span) {
    return tern_pool_state(p->batch->pool, p->batch->spans[span].state, (uint32_t)p->layer);
}

void tern_delta_begin(pass *p) {
    const tern_pool *pool = p->batch->pool;
    const size_t layers = tern_config_delta_layers(p->config);
    const size_t each = layers > 0 ? pool->state_stride / layers : 0;
    if (layers == 0)
        return;
    const tern_lane_use use = use_states(p, true);
    tern_lane_enter(&p->lane, &use, 1);
    const tern_part part = tern_lane_part(&p->lane, p->batch->n_spans * layers);
    for (size_t i = part.begin; i < part.end; i++) {
        const tern_pass_span *span = &p->batch->spans[i / layers];
        if (span->position == 0)
            memset(pool->states + span->state * pool->state_stride + i % layers * each, 0,
                   each * sizeof *pool->states);
    }
}

/* ---- products -------------------------------------------------------------------------------- */

unsigned tern_delta_forms(const tern_layer *l) {
    return l->mixed.form | l->z.form | l->alpha.form | l->beta.form | l->rates.form;
}

static void watch_rows(pass *p, float *x, size_t width) {
    const tern_device_rows rows = {.data = x, .stride = width, .n = width, .rows = p->batch->n};
    watch_below(p, &rows, 1, 0, INFINITY, TERN_OVERFLOW_QUERY);
}

/* All rows change the states; gates are needed where results are. */
static void multiply_inputs(pass *p, const tern_layer *l) {
    const tern_delta_scratch *s = &p->s->delta;
    const tern_part all = {0, p->batch->n};
    multiply(p, (const map[]){own_map(&l->mixed, all, s->mixed), own_map(&l->z, p->rows, s->z)}, 2);
    if (joins_rates(p->config)) {
        multiply(p, (const map[]){own_map(&l->rates, all, s->alpha)}, 1);
        watch_rows(p, s->alpha, 2 * (size_t)p->config->delta.n_states);
        return;
    }
    multiply(p, (const map[]){own_map(&l->alpha, all, s->alpha), own_map(&l->beta, all, s->beta)},
             2);
    watch_rows(p, s->alpha, p->config->delta.n_states); /* rates hide what is not finite */
    watch_rows(p, s->beta, p->config->delta.n_states);
}

/* ---- the convolution ------------------------------------------------------------------------- */

/* Convolves one head's channels of a row, and norms those of q and k. */
static void convolve(const pass *p, const tern_layer *l, size_t row, size_t head) {
    const tern_delta_sizes *d = &p->config->delta;
    const size_t channels = tern_delta_channels(d), first = head * d->state_dim;
    const tern_device_place at = p->batch->at[row];
    const size_t token = at.position - p->batch->spans[at.sequence].position;
    const float *history = state_of(p, at.sequence);
    const float *rows[MOST_TAPS];
    float *y = p->s->delta.channels + row * channels + first;
    for (size_t t = 0; t < d->n_taps; t++) {
        const size_t back = d->n_taps - 1 - t; /* positions before this one */
        const float *from =
            token >= back
                ? p->s->delta.mixed + row_of(p->batch, at.sequence, token - back) * channels
                : history + (token + t) * channels;
        rows[t] = from + first;
    }
    tern_delta_convolve(rows, l->taps + first * d->n_taps, d->n_taps, d->state_dim, y);
    if (head < d->n_keys)
        tern_delta_unit(y, d->state_dim, 1.0f / sqrtf((float)d->state_dim));
    else if (head < 2 * (size_t)d->n_keys)
        tern_delta_unit(y, d->state_dim, 1.0f);
}

static void convolve_all(pass *p, const tern_layer *l) {
    const tern_delta_sizes *d = &p->config->delta;
    const size_t channels = tern_delta_channels(d), heads = channels / d->state_dim;
    const tern_lane_use uses[] = {use_rows(p, p->s->delta.mixed, channels, false),
                                  use_states(p, false),
                                  use_rows(p, p->s->delta.channels, channels, true)};
    tern_lane_enter(&p->lane, uses, 3);
    const tern_part part = tern_lane_part(&p->lane, p->batch->n * heads);
    for (size_t i = part.begin; i < part.end; i++)
        convolve(p, l, i / heads, i % heads);
}

/* ---- the states ------------------------------------------------------------------------------ */

/* Keeps the last rows of some channels for the next pass. */
static void keep_history(const pass *p, size_t span, size_t head) {
    const tern_delta_sizes *d = &p->config->delta;
    const size_t channels = tern_delta_channels(d), first = head * d->state_dim;
    const size_t kept = d->n_taps - 1, n = p->batch->spans[span].n;
    float *history = state_of(p, span);
    for (size_t t = 0; t < kept; t++) { /* from n + t - kept, counted from the span's first token */
        const float *from =
            n + t >= kept ? p->s->delta.mixed + row_of(p->batch, span, n + t - kept) * channels
                          : history + (t + n) * channels;
        memcpy(history + t * channels + first, from + first, d->state_dim * sizeof *history);
    }
}

/* The decay and the change of a state by a token. */
static tern_delta_rates rates_of(const pass *p, const tern_layer *l, size_t row, size_t state) {
    const tern_delta_sizes *d = &p->config->delta;
    const tern_delta_scratch *s = &p->s->delta;
    const size_t of = d->n_states / d->n_keys, at = state / of * 2 * of + state % of;
    const float *joined = s->alpha + row * 2 * d->n_states + at; /* beta, and `of` later alpha */
    const bool joins = joins_rates(p->config);
    return tern_delta_rates_of(joins ? joined[of] : s->alpha[row * d->n_states + state],
                               joins ? joined[0] : s->beta[row * d->n_states + state],
                               l->rate_bias[state], l->rate[state]);
}

/* Moves one state of a span on, token by token. */
static void move_on(const pass *p, const tern_layer *l, size_t span, size_t state) {
    const tern_delta_sizes *d = &p->config->delta;
    const tern_delta_scratch *s = &p->s->delta;
    const size_t channels = tern_delta_channels(d), dim = d->state_dim,
                 key = tern_delta_key_of(d, state);
    float *matrix = state_of(p, span) + tern_pool_history_floats(d) + state * dim * dim;
    for (size_t i = 0; i < p->batch->spans[span].n; i++) {
        const size_t row = row_of(p->batch, span, i);
        const float *q = s->channels + row * channels;
        const tern_delta_token token = {.q = q + key * dim,
                                        .k = q + (d->n_keys + key) * dim,
                                        .v = q + (2 * d->n_keys + state) * dim,
                                        .rates = rates_of(p, l, row, state)};
        tern_delta_step(matrix, dim, &token, s->read + (row * d->n_states + state) * dim);
    }
}

static void move_all_on(pass *p, const tern_layer *l) {
    const tern_delta_sizes *d = &p->config->delta;
    const tern_delta_scratch *s = &p->s->delta;
    const size_t channels = tern_delta_channels(d), heads = channels / d->state_dim;
    const bool joins = joins_rates(p->config);
    const tern_lane_use uses[] = {use_rows(p, s->channels, channels, false),
                                  use_rows(p, s->mixed, channels, false),
                                  use_rows(p, s->alpha, d->n_states * (joins ? 2 : 1), false),
                                  use_rows(p, s->beta, joins ? 0 : d->n_states, false),
                                  use_states(p, true),
                                  use_rows(p, s->read, tern_delta_inner(d), true)};
    tern_lane_enter(&p->lane, uses, sizeof uses / sizeof *uses);
    const tern_part states = tern_lane_part(&p->lane, p->batch->n_spans * d->n_states);
    for (size_t i = states.begin; i < states.end; i++)
        move_on(p, l, i / d->n_states, i % d->n_states);
    const tern_part kept = tern_lane_part(&p->lane, p->batch->n_spans * heads);
    for (size_t i = kept.begin; i < kept.end; i++)
        keep_history(p, i / heads, i % heads);
}

/* ---- results --------------------------------------------------------------------------------- */

/* norm[T][inner] of what was read: each state's part normed, times the gates' silu. */
static void gate_read(pass *p, const tern_layer *l) {
    const tern_delta_sizes *d = &p->config->delta;
    const size_t inner = tern_delta_inner(d);
    const tern_device_rows read = shared(p, p->s->delta.read, inner, inner);
    const tern_device_rows z = shared(p, p->s->delta.z, inner, inner);
    const tern_device_rows y = norm_rows(p, inner);
    const tern_device_rows states = {.data = read.data,
                                     .stride = d->state_dim,
                                     .n = d->state_dim,
                                     .rows = read.rows * d->n_states};
    watch_squares(p, &states, d->n_states, p->rows.begin, TERN_OVERFLOW_ATTENTION);
    keep(p, p->ops->rmsnorm(p->d, p->stream, &states, l->delta_norm, p->config->norm_eps, &states,
                            error_of(p)));
    keep(p, p->ops->gate(p->d, p->stream, TERN_OP_GATE_SILU, &z, &read, &y, error_of(p)));
    watch_below(p, &y, 1, p->rows.begin, INFINITY, TERN_OVERFLOW_ATTENTION);
    quantize(p, inner, wanted_of(p, p->layer, TERN_BLOCK_OUT, l->delta_out.form));
}

void tern_delta_run(pass *p) {
    const tern_layer *l = &p->weights->layers[p->layer];
    stage(p, TERN_STAGE_QKV);
    multiply_inputs(p, l);
    stage(p, TERN_STAGE_ROPE);
    convolve_all(p, l);
    stage(p, TERN_STAGE_ATTENTION);
    move_all_on(p, l);
    if (count_of(p->rows) == 0)
        return;
    stage(p, TERN_STAGE_ATTENDED);
    gate_read(p, l);
    stage(p, TERN_STAGE_OUT);
    multiply(p, (const map[]){map_of(&l->delta_out, p->rows, p->s->out)}, 1);
}

/* ---- gates beside queries -------------------------------------------------------------------- */

/* Each query head of p->rows, or its gate, as a row. */
static tern_device_rows queries(const pass *p, bool gates) {
    const size_t dim = p->config->head_dim, heads = p->config->n_head;
    return (tern_device_rows){.data = p->s->gated_q + 2 * p->rows.begin * heads * dim +
                                      (gates ? dim : 0),
                              .stride = 2 * dim,
                              .n = dim,
                              .rows = count_of(p->rows) * heads};
}

void tern_queries_take(pass *p) {
    const size_t dim = p->config->head_dim, heads = p->config->n_head;
    const tern_device_rows from = queries(p, false);
    const tern_device_rows to = {
        .data = p->s->q + p->rows.begin * heads * dim, .stride = dim, .n = dim, .rows = from.rows};
    if (from.rows > 0)
        keep(p, p->ops->copy(p->d, p->stream, &from, &to, error_of(p)));
}

void tern_queries_gate(pass *p) {
    const size_t dim = p->config->head_dim, heads = p->config->n_head;
    const tern_device_rows gates = queries(p, true);
    const tern_device_rows x = {.data = p->s->attended + p->rows.begin * heads * dim,
                                .stride = dim,
                                .n = dim,
                                .rows = gates.rows};
    const tern_lane_use uses[] = {tern_lane_use_rows(&gates, &x, false),
                                  tern_lane_use_rows(&x, &x, true)};
    watch_below(p, &gates, heads, p->rows.begin, INFINITY, TERN_OVERFLOW_QUERY);
    tern_lane_enter(&p->lane, uses, 2);
    const tern_part part = tern_lane_rows(&p->lane, &x);
    for (size_t i = part.begin; i < part.end; i++)
        tern_delta_gate(x.data + i * x.stride, gates.data + i * gates.stride, dim);
}
