/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plan/predict.h"

#include <math.h>

#include "tern/team.h"

/* ---- ways ------------------------------------------------------------------------------------ */

const char *plan_way_title(plan_way way) {
    static const char *const titles[] = {
#define PLAN_WAY_TITLE(id, name, title) title,
        PLAN_WAYS(PLAN_WAY_TITLE)
#undef PLAN_WAY_TITLE
    };
    return titles[way];
}

const char *plan_way_name(plan_way way) {
    static const char *const names[] = {
#define PLAN_WAY_NAME(id, name, title) name,
        PLAN_WAYS(PLAN_WAY_NAME)
#undef PLAN_WAY_NAME
    };
    return names[way];
}

bool plan_way_applies(plan_way way, const plan_machine *machine) {
    switch (way) {
    case PLAN_WAY_SOCKETS:
        return machine->sockets > 1;
    case PLAN_WAY_RANKS:
    case PLAN_WAY_REPLICAS:
        return machine->nodes > 1;
    default:
        return true;
    }
}

/* The ranks of a machine that compute one model. */
static uint32_t ranks_here(const plan_machine *machine, plan_way way) {
    return way == PLAN_WAY_PROCESS ? 1 : machine->sockets;
}

/* ---- what is divided ------------------------------------------------------------------------- */

/* The largest share of `items` that one of so many ranks has. */
static double largest_share(uint64_t items, uint32_t ranks) {
    return items == 0 ? 1.0 : (double)((items + ranks - 1) / ranks) / (double)items;
}

static uint64_t groups_of(uint64_t rows) {
    return (rows + TERN_ROW_GROUP - 1) / TERN_ROW_GROUP;
}

/* True for matrices of experts, and with them the router, which is small. */
static bool is_routed(const plan_model *m, plan_part part) {
    return m->n_expert > 0 && (part == PLAN_GATE_UP || part == PLAN_DOWN);
}

static double share_of(const plan_model *m, plan_part part, uint32_t ranks) {
    const uint64_t rows[] = {
        [PLAN_OUT] = m->n_embd,
        [PLAN_GATE_UP] = m->n_ff,
        [PLAN_DOWN] = m->n_embd,
        [PLAN_HEAD] = m->n_vocab,
    };
    if (part == PLAN_QKV)
        return largest_share(m->n_head_kv, ranks);
    return largest_share(is_routed(m, part) ? m->n_expert : groups_of(rows[part]), ranks);
}

/* Bytes in memory of the rank that has the most. */
static uint64_t kept_by_rank(const plan_model *m, uint32_t ranks) {
    double sum = 0.0;
    for (plan_part part = 0; part < PLAN_PARTS; part++)
        sum += (double)m->kept[part] * share_of(m, part, ranks);
    return (uint64_t)llround(sum) + m->whole;
}

/* The share of the experts of a token that the busiest rank has, if chance has spread them evenly.
 * It has one at least. */
static double share_of_used(const plan_model *m, uint32_t ranks) {
    return largest_share(m->n_used, ranks);
}

/* Bytes that the slowest rank reads for a token. */
static uint64_t read_by_rank(const plan_model *m, uint32_t ranks) {
    double sum = 0.0;
    for (plan_part part = 0; part < PLAN_PARTS; part++)
        sum += (double)m->read[part] *
               (is_routed(m, part) ? share_of_used(m, ranks) : share_of(m, part, ranks));
    return (uint64_t)llround(sum);
}

static uint64_t cache_of_rank(const plan_model *m, uint64_t position, uint32_t ranks) {
    return (uint64_t)llround((double)plan_cache_bytes(m, position) *
                             largest_share(m->n_head_kv, ranks));
}

/* Bytes of a sequence's states in a rank: each rank computes all of them. A token reads them and
 * writes them. */
