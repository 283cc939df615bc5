/* SPDX-License-Identifier: Apache-2.0 */

#include "threads/placement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tern_affinity_name(tern_affinity affinity) {
    static const char *const names[] = {"auto", "none", "compact", "scatter"};
    return names[affinity];
}

void tern_numa_name(const tern_places *wish, char *text, size_t size) {
    static const char *const names[] = {"none", "interleave", "node", "strict"};
    if (wish->numa == TERN_NUMA_NODE)
        (void)snprintf(text, size, "node:%u", wish->node);
    else
        (void)snprintf(text, size, "%s", names[wish->numa]);
}

bool tern_numa_parse(const char *text, tern_places *out) {
    static const char node[] = "node:";
    if (strcmp(text, "none") == 0) {
        out->numa = TERN_NUMA_NONE;
    } else if (strcmp(text, "interleave") == 0) {
        out->numa = TERN_NUMA_INTERLEAVE;
    } else if (strcmp(text, "strict") == 0) {
        out->numa = TERN_NUMA_STRICT;
    } else {
        const char *digits = text + sizeof node - 1;
        if (strncmp(text, node, sizeof node - 1) != 0 || digits[0] < '0' || digits[0] > '9')
            return false;
        char *end;
        errno = 0;
        const unsigned long number = strtoul(digits, &end, 10);
        if (errno != 0 || *end != '\0' || number > UINT32_MAX)
            return false;
        out->numa = TERN_NUMA_NODE;
        out->node = (uint32_t)number;
    }
    return true;
}

uint32_t tern_find_node(const tern_topology *t, uint32_t os) {
    uint32_t node = 0;
    while (node < t->n_nodes && t->node_os[node] != os)
        node++;
    return node;
}

/* The system's numbers of the nodes: "0, 1". */
typedef struct node_list {
    char text[96];
} node_list;

