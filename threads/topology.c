/* SPDX-License-Identifier: Apache-2.0 */

#include "threads/topology.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os/os.h"
#include "threads/quota.h"

#define DEVICES "/sys/devices"
#define NODES_ONLINE "/system/node/online"

/* ---- from a list of processors --------------------------------------------------------------- */

static int compare_numbers(uint32_t a, uint32_t b) {
    return (a > b) - (a < b);
}

static int compare_processors(const void *left, const void *right) {
    const tern_processor *a = left;
    const tern_processor *b = right;
    int order = compare_numbers(a->node, b->node);
    if (order == 0)
        order = compare_numbers(a->socket, b->socket);
    if (order == 0)
        order = compare_numbers(b->speed, a->speed);
    if (order == 0)
        order = compare_numbers(a->core, b->core);
    return order ? order : compare_numbers(a->sibling, b->sibling);
}

/* Fills the counts of sorted processors. Sockets may come in any order, so the largest counts. */
static void count(tern_topology *t) {
    t->n_cores = t->n_classes = t->n_sockets = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        const tern_processor *p = &t->processors[i];
        const tern_processor *before = i ? p - 1 : NULL;
        t->n_cores += before == NULL || before->core != p->core;
        t->n_classes += before == NULL || before->node != p->node || before->speed != p->speed;
        if (p->socket >= t->n_sockets)
            t->n_sockets = p->socket + 1;
    }
}

void tern_topology_sort(tern_topology *t) {
    qsort(t->processors, t->n, sizeof *t->processors, compare_processors);
    count(t);
}

uint32_t tern_speed_rounded(uint64_t scaled) {
    enum { ALIKE_PERCENT = 80 };
    if (scaled * 100 >= (uint64_t)ALIKE_PERCENT * TERN_FULL_SPEED)
        return TERN_FULL_SPEED;
    return scaled > 0 ? (uint32_t)scaled : 1;
}

tern_status tern_topology_of(const tern_processor *processors, uint32_t n, const uint32_t *node_os,
                             uint32_t n_nodes, tern_topology **out, tern_error *err) {
    tern_topology *t = calloc(1, sizeof *t);
    if (t != NULL) {
        t->processors = malloc(n * sizeof *t->processors);
        t->node_os = malloc(n_nodes * sizeof *t->node_os);
    }
    if (t == NULL || t->processors == NULL || t->node_os == NULL) {
        tern_topology_free(&t);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a topology of %u processors", n);
    }
    memcpy(t->processors, processors, n * sizeof *processors);
    memcpy(t->node_os, node_os, n_nodes * sizeof *node_os);
    t->n = n;
    t->n_nodes = n_nodes;
    tern_topology_sort(t);
    *out = t;
    return TERN_OK;
}

void tern_topology_free(tern_topology **topology) {
    if (topology == NULL || *topology == NULL)
        return;
#ifdef TERN_HAVE_HWLOC
    tern_topology_free_hwloc((*topology)->hwloc);
#endif
    free((*topology)->processors);
    free((*topology)->node_os);
    free(*topology);
    *topology = NULL;
}

/* ---- of this machine ------------------------------------------------------------------------- */

tern_status tern_allowed_processors(uint32_t **out, uint32_t *n, tern_error *err) {
    if (tern_os_allowed_processors(out, n))
        return TERN_OK;
    if (errno == ENOMEM)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the list of processors");
    return tern_fail(err, TERN_ERR_IO, "the system does not tell the processors: %s",
                     strerror(errno));
}

/* Every processor a core of its own, on one socket and one node. */
static tern_status flat_topology(const uint32_t *os, uint32_t n, tern_topology **out,
                                 tern_error *err) {
    static const uint32_t node = 0;
    tern_processor *list = calloc(n, sizeof *list);
    for (uint32_t i = 0; list != NULL && i < n; i++)
        list[i] = (tern_processor){.os = os[i], .core = i, .speed = TERN_FULL_SPEED};
    const tern_status status =
        list != NULL
            ? tern_topology_of(list, n, &node, 1, out, err)
            : tern_fail(err, TERN_ERR_NOMEM, "no memory for a topology of %u processors", n);
    free(list);
    return status;
}

void tern_read_line(const char *path, char *text, size_t size) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = file < 0 ? 0 : read(file, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (file >= 0)
        (void)close(file);
}

/* The line of the file root/name; "" where there is none. */
static const char *read_device(const char *root, const char *name, char line[64]) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s%s", root, name);
    tern_read_line(path, line, 64);
    return line;
}

