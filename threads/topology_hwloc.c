/* SPDX-License-Identifier: Apache-2.0 */
/* The topology as hwloc tells it. Compiled to nothing where the library is built without hwloc. */

#ifdef TERN_HAVE_HWLOC

#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

#include "threads/topology.h"

/*
 * The speed of an efficiency core beside a performance core at the same clock, in vector code,
 * where only the name tells them apart: it splits 256 bits into halves, but has as many ports for
 * them.
 */
enum { ATOM_PERCENT = 60 };

/* ---- kinds of cores -------------------------------------------------------------------------- */

static unsigned long info_number(const struct hwloc_info_s *infos, unsigned n, const char *name) {
    for (unsigned i = 0; i < n; i++)
        if (strcmp(infos[i].name, name) == 0)
            return strtoul(infos[i].value, NULL, 10);
    return 0;
}

static bool is_atom(const struct hwloc_info_s *infos, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        if (strcmp(infos[i].name, "CoreType") == 0)
            return strcmp(infos[i].value, "IntelAtom") == 0;
    return false;
}

/* The speed that a kind announces: the kernel's capacity, else its clock; 0: it does not. */
static unsigned long announced(hwloc_topology_t hw, unsigned kind, bool capacity) {
    struct hwloc_info_s *infos = NULL;
    unsigned n = 0;
    if (hwloc_cpukinds_get_info(hw, kind, NULL, NULL, &n, &infos, 0) != 0)
        return 0;
    if (capacity)
        return info_number(infos, n, "LinuxCapacity");
    unsigned long clock = info_number(infos, n, "FrequencyMaxMHz");
    if (clock == 0)
        clock = info_number(infos, n, "FrequencyBaseMHz");
    return is_atom(infos, n) ? clock * ATOM_PERCENT / 100 : clock;
}

/* Speeds of all kinds by one measure, or false when they announce none in common. */
static bool kind_speeds_by(hwloc_topology_t hw, bool capacity, unsigned kinds, uint32_t *speeds) {
    unsigned long most = 0;
    for (unsigned k = 0; k < kinds; k++) {
        const unsigned long value = announced(hw, k, capacity);
        if (value == 0 || value > UINT32_MAX)
            return false;
        speeds[k] = (uint32_t)value;
        most = value > most ? value : most;
    }
    for (unsigned k = 0; k < kinds; k++)
        speeds[k] = tern_speed_rounded((uint64_t)speeds[k] * TERN_FULL_SPEED / most);
    return true;
}

/* Speeds of the kinds of cores, to be freed; NULL where there is one kind or nothing is known. */
static uint32_t *kind_speeds(hwloc_topology_t hw) {
    const int kinds = hwloc_cpukinds_get_nr(hw, 0);
    if (kinds < 2)
        return NULL;
    uint32_t *speeds = calloc((size_t)kinds, sizeof *speeds);
    if (speeds != NULL && !kind_speeds_by(hw, true, (unsigned)kinds, speeds) &&
        !kind_speeds_by(hw, false, (unsigned)kinds, speeds)) {
        free(speeds);
        return NULL;
    }
    return speeds;
}

static uint32_t speed_of(hwloc_topology_t hw, const uint32_t *speeds, hwloc_obj_t pu) {
    const int kind = speeds != NULL ? hwloc_cpukinds_get_by_cpuset(hw, pu->cpuset, 0) : -1;
    return kind < 0 ? TERN_FULL_SPEED : speeds[kind];
}

/* ---- processors ------------------------------------------------------------------------------ */

/* The node with the fewest processors around this one: memory that many nodes share comes last. */
static uint32_t node_of(hwloc_topology_t hw, hwloc_obj_t pu) {
    hwloc_obj_t best = NULL;
    int fewest = 0;
    for (hwloc_obj_t node = hwloc_get_obj_by_type(hw, HWLOC_OBJ_NUMANODE, 0); node != NULL;
         node = node->next_cousin) {
        const int width = hwloc_bitmap_weight(node->cpuset);
        if (hwloc_bitmap_isset(node->cpuset, pu->os_index) && (best == NULL || width < fewest)) {
            best = node;
            fewest = width;
        }
    }
    return best != NULL ? best->logical_index : 0;
}

