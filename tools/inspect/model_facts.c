/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/inspect/model_facts.h"

#include "tern/inspect.h"
#include "tools/cli/output.h"

enum { MOST_FACTS = 24 };

static size_t find_facts(const tern_model *model, tern_model_fact facts[MOST_FACTS]) {
    const size_t n = tern_model_facts(model, facts, MOST_FACTS);
    return n < MOST_FACTS ? n : MOST_FACTS;
}

void model_facts_print(const tern_model *model) {
    tern_model_fact facts[MOST_FACTS];
    const size_t n = find_facts(model, facts);
    out_print("\nruns as      (and who says so)\n");
    for (size_t i = 0; i < n; i++)
        out_print("  %-16s %s (%s)\n", facts[i].name, facts[i].text, facts[i].from);
}

void model_facts_remark(const tern_model *model) {
    tern_model_fact facts[MOST_FACTS];
    const size_t n = find_facts(model, facts);
    for (size_t i = 0; i < n; i++)
        remark("model: %s %s (%s)\n", facts[i].name, facts[i].text, facts[i].from);
}

json_t *model_facts_json(const tern_model *model) {
    tern_model_fact facts[MOST_FACTS];
    const size_t n = find_facts(model, facts);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", facts[i].name, "value",
                                              facts[i].text, "from", facts[i].from));
    return list;
}
