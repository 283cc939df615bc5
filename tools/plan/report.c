/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plan/report.h"

#include <inttypes.h>
#include <stdio.h>

#include "tools/cli/output.h"

static const char *const parts[PLAN_PARTS] = {
    [PLAN_QKV] = "qkv",   [PLAN_OUT] = "out",   [PLAN_GATE_UP] = "gate_up",
    [PLAN_DOWN] = "down", [PLAN_HEAD] = "head",
};

static double mb(uint64_t bytes) {
    return (double)bytes * 1e-6;
}

static double ms(double seconds) {
    return seconds * 1e3;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_model(const plan_report *r) {
    const plan_model *m = &r->model;
    out_print("model        %s: %u layers of %u, feed-forward %u, %u heads, %u key/value heads of "
              "%u, vocabulary %u\n",
              m->name, m->n_layer, m->n_embd, m->n_ff, m->n_head, m->n_head_kv, m->head_dim,
              m->n_vocab);
    if (m->n_expert > 0)
        out_print("experts      %u, of which a token takes %u\n", m->n_expert, m->n_used);
    out_print("a token reads\n");
    for (plan_part part = 0; part < PLAN_PARTS; part++)
        out_print("  %-10s %12.3f MB\n", parts[part], mb(m->read[part]));
    out_print("  %-10s %12.3f MB  after %" PRIu64 " tokens, %" PRIu64 " bytes a layer and token\n",
              "cache", mb(plan_cache_bytes(m, r->position)), r->position, m->row);
    if (m->states > 0)
        out_print("  %-10s %12.3f MB  and writes as much, whatever came before\n", "states",
                  mb(m->states));
    out_print("  %-10s %12.3f MB\n", "all",
              mb(plan_read_bytes(m) + plan_cache_bytes(m, r->position) + m->states));
}

static void print_machine(const plan_report *r) {
    const plan_machine *c = &r->machine;
    out_print("machines     %u of %u socket%s, %u thread%s each; memory of a socket %.1f GB/s, %s; "
              "decoding reaches %.2f of it\n",
              c->nodes, c->sockets, c->sockets > 1 ? "s" : "", c->threads,
              c->threads > 1 ? "s" : "", c->bus * 1e-9, r->measured ? "measured" : "as given",
              c->reach);
    out_print("             products of many tokens %.2f Tops a socket; a meeting of threads %.1f "
              "us\n",
              c->tops * 1e-12, c->meet_seconds * 1e6);
    out_print("             a message between ranks %.1f us and %.2f GB/s on one machine",
              c->near_seconds * 1e6, c->near_bytes * 1e-9);
    if (c->nodes > 1)
        out_print(", %.1f us and %.2f GB/s between machines", c->network_seconds * 1e6,
                  c->network_bytes * 1e-9);
    out_print("\n");
}

static void print_gathers(const plan_report *r, const plan_figures *f) {
    if (f->ranks == 1)
        return;
    out_print("  + %9.3f ms  %" PRIu64 " gathers, %.1f us each for messages one after the other\n",
              ms(f->latency_seconds), f->gathers, f->latency_seconds / (double)f->gathers * 1e6);
    out_print("  + %9.3f ms  %.3f MB that a rank receives, of %u layers\n", ms(f->transfer_seconds),
              mb(f->gather_bytes), r->model.n_layer);
}

static void print_memory(const plan_report *r, const plan_figures *f) {
    const uint64_t all =
        plan_kept_bytes(&r->model) +
        f->sequences * (plan_cache_bytes(&r->model, r->position) + r->model.states);
    out_print("  memory of a rank %.1f MB, %.2f of the whole", mb(f->memory),
              (double)f->memory / (double)all);
    if (!f->fits)
        out_print("; it does NOT fit a machine");
    else if (f->most_context > 0)
        out_print("; room for %" PRIu64 " positions a sequence", f->most_context);
    out_print("\n");
}

static void print_way(const plan_report *r, plan_way way) {
    const plan_figures f = plan_predict(&r->model, &r->machine, way, r->position, r->users);
    out_print("\n%s", plan_way_title(way));
    if (f.ranks > 1)
        out_print(", %u ranks", f.ranks);
    if (f.copies > 1)
        out_print(", %u copies", f.copies);
    if (r->users > 1)
        out_print(", %" PRIu64 " sequences in a pass", f.sequences);
    out_print("\n    %9.3f ms  %.3f MB of weights and %.3f MB of cache at %.1f GB/s\n",
              ms(f.read_seconds), mb(f.weights), mb(f.cache), f.bus * 1e-9);
    if (f.product_seconds > 0.0)
        out_print("  + %9.3f ms  products of %" PRIu64 " tokens take longer than their weights\n",
                  ms(f.product_seconds), f.sequences);
    if (f.meetings > 0)
        out_print("  + %9.3f ms  %" PRIu64 " meetings of threads\n", ms(f.meet_seconds),
                  f.meetings);
    print_gathers(r, &f);
    out_print("  = %9.3f ms  a token: %.2f tokens/s", ms(f.seconds), f.each);
    if (r->users > 1)
        out_print(" for each sequence, %.1f for all", f.all);
    out_print("\n");
    print_memory(r, &f);
}

/* The applicable way with the most tokens a second, of those whose memory suffices; COUNT: none. */
static plan_way best(const plan_report *r, bool of_each) {
    plan_way found = PLAN_WAY_COUNT;
    double most = 0.0;
    for (plan_way way = 0; way < PLAN_WAY_COUNT; way++) {
        if (!plan_way_applies(way, &r->machine))
            continue;
        const plan_figures f = plan_predict(&r->model, &r->machine, way, r->position, r->users);
        const double rate = of_each ? f.each : f.all;
        if (f.fits && rate > most) {
            most = rate;
            found = way;
        }
    }
    return found;
}

static void print_advice(const plan_report *r) {
    const plan_way each = best(r, true), all = best(r, false);
    if (each == PLAN_WAY_COUNT) {
        out_print("\nadvice       more machines, or more memory: no way fits\n");
        return;
    }
    out_print("\nadvice       the fastest answer to one: %s", plan_way_title(each));
    if (r->machine.nodes > 1)
        out_print("; the most tokens a second for %" PRIu64 ": %s", r->users, plan_way_title(all));
    out_print("\n");
}

void plan_print(const plan_report *r) {
    print_model(r);
    print_machine(r);
    for (plan_way way = 0; way < PLAN_WAY_COUNT; way++)
        if (plan_way_applies(way, &r->machine))
            print_way(r, way);
    print_advice(r);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *number(uint64_t n) {
    return json_integer((json_int_t)n);
}

static json_t *model_json(const plan_report *r) {
    const plan_model *m = &r->model;
    json_t *read = json_object();
    for (plan_part part = 0; part < PLAN_PARTS; part++)
        json_object_set_new(read, parts[part], number(m->read[part]));
    json_object_set_new(read, "cache", number(plan_cache_bytes(m, r->position)));
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", json_string(m->name), "reads", read,
                     "weight_bytes", number(plan_kept_bytes(m)), "cache_bytes_per_position",
                     number(plan_cache_bytes(m, 1)), "state_bytes", number(m->states));
}

static json_t *machine_json(const plan_report *r) {
    const plan_machine *c = &r->machine;
    return json_pack("{s:i, s:i, s:i, s:f, s:b, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "nodes",
                     (int)c->nodes, "sockets", (int)c->sockets, "threads", (int)c->threads,
                     "bus_gbs", c->bus * 1e-9, "measured", r->measured, "reach", c->reach, "tops",
                     c->tops * 1e-12, "meeting_us", c->meet_seconds * 1e6, "network_us",
                     c->network_seconds * 1e6, "network_gbs", c->network_bytes * 1e-9, "near_us",
                     c->near_seconds * 1e6, "near_gbs", c->near_bytes * 1e-9, "memory",
                     number(c->memory));
}

static json_t *way_json(const plan_report *r, plan_way way) {
    const plan_figures f = plan_predict(&r->model, &r->machine, way, r->position, r->users);
    json_t *times = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "read", f.read_seconds, "products",
                              f.product_seconds, "meetings", f.meet_seconds, "latency",
                              f.latency_seconds, "transfer", f.transfer_seconds, "all", f.seconds);
    return json_pack("{s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:o, s:o, s:b}",
                     "way", plan_way_name(way), "ranks", (int)f.ranks, "copies", (int)f.copies,
                     "sequences", number(f.sequences), "weights", number(f.weights), "cache",
                     number(f.cache), "meetings", number(f.meetings), "gathers", number(f.gathers),
                     "gather_bytes", number(f.gather_bytes), "seconds", times, "tokens_per_second",
                     f.each, "tokens_per_second_of_all", f.all, "rank_bytes", number(f.memory),
                     "most_context", number(f.most_context), "fits", f.fits);
}

json_t *plan_json(const plan_report *r) {
    json_t *ways = json_array();
    for (plan_way way = 0; way < PLAN_WAY_COUNT; way++)
        if (plan_way_applies(way, &r->machine))
            json_array_append_new(ways, way_json(r, way));
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "model", model_json(r), "machine",
                     machine_json(r), "context", number(r->position), "users", number(r->users),
                     "ways", ways);
}
