/* SPDX-License-Identifier: Apache-2.0 */

#include "threads/bind.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#ifdef TERN_HAVE_HWLOC
#include <hwloc.h>
#endif

#include "base/os/os.h"

struct tern_binding {
    const tern_topology *topology;
    uint32_t *nodes;     /* [n] of the workers; NULL unless their memory is bound */
    tern_os_set **masks; /* [n + 1] NULL: not bound; the last one holds the caller's own */
    uint32_t n;
    bool caller_bound;
#ifdef TERN_HAVE_HWLOC
    hwloc_bitmap_t caller_nodes;
    hwloc_membind_policy_t caller_policy;
    bool caller_memory_bound;
#endif
};

/* ---- masks ----------------------------------------------------------------------------------- */

static tern_os_set *mask_of(const tern_binding *b, tern_place place) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < b->topology->n; i++)
        most = b->topology->processors[i].os > most ? b->topology->processors[i].os : most;
    tern_os_set *set = tern_os_set_new(most);
    for (uint32_t i = place.first; set != NULL && i < place.end; i++)
        tern_os_set_add(set, b->topology->processors[i].os);
    return set;
}

void tern_binding_free(tern_binding **binding) {
    tern_binding *b = *binding;
    if (b == NULL)
        return;
    for (uint32_t i = 0; b->masks != NULL && i <= b->n; i++)
        tern_os_set_free(b->masks[i]);
#ifdef TERN_HAVE_HWLOC
    hwloc_bitmap_free(b->caller_nodes);
#endif
    free(b->masks);
    free(b->nodes);
    free(b);
    *binding = NULL;
}

/* Fills what calloc left empty; false: no memory. */
static bool fill(tern_binding *b, const tern_place *places, bool memory) {
    b->masks = calloc((size_t)b->n + 1, sizeof *b->masks);
    b->nodes = memory ? calloc(b->n, sizeof *b->nodes) : NULL;
    if (b->masks == NULL || (memory && b->nodes == NULL))
        return false;
#ifdef TERN_HAVE_HWLOC
    b->caller_nodes = hwloc_bitmap_alloc();
    if (b->caller_nodes == NULL)
        return false;
#endif
    for (uint32_t i = 0; i < b->n; i++) {
        if (memory)
            b->nodes[i] = places[i].node;
        if (places[i].first < places[i].end && (b->masks[i] = mask_of(b, places[i])) == NULL)
            return false;
    }
    b->masks[b->n] = mask_of(b, (tern_place){.first = 0, .end = 0});
    return b->masks[b->n] != NULL;
}

tern_status tern_binding_new(const tern_topology *t, const tern_places *wish,
                             const tern_place *places, uint32_t n, tern_binding **out,
                             tern_error *err) {
    /* Memory can be bound to the worker's node only when the worker is. */
    bool any = false;
    bool all = true;
    for (uint32_t i = 0; i < n; i++) {
        const bool bound = places[i].first < places[i].end;
        any |= bound;
        all &= bound;
    }
    if (!any || t->foreign)
        return TERN_OK;
    tern_binding *b = calloc(1, sizeof *b);
    if (b != NULL)
        *b = (tern_binding){.topology = t, .n = n};
    if (b == NULL || !fill(b, places, all && wish->numa == TERN_NUMA_STRICT)) {
        if (b != NULL)
            tern_binding_free(&b);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to bind %u threads", n);
    }
    *out = b;
    return TERN_OK;
}

/* ---- threads --------------------------------------------------------------------------------- */

int tern_bind_thread(const tern_binding *b, uint32_t i, pthread_t thread) {
    if (b == NULL || b->masks[i] == NULL)
        return 0;
    return tern_os_bind_thread(thread, b->masks[i]);
}

/* ---- memory ---------------------------------------------------------------------------------- */

#ifdef TERN_HAVE_HWLOC

/* The nodes of a wish: one, or all; NULL: no memory. */
static hwloc_bitmap_t nodes_of(const tern_topology *t, bool one, uint32_t node) {
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (uint32_t i = 0; set != NULL && i < t->n_nodes; i++)
        if (!one || i == node)
            (void)hwloc_bitmap_set(set, t->node_os[i]);
    return set;
}