/* True if processor `os` has the same line in root/system/cpu/cpu<os>/name as the ones before it.
 */
static bool is_alike(const char *root, uint32_t os, const char *name, bool first, char before[64]) {
    char line[64];
    char path[128];
    (void)snprintf(path, sizeof path, "/system/cpu/cpu%u/%s", os, name);
    read_device(root, path, line);
    if (!first)
        return strcmp(line, before) == 0;
    memcpy(before, line, sizeof line);
    return true;
}

bool tern_machine_is_plain(const char *root, const uint32_t *os, uint32_t n) {
    char line[64];
    char socket[64] = "";
    char capacity[64] = "";
    const char *nodes = read_device(root, NODES_ONLINE, line);
    if (nodes[0] == '\0' || strpbrk(nodes, ",-") != NULL)
        return false;
    if (strcmp(read_device(root, "/system/cpu/smt/active", line), "0") != 0)
        return false;
    /* If cores differ, x86 has a counter device for each kind, Linux a capacity for each core.
     */
    if (read_device(root, "/cpu_atom/type", line)[0] != '\0')
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!is_alike(root, os[i], "cpu_capacity", i == 0, capacity) ||
            !is_alike(root, os[i], "topology/physical_package_id", i == 0, socket) ||
            socket[0] == '\0')
            return false;
    return true;
}

#ifdef TERN_HAVE_HWLOC
/* True if it takes hwloc to tell where the wish is met. */
static bool needs_hwloc(const tern_places *wish, const uint32_t *os, uint32_t n) {
    return wish == NULL || wish->affinity > TERN_AFFINITY_NONE || wish->numa != TERN_NUMA_NONE ||
           getenv("HWLOC_SYNTHETIC") != NULL || getenv("HWLOC_XMLFILE") != NULL ||
           !tern_machine_is_plain(DEVICES, os, n);
}
#endif

tern_status tern_topology_for(const tern_places *wish, tern_topology **out, tern_error *err) {
    uint32_t lone = 0; /* where the system does not even tell that */
    uint32_t *os = NULL;
    uint32_t n = 0;
    tern_topology *t = NULL;
    tern_status status = tern_allowed_processors(&os, &n, err);
    if (status == TERN_ERR_NOMEM)
        return status;
    status = TERN_OK;
#ifdef TERN_HAVE_HWLOC
    if (needs_hwloc(wish, os, n))
        status = tern_topology_by_hwloc(&t, err);
#else
    (void)wish;
#endif
    if (status == TERN_OK && t == NULL)
        status = flat_topology(n > 0 ? os : &lone, n > 0 ? n : 1, &t, err);
    free(os);
    if (status != TERN_OK)
        return status;
    t->quota = tern_processor_quota();
    tern_read_line(DEVICES NODES_ONLINE, t->nodes_online, sizeof t->nodes_online);
    *out = t;
    return TERN_OK;
}

tern_status tern_topology_new(tern_topology **out, tern_error *err) {
    if (out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_topology_new needs a place for the topology");
    return tern_topology_for(NULL, out, err);
}

/* ---- questions ------------------------------------------------------------------------------- */

bool tern_topology_supported(void) {
#ifdef TERN_HAVE_HWLOC
    return true;
#else
    return false;
#endif
}

uint32_t tern_topology_processors(const tern_topology *t) {
    return t->n;
}

uint32_t tern_topology_cores(const tern_topology *t) {
    return t->n_cores;
}

uint32_t tern_topology_sockets(const tern_topology *t) {
    return t->n_sockets;
}

uint32_t tern_topology_node_number(const tern_topology *t, uint32_t i) {
    return t->node_os[i];
}

uint32_t tern_topology_processor_number(const tern_topology *t, uint32_t i) {
    return t->processors[i].os;
}

bool tern_topology_is_foreign(const tern_topology *t) {
    return t->foreign;
}

uint32_t tern_topology_nodes(const tern_topology *t) {
    return t->n_nodes;
}

const char *tern_topology_nodes_online(const tern_topology *t) {
    return t->nodes_online;
}

int tern_topology_first_cpu(const tern_topology *t, uint32_t socket) {
    int first = -1;
    for (uint32_t i = 0; i < t->n; i++) {
        const int os = (int)t->processors[i].os;
        if (t->processors[i].socket == socket && (first < 0 || os < first))
            first = os;
    }
    return first;
}

uint32_t tern_topology_threads(const tern_topology *t) {
    const uint32_t threads = t->n_cores > 1 ? t->n_cores : t->n;
    return t->quota > 0 && t->quota < threads ? t->quota : threads;
}