static uint64_t states_moved(const plan_model *m) {
    return 2 * m->states;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Places where the threads of a rank meet: six a layer, and four around them (device/lane.h). */
static uint64_t meetings_of(const plan_model *m, uint32_t threads) {
    return threads > 1 ? 6 * (uint64_t)m->n_layer + 4 : 0;
}

uint32_t plan_messages(uint32_t ranks) {
    uint32_t messages = 0;
    while ((UINT64_C(1) << messages) < ranks)
        messages++;
    return messages;
}

/* Floats that a layer's gathers have for a token: results of attention, of its projection, and of
 * the activation and its projection, or of the experts that the token takes. */
static uint64_t layer_floats(const plan_model *m) {
    const uint64_t attended = (uint64_t)m->n_head * m->head_dim + m->n_embd;
    return attended + (m->n_expert > 0 ? (uint64_t)m->n_used * m->n_embd : m->n_ff + m->n_embd);
}

/* Counts the gathers of a pass and their bytes: those of layers, and an order, two bounds of
 * logits, and a digest. */
static void count_gathers(const plan_model *m, plan_figures *f) {
    const uint64_t bounds = 2 * (uint64_t)m->n_vocab;
    const uint64_t floats = f->sequences * (m->n_layer * layer_floats(m) + bounds);
    if (f->ranks == 1)
        return;
    f->gathers = (m->n_expert > 0 ? 3 : 4) * (uint64_t)m->n_layer + 4;
    f->gather_bytes = floats * sizeof(float) * (f->ranks - 1) / f->ranks;
}

static void time_gathers(const plan_machine *machine, plan_way way, plan_figures *f) {
    const uint32_t here = ranks_here(machine, way), machines = f->ranks / here;
    const double latency = plan_messages(machines) * machine->network_seconds +
                           plan_messages(here) * machine->near_seconds;
    f->latency_seconds = (double)f->gathers * latency;
    f->transfer_seconds =
        (double)f->gather_bytes / (machines > 1 ? machine->network_bytes : machine->near_bytes);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void weigh(const plan_model *m, const plan_machine *machine, plan_way way, uint64_t position,
                  plan_figures *f) {
    const uint64_t here = ranks_here(machine, way);
    const uint64_t weights = kept_by_rank(m, f->ranks);
    const uint64_t one = cache_of_rank(m, 1, f->ranks) * here * f->sequences;
    const uint64_t fixed = weights + f->sequences * m->states;
    const uint64_t room = machine->memory > here * fixed ? machine->memory - here * fixed : 0;
    f->memory = fixed + f->sequences * cache_of_rank(m, position, f->ranks);
    f->fits = machine->memory == 0 || here * f->memory <= machine->memory;
    if (m->window_layers == 0 && one > 0)
        f->most_context = room / one;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void time_pass(const plan_model *m, const plan_machine *machine, plan_way way,
                      plan_figures *f) {
    const uint32_t sockets = way == PLAN_WAY_PROCESS ? machine->sockets : 1;
    const uint32_t threads = machine->threads * sockets;
    const double products =
        2.0 * (double)m->multiplied * (double)f->sequences / (machine->tops * sockets * f->ranks);
    f->bus = machine->bus * sockets * machine->reach;
    f->read_seconds = (double)(f->weights + f->cache) / f->bus;
    f->product_seconds = fmax(0.0, products - (double)f->weights / f->bus);
    f->meetings = meetings_of(m, threads);
    f->meet_seconds = (double)f->meetings * machine->meet_seconds;
    time_gathers(machine, way, f);
    f->seconds = f->read_seconds + f->product_seconds + f->meet_seconds + f->latency_seconds +
                 f->transfer_seconds;
}

plan_figures plan_predict(const plan_model *m, const plan_machine *machine, plan_way way,
                          uint64_t position, uint64_t users) {
    const bool divided = way == PLAN_WAY_RANKS;
    plan_figures f = {
        .ranks = ranks_here(machine, way) * (divided ? machine->nodes : 1),
        .copies = way == PLAN_WAY_REPLICAS ? machine->nodes : 1,
    };
    f.sequences = (users + f.copies - 1) / f.copies;
    f.weights = read_by_rank(m, f.ranks);
    f.cache = f.sequences * (cache_of_rank(m, position, f.ranks) + states_moved(m));
    count_gathers(m, &f);
    time_pass(m, machine, way, &f);
    weigh(m, machine, way, position, &f);
    f.each = 1.0 / f.seconds;
    f.all = f.each * (double)users;
    return f;
}