/* "On this node" is to hwloc "rather on this one" unless it is told that it has to be. */
static int strictness(const tern_places *wish) {
    return HWLOC_MEMBIND_BYNODESET | (wish->numa == TERN_NUMA_STRICT ? HWLOC_MEMBIND_STRICT : 0);
}

static int bind_area(const tern_topology *t, const tern_places *wish, hwloc_bitmap_t nodes,
                     void *memory, size_t size, hwloc_membind_policy_t policy) {
    int result = ENOMEM;
    if (nodes != NULL)
        result =
            hwloc_set_area_membind(t->hwloc, memory, size, nodes, policy, strictness(wish)) == 0
                ? 0
                : errno;
    hwloc_bitmap_free(nodes);
    return result;
}

/* Memory can be bound, and it makes a difference. */
static bool has_choice(const tern_topology *t, size_t size) {
    return !t->foreign && t->hwloc != NULL && t->n_nodes > 1 && size > 0;
}

int tern_bind_area(const tern_topology *t, const tern_places *wish, uint32_t node, void *memory,
                   size_t size) {
    if (!has_choice(t, size))
        return 0;
    return bind_area(t, wish, nodes_of(t, true, node), memory, size, HWLOC_MEMBIND_BIND);
}

int tern_place_memory(const tern_topology *t, const tern_places *wish, void *memory, size_t size) {
    if (wish->numa == TERN_NUMA_NODE)
        return tern_bind_area(t, wish, tern_find_node(t, wish->node), memory, size);
    if (wish->numa == TERN_NUMA_INTERLEAVE && has_choice(t, size))
        return bind_area(t, wish, nodes_of(t, false, 0), memory, size, HWLOC_MEMBIND_INTERLEAVE);
    return 0;
}

int tern_bind_own_memory(const tern_binding *b, uint32_t i) {
    if (b == NULL || b->nodes == NULL)
        return 0;
    hwloc_bitmap_t nodes = nodes_of(b->topology, true, b->nodes[i]);
    int result = ENOMEM;
    if (nodes != NULL)
        result = hwloc_set_membind(b->topology->hwloc, nodes, HWLOC_MEMBIND_BIND,
                                   HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET |
                                       HWLOC_MEMBIND_STRICT) == 0
                     ? 0
                     : errno;
    hwloc_bitmap_free(nodes);
    return result;
}

static int bind_callers_memory(tern_binding *b) {
    if (b->nodes == NULL)
        return 0;
    if (hwloc_get_membind(b->topology->hwloc, b->caller_nodes, &b->caller_policy,
                          HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET) != 0)
        return errno;
    const int result = tern_bind_own_memory(b, 0);
    b->caller_memory_bound = result == 0;
    return result;
}

static void release_callers_memory(tern_binding *b) {
    if (b->caller_memory_bound)
        (void)hwloc_set_membind(b->topology->hwloc, b->caller_nodes, b->caller_policy,
                                HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET);
    b->caller_memory_bound = false;
}

#else

int tern_place_memory(const tern_topology *t, const tern_places *wish, void *memory, size_t size) {
    (void)t, (void)wish, (void)memory, (void)size;
    return 0; /* no more than one node is known */
}

int tern_bind_area(const tern_topology *t, const tern_places *wish, uint32_t node, void *memory,
                   size_t size) {
    (void)t, (void)wish, (void)node, (void)memory, (void)size;
    return 0;
}

int tern_bind_own_memory(const tern_binding *b, uint32_t i) {
    (void)b, (void)i;
    return 0;
}

static int bind_callers_memory(tern_binding *b) {
    (void)b;
    return 0;
}

static void release_callers_memory(tern_binding *b) {
    (void)b;
}

#endif

/* ---- the caller ------------------------------------------------------------------------------ */

int tern_bind_caller(tern_binding *b) {
    int result = 0;
    if (b == NULL)
        return 0;
    if (b->masks[0] != NULL) {
        result = tern_os_own_set(b->masks[b->n]);
        if (result == 0)
            result = tern_os_bind_self(b->masks[0]);
        b->caller_bound = result == 0;
    }
    const int memory = bind_callers_memory(b);
    return result ? result : memory;
}

void tern_release_caller(tern_binding *b) {
    if (b == NULL)
        return;
    if (b->caller_bound)
        (void)tern_os_bind_self(b->masks[b->n]);
    b->caller_bound = false;
    release_callers_memory(b);
}
