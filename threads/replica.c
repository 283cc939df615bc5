/* SPDX-License-Identifier: Apache-2.0 */

#include "threads/replica.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/grow.h"
#include "threads/bind.h"

/* ---- what to copy ---------------------------------------------------------------------------- */

static tern_hot_piece *find_piece(const tern_hot_list *list, const void *data) {
    for (size_t i = 0; data != NULL && i < list->n; i++)
        if (list->pieces[i].data == data)
            return &list->pieces[i];
    return NULL;
}

tern_status tern_hot_add(tern_hot_list *list, tern_hot_piece piece, tern_error *err) {
    if (list == NULL)
        return TERN_OK;
    tern_hot_piece *known = find_piece(list, piece.data);
    if (known != NULL) {
        known->heat = piece.heat < known->heat ? piece.heat : known->heat;
        return TERN_OK;
    }
    if (!tern_grow((void **)&list->pieces, &list->capacity, list->n, sizeof piece,
                   SIZE_MAX / sizeof piece))
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to list more than %zu hot weights",
                         list->n);
    piece.chosen = false;
    list->pieces[list->n++] = piece;
    return TERN_OK;
}

void tern_hot_clear(tern_hot_list *list) {
    if (list != NULL)
        list->n = 0;
}

void tern_hot_free(tern_hot_list *list) {
    free(list->pieces);
    *list = (tern_hot_list){.pieces = NULL};
}

size_t tern_hot_choose(tern_hot_list *list, uint64_t limit) {
    size_t total = 0;
    for (int heat = 0; heat < TERN_HEATS; heat++)
        for (size_t i = 0; i < list->n; i++) {
            tern_hot_piece *p = &list->pieces[i];
            size_t end = total;
            if (p->heat != (tern_heat)heat)
                continue;
            p->chosen = tern_arena_reserve(&end, p->bytes, 1) && (limit == 0 || end <= limit);
            p->offset = total;
            total = p->chosen ? end : total;
        }
    return total;
}

/* ---- where ----------------------------------------------------------------------------------- */

static bool is_bound(tern_place place) {
    return place.first < place.end;
}

uint32_t tern_replica_nodes(const tern_topology *t, const tern_place *places, uint32_t n) {
    uint32_t nodes = 0;
    if (t->n_nodes < 2)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t before = 0;
        while (before < i && (!is_bound(places[before]) || places[before].node != places[i].node))
            before++;
        nodes += is_bound(places[i]) && before == i;
    }
    return nodes;
}

/* ---- copying --------------------------------------------------------------------------------- */

typedef struct filling {
    const tern_hot_list *list;
    const tern_replicas *replicas;
    size_t bytes;
} filling;

/* The pages from `data` on are read ahead. Where that is refused they are read when they are met.
 */
static void read_ahead(const uint8_t *data, size_t bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)data / page * page;
    (void)posix_madvise((void *)first, (uintptr_t)data + bytes - first, POSIX_MADV_WILLNEED);
}

/* The bytes [begin, end) of a replica. */
static void copy_range(const tern_hot_list *list, uint8_t *base, size_t begin, size_t end) {
    for (size_t i = 0; i < list->n; i++) {
        const tern_hot_piece *p = &list->pieces[i];
        const size_t first = p->offset > begin ? p->offset : begin;
        const size_t last = p->offset + p->bytes < end ? p->offset + p->bytes : end;
        if (!p->chosen || first >= last)
            continue;
        const uint8_t *from = (const uint8_t *)p->data + (first - p->offset);
        if (p->in_file)
            read_ahead(from, last - first);
        memcpy(base + first, from, last - first);
    }
}

/* The workers of a node share its replica, by huge pages: each is touched by one of them. */
static void fill_part(tern_worker worker, void *argument) {
    const filling *f = argument;
    const tern_place own = tern_team_place(worker.team, worker.index);
    if (!is_bound(own) || f->replicas->arenas[own.node].base == NULL)
        return;
    tern_worker here = {.index = 0, .count = 0};
    for (uint32_t i = 0; i < worker.count; i++) {
        const tern_place place = tern_team_place(worker.team, i);
        const bool neighbour = is_bound(place) && place.node == own.node;
        here.index += neighbour && i < worker.index;
        here.count += neighbour;
    }
    const tern_part part = tern_team_split(here, f->bytes, TERN_HUGE_PAGE_BYTES);
    copy_range(f->list, f->replicas->arenas[own.node].base, part.begin, part.end);
}

/* Memory for the node's replica. */
static void reserve(const tern_topology *t, const tern_places *wish, uint32_t node, size_t bytes,
                    tern_replicas *r) {
    tern_arena *arena = &r->arenas[node];
    tern_error err;
    if (arena->base != NULL)
        return;
    if (tern_arena_new(bytes, true, arena, &err) != TERN_OK) {
        if (r->problem.status == TERN_OK)
            (void)tern_fail(&r->problem, TERN_ERR_NOMEM,
                            "no memory for a replica of %zu bytes on node %u", bytes,
                            t->node_os[node]);
        return;
    }
    const int refused = tern_bind_area(t, wish, node, arena->base, bytes);
    r->refused = r->refused ? r->refused : refused;
}

tern_status tern_replicas_new(const tern_hot_list *list, size_t bytes, const tern_topology *t,
                              const tern_places *wish, tern_team *team, tern_replicas *out,
                              tern_error *err) {
    *out = (tern_replicas){.n_nodes = t->n_nodes};
    out->arenas = calloc(t->n_nodes, sizeof *out->arenas);
    if (out->arenas == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for replicas on %u nodes", t->n_nodes);
    for (uint32_t i = 0; bytes > 0 && i < tern_team_size(team); i++)
        if (is_bound(tern_team_place(team, i)))
            reserve(t, wish, tern_team_place(team, i).node, bytes, out);
    filling f = {.list = list, .replicas = out, .bytes = bytes};
    tern_team_run(team, fill_part, &f);
    return TERN_OK;
}

void tern_replicas_free(tern_replicas *r) {
    for (uint32_t i = 0; r->arenas != NULL && i < r->n_nodes; i++)
        tern_arena_free(&r->arenas[i]);
    free(r->arenas);
    *r = (tern_replicas){.arenas = NULL};
}

const void *tern_replica_find(const tern_hot_list *list, const tern_replicas *replicas,
                              uint32_t node, const void *data) {
    const tern_hot_piece *p = find_piece(list, data);
    const bool copied =
        p != NULL && p->chosen && replicas->arenas != NULL && replicas->arenas[node].base != NULL;
    return copied ? replicas->arenas[node].base + p->offset : data;
}
