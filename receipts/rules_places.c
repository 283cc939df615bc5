/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the machine's NUMA nodes, and of the names of files. */

#include "receipts/rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/word_list.h"
#include "tern/topology.h"

/* Reads numbers of nodes in ascending order as the system lists them, "0-1,3"; an empty list means
 * they are not known. *has: `node` is among them, or they are not known. */
static bool read_nodes(const char *list, unsigned long node, bool *has) {
    unsigned long next = 0; /* the smallest number allowed next */
    *has = *list == '\0';
    for (const char *at = list; *at != '\0';) {
        char *end;
        if (*at < '0' || *at > '9')
            return false;
        const unsigned long first = strtoul(at, &end, 10);
        unsigned long last = first;
        if (*end == '-' && end[1] >= '0' && end[1] <= '9')
            last = strtoul(end + 1, &end, 10);
        if (first < next || last < first || last > UINT32_MAX || (*end != '\0' && *end != ',') ||
            (*end == ',' && end[1] == '\0'))
            return false;
        *has = *has || (node >= first && node <= last);
        next = last + 2; /* last + 1 would belong to this range, or make one of "0,1" */
        next -= first == last;
        at = end + (*end == ',');
    }
    return true;
}

void rules_nodes(const json_t *r, receipt_findings *f) {
    const char *numa = rule_text(r, "run.numa");
    const char *online = rule_text(r, "run.nodes_online");
    tern_places places = {.node = 0};
    bool has;
    if (json_object_get(receipt_at(r, "run"), "numa") != NULL && !tern_numa_parse(numa, &places)) {
        receipt_find(f, "run.numa: is \"%.40s\", must be none, interleave, node:X or strict", numa);
        return;
    }
    if (!rule_known(r, "run.nodes_online"))
        return;
    if (!read_nodes(online, places.node, &has))
        receipt_find(f, "run.nodes_online: \"%.40s\" is not a list of nodes such as 0-1,3", online);
    else if (places.numa == TERN_NUMA_NODE && !has)
        receipt_find(f, "run.numa: is \"%.40s\", run.nodes_online is \"%.40s\"", numa, online);
}

/* Checks that the model's path names one of its files. */
static void check_names(const json_t *r, receipt_findings *f) {
    const json_t *files = receipt_at(r, "model_info.files");
    const char *name = file_base_name(rule_text(r, "model_info.model_path"));
    for (size_t i = 0; i < json_array_size(files); i++) {
        const char *path = rule_text(json_array_get(files, i), "path");
        if (strcmp(file_base_name(path), name) == 0)
            return;
    }
    receipt_find(f, "model_info.model_path: \"%.60s\" is not one of model_info.files", name);
}

void rules_places(const json_t *r, receipt_findings *f) {
    rules_nodes(r, f);
    check_names(r, f);
}