static node_list node_numbers(const tern_topology *t) {
    node_list list = {.text = ""};
    size_t used = 0;
    for (uint32_t i = 0; i < t->n_nodes && used < sizeof list.text; i++) {
        const int n = snprintf(list.text + used, sizeof list.text - used, "%s%u", i > 0 ? ", " : "",
                               t->node_os[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    return list;
}

tern_status tern_places_check(const tern_topology *t, const tern_places *wish, tern_error *err) {
    char numa[32];
    if ((unsigned)wish->affinity > TERN_AFFINITY_SCATTER || (unsigned)wish->numa > TERN_NUMA_STRICT)
        return tern_fail(err, TERN_ERR_ARG, "places: %d, %d are not an affinity and a NUMA policy",
                         (int)wish->affinity, (int)wish->numa);
    tern_numa_name(wish, numa, sizeof numa);
    if (!tern_topology_supported() && wish->affinity > TERN_AFFINITY_NONE)
        return tern_fail(err, TERN_ERR_PLACES, "affinity %s: this tern was built without hwloc",
                         tern_affinity_name(wish->affinity));
    if (!tern_topology_supported() && wish->numa != TERN_NUMA_NONE)
        return tern_fail(err, TERN_ERR_PLACES, "numa %s: this tern was built without hwloc", numa);
    if (wish->numa == TERN_NUMA_STRICT && wish->affinity == TERN_AFFINITY_NONE)
        return tern_fail(err, TERN_ERR_ARG,
                         "numa strict: threads without an affinity have no node of their own");
    if (wish->numa == TERN_NUMA_NODE && tern_find_node(t, wish->node) == t->n_nodes)
        return tern_fail(err, TERN_ERR_PLACES, "numa %s: this machine has %u node%s: %s", numa,
                         t->n_nodes, t->n_nodes == 1 ? "" : "s", node_numbers(t).text);
    return TERN_OK;
}

/* ---- choosing processors --------------------------------------------------------------------- */

typedef struct candidate {
    uint32_t processor;
    uint32_t sibling; /* these decide, in this order */
    uint32_t slowness;
    uint32_t turn;
} candidate;

static int compare_candidates(const void *left, const void *right) {
    const candidate *a = left;
    const candidate *b = right;
    const uint32_t as[] = {a->sibling, a->slowness, a->turn, a->processor};
    const uint32_t bs[] = {b->sibling, b->slowness, b->turn, b->processor};
    for (size_t i = 0; i < sizeof as / sizeof *as; i++)
        if (as[i] != bs[i])
            return as[i] < bs[i] ? -1 : 1;
    return 0;
}

/* How many earlier processors of the same node, speed and sibling number there are. */
static uint32_t turn_of(const tern_topology *t, uint32_t index) {
    const tern_processor *p = &t->processors[index];
    uint32_t turn = 0;
    for (uint32_t i = index; i-- > 0;) {
        const tern_processor *q = &t->processors[i];
        if (q->node != p->node || q->speed != p->speed)
            break;
        turn += q->sibling == p->sibling;
    }
    return turn;
}

/*
 * Candidates in the order in which threads take them: compact goes through them in the topology's
 * order, the others let nodes take turns and leave slow cores for the end.
 */
static uint32_t list_candidates(const tern_topology *t, const tern_places *wish, candidate *list) {
    const bool one_node = wish->numa == TERN_NUMA_NODE;
    const uint32_t node = one_node ? tern_find_node(t, wish->node) : 0;
    const bool compact = wish->affinity == TERN_AFFINITY_COMPACT;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        const tern_processor *p = &t->processors[i];
        if (one_node && p->node != node)
            continue;
        list[n++] = (candidate){.processor = i,
                                .sibling = p->sibling,
                                .slowness = compact ? 0 : TERN_FULL_SPEED - p->speed,
                                .turn = compact ? 0 : turn_of(t, i)};
    }
    qsort(list, n, sizeof *list, compare_candidates);
    return n;
}

/* ---- from processors to places --------------------------------------------------------------- */

static bool same_class(const tern_processor *a, const tern_processor *b) {
    return a->node == b->node && a->speed == b->speed;
}

static bool same_core(const tern_processor *a, const tern_processor *b) {
    return a->core == b->core;
}

/* The run of processors around `index` that are alike. */
static tern_place run_around(const tern_topology *t, uint32_t index,
                             bool (*alike)(const tern_processor *, const tern_processor *)) {
    const tern_processor *p = &t->processors[index];
    tern_place place = {.first = index, .end = index + 1, .socket = p->socket, .node = p->node};
    while (place.first > 0 && alike(p, &t->processors[place.first - 1]))
        place.first--;
    while (place.end < t->n && alike(p, &t->processors[place.end]))
        place.end++;
    return place;
}

/* The place of a thread that was given a processor, when `crowded`, more threads than cores. */
static tern_place place_of(const tern_topology *t, const tern_places *wish, uint32_t processor,
                           bool crowded) {
    const tern_processor *p = &t->processors[processor];
    const bool choice = t->n_classes > 1;
    if (wish->affinity == TERN_AFFINITY_NONE || (wish->affinity == TERN_AFFINITY_AUTO && !choice))
        return (tern_place){.first = 0, .end = 0};
    if (wish->affinity == TERN_AFFINITY_AUTO)
        return run_around(t, processor, same_class);
    if (!crowded)
        return run_around(t, processor, same_core);
    return (tern_place){.first = processor, .end = processor + 1, p->socket, p->node};
}

/* Threads on one core share its speed; those that may run anywhere share everything. */
static void share_work(const tern_topology *t, const uint32_t *threads_on_core,
                       const uint32_t *processors, uint32_t threads, tern_place *places) {
    for (uint32_t i = 0; i < threads; i++) {
        const tern_processor *p = &t->processors[processors[i]];
        const bool bound = places[i].first < places[i].end;
        const uint32_t share = bound ? p->speed / threads_on_core[p->core] : TERN_FULL_SPEED;
        places[i].share = share > 0 ? share : 1;
    }
}

static int compare_indices(const void *left, const void *right) {
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static uint32_t highest_core(const tern_topology *t) {
    uint32_t highest = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->processors[i].core > highest)
            highest = t->processors[i].core;
    return highest;
}

tern_status tern_place_threads(const tern_topology *t, const tern_places *wish, uint32_t threads,
                               tern_place *places, tern_error *err) {
    candidate *list = malloc(t->n * sizeof *list);
    uint32_t *chosen = malloc(threads * sizeof *chosen);
    uint32_t *on_core = calloc((size_t)highest_core(t) + 1, sizeof *on_core);
    tern_status status = TERN_OK;
    const uint32_t n = list != NULL ? list_candidates(t, wish, list) : 0;
    if (list == NULL || chosen == NULL || on_core == NULL) {
        status = tern_fail(err, TERN_ERR_NOMEM, "no memory to place %u threads", threads);
    } else if (n == 0) { /* a node of memory alone: threads stay where they are */
        for (uint32_t i = 0; i < threads; i++)
            places[i] = (tern_place){.share = TERN_FULL_SPEED};
    } else {
        bool crowded = false;
        for (uint32_t i = 0; i < threads; i++) {
            chosen[i] = list[i % n].processor;
            crowded |= on_core[t->processors[chosen[i]].core]++ > 0;
        }
        qsort(chosen, threads, sizeof *chosen, compare_indices);
        for (uint32_t i = 0; i < threads; i++)
            places[i] = place_of(t, wish, chosen[i], crowded);
        share_work(t, on_core, chosen, threads, places);
    }
    free(on_core);
    free(chosen);
    free(list);
    return status;
}
