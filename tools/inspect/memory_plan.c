/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/inspect/memory_plan.h"

#include <stdio.h>

#include "base/metrics.h"
#include "tools/cli/kv_layers.h"
#include "tools/cli/output.h"

tern_status memory_plan_make(const tern_model *model, const tern_session_params *params,
                             uint64_t in_place, memory_plan *plan, tern_error *err) {
    uint64_t session = 0;
    tern_session_cache_size cache = {.bytes = 0};
    tern_status status = tern_session_bytes(model, params, &session, err);
    if (status == TERN_OK)
        status = tern_session_cache_bytes(model, params, &cache, err);
    if (status != TERN_OK)
        return status;
    tern_model_info info;
    tern_model_describe(model, &info);
    const kept_layers kept = kept_layers_of(model, params->kv);
    const uint32_t n_ctx = params->n_ctx > 0 ? params->n_ctx : tern_model_default_context(model);
    *plan = (memory_plan){.file = info.file_bytes,
                          .in_place = in_place,
                          .packed = info.packed_bytes,
                          .kv = cache.bytes - kept.states,
                          .states = kept.states,
                          .n_delta = kept.deltas,
                          .cache = cache,
                          .scratch = session - cache.bytes,
                          .replicas = info.replicas * info.replica_bytes,
                          .replica = info.replica_bytes,
                          .n_replicas = info.replicas,
                          .needed = in_place + info.packed_bytes + session +
                                    info.replicas * info.replica_bytes,
                          .available = tern_memory_available(),
                          .n_ctx = n_ctx,
                          .kv_format = params->kv};
    return TERN_OK;
}

bool memory_plan_fits(const memory_plan *plan) {
    return plan->available == 0 || plan->needed <= plan->available;
}

static void print_line(const char *title, uint64_t bytes, const char *what) {
    out_print("%-12s %10.1f MiB  %s\n", title, (double)bytes / 1048576.0, what);
}

/* A row of the cache: the keys or values of a head at one position, as "128 x 2 bytes". */
static void describe_row(const memory_plan *plan, uint32_t head_dim, char *text, size_t size) {
    const tern_format_info *f = tern_format_describe(plan->kv_format);
    const unsigned bytes = (unsigned)f->block_bytes;
    if (f->block_elements == 1) {
        (void)snprintf(text, size, "%u x %u bytes", head_dim, bytes);
        return;
    }
    const unsigned elements = (unsigned)f->block_elements;
    (void)snprintf(text, size, "%u blocks of %u bytes", (head_dim + elements - 1) / elements,
                   bytes);
}

/*
 * "30 layers x 5 heads x 4096 positions"; for layers with a window, the positions that they keep.
 */
static void describe_positions(const tern_session_cache_size *c, uint32_t heads, char *text,
                               size_t size) {
    if (c->window_layers == 0)
        (void)snprintf(text, size, "%u layers x %u heads x %u positions", c->layers, heads,
                       c->positions);
    else
        (void)snprintf(text, size, "(%u layers x %u positions + %u with a window x %u) x %u heads",
                       c->layers, c->positions, c->window_layers, c->window_positions, heads);
}

static void print_replicas(const memory_plan *plan) {
    char text[128];
    if (plan->n_replicas > 0) {
        (void)snprintf(text, sizeof text, "copies of hot weights, %.1f MiB on each of %u nodes",
                       (double)plan->replica / 1048576.0, plan->n_replicas);
        print_line("", plan->replicas, text);
    } else if (plan->no_replicas != NULL) {
        (void)snprintf(text, sizeof text, "copies of hot weights: none, %s", plan->no_replicas);
        print_line("", 0, text);
    }
}

void memory_plan_print(const memory_plan *plan, const tern_model_info *m) {
    char row[64], positions[128], text[256];
    (void)snprintf(text, sizeof text, "model file, mapped; %.1f MiB of it stay in use, as floats",
                   (double)plan->in_place / 1048576.0);
    print_line("memory", plan->file, text);
    print_line("", plan->packed, "weights packed for this processor");
    print_replicas(plan);
    describe_row(plan, m->head_dim, row, sizeof row);
    describe_positions(&plan->cache, m->n_head_kv, positions, sizeof positions);
    (void)snprintf(text, sizeof text, "key/value cache in %s: 2 x %s x %s",
                   tern_format_describe(plan->kv_format)->name, positions, row);
    print_line("", plan->kv, text);
    if (plan->n_delta > 0) {
        (void)snprintf(text, sizeof text, "states of %u gated delta nets, of any context",
                       plan->n_delta);
        print_line("", plan->states, text);
    }
    print_line("", plan->scratch, "scratch, and the tokens");
    print_line("", plan->needed,
               plan->n_replicas > 0 ? "needed: floats of the file, packed weights and copies, "
                                      "cache, scratch"
                                    : "needed: floats of the file, packed weights, cache, scratch");
    if (plan->available > 0)
        print_line("", plan->available, "available here and now");
    if (!memory_plan_fits(plan)) {
        print_line("warning", plan->needed - plan->available,
                   "are missing: this model would make the machine swap, or be ended by it");
    }
}

json_t *memory_plan_json(const memory_plan *p) {
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:i, s:I, s:I, s:I, s:I, s:I, s:i, s:s, s:b}", "file",
        (json_int_t)p->file, "in_place", (json_int_t)p->in_place, "packed", (json_int_t)p->packed,
        "replicas_bytes", (json_int_t)p->replicas, "replicas", (int)p->n_replicas, "kv_cache",
        (json_int_t)p->kv, "states", (json_int_t)p->states, "scratch", (json_int_t)p->scratch,
        "needed", (json_int_t)p->needed, "available", (json_int_t)p->available, "n_ctx",
        (int)p->n_ctx, "kv", tern_format_describe(p->kv_format)->name, "fits", memory_plan_fits(p));
}
