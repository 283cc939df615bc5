/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/load/placement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tern/inspect.h"
#include "tools/cli/output.h"

/* IE_TP_USE_AFFINITY=0 is another program's spelling of --affinity none. */
static tern_affinity read_affinity(const options *o) {
    const char *name = options_text(o, OPT_AFFINITY); /* always one of the option's choices */
    const bool off = options_given(o, OPT_USE_AFFINITY) && !options_switch(o, OPT_USE_AFFINITY);
    int affinity = TERN_AFFINITY_AUTO;
    if (off && !options_given(o, OPT_AFFINITY))
        return TERN_AFFINITY_NONE;
    while (strcmp(tern_affinity_name((tern_affinity)affinity), name) != 0)
        affinity++;
    return (tern_affinity)affinity;
}

tern_status placement_read(const options *o, tern_model_params *params, tern_error *err) {
    if (options_text(o, OPT_NUMA) == NULL)
        return TERN_OK;
    tern_places places = {.affinity = read_affinity(o)};
    if (!tern_numa_parse(options_text(o, OPT_NUMA), &places)) {
        return tern_fail(err, TERN_ERR_ARG,
                         "--numa wants none, interleave, node:X or strict, not '%.100s'",
                         options_text(o, OPT_NUMA));
    }
    params->places = places;
    params->replicate = options_switch(o, OPT_REPLICATE);
    params->replicate_limit = options_integer(o, OPT_REPLICATE_LIMIT) << 20;
    return TERN_OK;
}

bool placement_lack_node(const tern_model_params *params, tern_error *err) {
    if (err->status != TERN_ERR_PLACES || params->places.numa != TERN_NUMA_NODE ||
        !tern_topology_supported())
        return false;
    const tern_error plain = *err;
    (void)tern_fail(err, plain.status, "--%s", plain.message);
    return true;
}

void placement_report(int refused) {
    if (refused != 0) {
        complain("the system does not bind threads or memory as asked for (%s): perhaps slower, "
                 "the same answer",
                 strerror(refused));
    }
}

void placement_report_replicas(const tern_model_loading *loading) {
    if (loading->replica_problem.status != TERN_OK) {
        complain("%s: weights are read where they lie, perhaps slower, the same answer",
                 loading->replica_problem.message);
    }
}

/* ---- places of threads ----------------------------------------------------------------------- */

/* Writes the system's numbers of a place's processors: "0-3,8"; "any" if it is not bound. */
static void list_processors(const tern_topology *t, const tern_place *place, char *text,
                            size_t size) {
    size_t used = (size_t)snprintf(text, size, "%s", place->first < place->end ? "" : "any");
    for (uint32_t i = place->first; i < place->end && used < size;) {
        const uint32_t begin = tern_topology_processor_number(t, i);
        uint32_t last = begin;
        while (++i < place->end && tern_topology_processor_number(t, i) == last + 1)
            last++;
        const char *comma = used > 0 ? "," : "";
        const int n = last > begin
                          ? snprintf(text + used, size - used, "%s%u-%u", comma, begin, last)
                          : snprintf(text + used, size - used, "%s%u", comma, begin);
        used += n > 0 ? (size_t)n : 0;
    }
}

/* The places of as many threads as a session starts by default, to be freed; NULL after a
 * complaint. */
static tern_place *plan(const tern_model *m, uint32_t *threads) {
    tern_error err = {0};
    const tern_topology *t = tern_model_topology(m);
    const tern_places wish = tern_model_places(m);
    *threads = tern_topology_threads(t);
    tern_place *places = calloc(*threads, sizeof *places);
    if (places == NULL) {
        complain("no memory to place %u threads", *threads);
        return NULL;
    }
    if (tern_place_threads(t, &wish, *threads, places, &err) != TERN_OK) {
        (void)complain_error(&err);
        free(places);
        return NULL;
    }
    return places;
}

static bool is_same_place(const tern_place *a, const tern_place *b) {
    return a->first == b->first && a->end == b->end && a->share == b->share;
}

bool placement_print(const tern_model *m) {
    const tern_topology *t = tern_model_topology(m);
    char text[256];
    uint32_t threads;
    tern_place *places = plan(m, &threads);
    if (places == NULL)
        return false;
    const tern_places wish = tern_model_places(m);
    const char *online = tern_topology_nodes_online(t);
    tern_numa_name(&wish, text, sizeof text);
    out_print("\nmachine      %u sockets, %u nodes (online: %s), %u cores, %u processors%s\n",
              tern_topology_sockets(t), tern_topology_nodes(t),
              online[0] != '\0' ? online : "not known", tern_topology_cores(t),
              tern_topology_processors(t),
              tern_topology_is_foreign(t) ? "; described by a variable of hwloc" : "");
    out_print("places       affinity %s, numa %s\n", tern_affinity_name(wish.affinity), text);
    for (uint32_t i = 0; i < threads;) {
        const uint32_t begin = i;
        while (++i < threads && is_same_place(&places[begin], &places[i])) {
        }
        list_processors(t, &places[begin], text, sizeof text);
        out_print("  thread %u", begin);
        if (i - begin > 1)
            out_print(" to %u", i - 1);
        out_print(": processors %s, share %u\n", text, places[begin].share);
    }
    free(places);
    return true;
}

void placement_set_json(json_t *root, const tern_model *model) {
    char numa[32];
    const tern_places wish = tern_model_places(model);
    tern_numa_name(&wish, numa, sizeof numa);
    json_object_set_new(root, "affinity", json_string(tern_affinity_name(wish.affinity)));
    json_object_set_new(root, "numa", json_string(numa));
    json_object_set_new(root, "nodes_online",
                        json_string(tern_topology_nodes_online(tern_model_topology(model))));
}

bool placement_set_machine_json(json_t *root, const tern_model *m) {
    const tern_topology *t = tern_model_topology(m);
    uint32_t threads;
    tern_place *places = plan(m, &threads);
    if (places == NULL)
        return false;
    json_t *list = json_array();
    for (uint32_t i = 0; i < threads; i++) {
        char text[256];
        list_processors(t, &places[i], text, sizeof text);
        json_array_append_new(list, json_pack("{s:s, s:i, s:i}", "processors", text, "node",
                                              (int)places[i].node, "share", (int)places[i].share));
    }
    json_object_set_new(
        root, "machine",
        json_pack("{s:i, s:i, s:i, s:i, s:o}", "processors", (int)tern_topology_processors(t),
                  "cores", (int)tern_topology_cores(t), "sockets", (int)tern_topology_sockets(t),
                  "nodes", (int)tern_topology_nodes(t), "threads", list));
    free(places);
    return true;
}
