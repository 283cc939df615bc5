/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/engine/forward/shared_expert.h"

#include "kernels/delta.h"
#include "runtime/engine/forward/pass.h"

void tern_shared_expert_begin(pass *p) {
    const tern_layer *l = &p->weights->layers[p->layer];
    const tern_scratch *s = p->s;
    const tern_device_rows gates = shared(p, s->shared_gate, 1, 1);
    multiply(p, (const map[]){map_of(&l->shared_router, p->rows, s->shared_gate)}, 1);
    multiply(p,
             (const map[]){map_of(&l->shared_gate, p->rows, s->gate),
                           map_of(&l->shared_up, p->rows, s->up)},
             2);
    watch_below(p, &gates, 1, p->rows.begin, INFINITY, TERN_OVERFLOW_ROUTER);
}

void tern_shared_expert_activate(pass *p) {
    const tern_layer *l = &p->weights->layers[p->layer];
    const tern_op op = p->config->gate;
    const size_t width = p->config->n_ff_shared;
    const tern_device_rows g = shared(p, p->s->gate, width, width);
    const tern_device_rows u = shared(p, p->s->up, width, width);
    const tern_device_rows y = norm_rows(p, width);
    if (op == TERN_OP_GATE_RELU2) /* it turns a NaN into 0 */
        watch_below(p, &g, 1, p->rows.begin, INFINITY, TERN_OVERFLOW_GATE);
    keep(p, p->ops->gate(p->d, p->stream, op, &g, &u, &y, error_of(p)));
    watch_below(p, &y, 1, p->rows.begin, INFINITY, TERN_OVERFLOW_ACTIVATION);
    quantize(p, width, (wanted){.forms = l->shared_down.form});
}

void tern_shared_expert_end(pass *p) {
    const tern_layer *l = &p->weights->layers[p->layer];
    multiply(p, (const map[]){map_of(&l->shared_down, p->rows, p->s->out)}, 1);
    join(p, p->s->out, p->config->n_embd, TERN_SPLIT_EMBD);
}

void tern_shared_expert_add(pass *p) {
    const size_t n = p->config->n_embd;
    const tern_device_rows y = norm_rows(p, n), x = shared(p, p->s->out, n, n);
    const tern_device_rows gates = shared(p, p->s->shared_gate, 1, 1);
    const tern_lane_use uses[] = {tern_lane_use_rows(&gates, &y, false),
                                  tern_lane_use_rows(&x, &y, false),
                                  tern_lane_use_rows(&y, &y, true)};
    tern_lane_enter(&p->lane, uses, 3);
    const tern_part part = tern_lane_rows(&p->lane, &y);
    for (size_t t = part.begin; t < part.end; t++) {
        const float gate = tern_logistic(gates.data[t * gates.stride]);
        const float *from = x.data + t * x.stride;
        float *to = y.data + t * y.stride;
        for (size_t i = 0; i < n; i++)
            to[i] += from[i] * gate;
    }
}