static tern_processor describe(hwloc_topology_t hw, const uint32_t *speeds, hwloc_obj_t pu) {
    const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(hw, HWLOC_OBJ_CORE, pu);
    const hwloc_obj_t socket = hwloc_get_ancestor_obj_by_type(hw, HWLOC_OBJ_PACKAGE, pu);
    uint32_t sibling = 0;
    for (hwloc_obj_t before = pu->prev_cousin; core != NULL && before != NULL;
         before = before->prev_cousin) {
        if (hwloc_get_ancestor_obj_by_type(hw, HWLOC_OBJ_CORE, before) != core)
            break;
        sibling++;
    }
    return (tern_processor){.os = pu->os_index,
                            .node = node_of(hw, pu),
                            .socket = socket != NULL ? socket->logical_index : 0,
                            .core = core != NULL ? core->logical_index : pu->logical_index,
                            .sibling = sibling,
                            .speed = speed_of(hw, speeds, pu)};
}

/* Leaves the processors that the caller may run on; a topology of another machine stays whole. */
static tern_status restrict_to_allowed(hwloc_topology_t hw, tern_error *err) {
    uint32_t *os = NULL;
    uint32_t n = 0;
    if (!hwloc_topology_is_thissystem(hw))
        return TERN_OK;
    tern_status status = tern_allowed_processors(&os, &n, err);
    if (status != TERN_OK)
        return status;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (uint32_t i = 0; set != NULL && i < n; i++)
        (void)hwloc_bitmap_set(set, os[i]);
    free(os);
    if (set == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a set of %u processors", n);
    /* Nodes without processors stay: memory may be asked for on them. It fails where none would be
     * left, which means that hwloc and the system disagree: then nothing is taken away. */
    (void)hwloc_topology_restrict(hw, set, 0);
    hwloc_bitmap_free(set);
    return TERN_OK;
}

static tern_status list_processors(hwloc_topology_t hw, tern_topology **out, tern_error *err) {
    const int n = hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_PU);
    const int n_nodes = hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_NUMANODE);
    if (n < 1 || n_nodes < 1)
        return TERN_OK;
    tern_processor *list = calloc((size_t)n, sizeof *list);
    uint32_t *nodes = calloc((size_t)n_nodes, sizeof *nodes);
    uint32_t *speeds = kind_speeds(hw);
    tern_status status;
    if (list != NULL && nodes != NULL) {
        for (int i = 0; i < n; i++)
            list[i] = describe(hw, speeds, hwloc_get_obj_by_type(hw, HWLOC_OBJ_PU, (unsigned)i));
        for (int i = 0; i < n_nodes; i++)
            nodes[i] = hwloc_get_obj_by_type(hw, HWLOC_OBJ_NUMANODE, (unsigned)i)->os_index;
        status = tern_topology_of(list, (uint32_t)n, nodes, (uint32_t)n_nodes, out, err);
    } else {
        status = tern_fail(err, TERN_ERR_NOMEM, "no memory for a topology of %d processors", n);
    }
    free(speeds);
    free(nodes);
    free(list);
    return status;
}

/*
 * Cores, sockets and nodes are all that is asked for, so that hwloc reads few files. Dies and
 * groups stay where nodes hang on them, or the nodes would seem to be the whole socket's.
 */
static bool load(hwloc_topology_t hw) {
    static const struct {
        hwloc_obj_type_t type;
        enum hwloc_type_filter_e filter;
    } kept[] = {{HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL},
                {HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL},
                {HWLOC_OBJ_DIE, HWLOC_TYPE_FILTER_KEEP_STRUCTURE},
                {HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE}};
    if (hwloc_topology_set_all_types_filter(hw, HWLOC_TYPE_FILTER_KEEP_NONE) != 0)
        return false;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (hwloc_topology_set_type_filter(hw, kept[i].type, kept[i].filter) != 0)
            return false;
    return hwloc_topology_load(hw) == 0;
}

tern_status tern_topology_by_hwloc(tern_topology **out, tern_error *err) {
    hwloc_topology_t hw;
    tern_topology *t = NULL;
    if (hwloc_topology_init(&hw) != 0)
        return TERN_OK;
    const bool loaded = load(hw);
    tern_status status = loaded ? restrict_to_allowed(hw, err) : TERN_OK;
    if (loaded && status == TERN_OK)
        status = list_processors(hw, &t, err);
    if (t == NULL) {
        hwloc_topology_destroy(hw);
        return status;
    }
    t->foreign = !hwloc_topology_is_thissystem(hw);
    t->hwloc = hw;
    *out = t;
    return TERN_OK;
}

void tern_topology_free_hwloc(void *hwloc) {
    if (hwloc != NULL)
        hwloc_topology_destroy(hwloc);
}

#else
typedef int tern_no_hwloc; /* a translation unit must not be empty */
#endif
