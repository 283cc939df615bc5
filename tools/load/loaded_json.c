/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/load/loaded_json.h"

#include <string.h>

void json_set_kernels(json_t *root, const loaded *l) {
    const tern_kernel_refusal *refusals;
    const size_t n_refused = tern_model_refusals(l->model, &refusals);
    json_t *kernels = json_array();
    json_t *refused = json_array();
    for (size_t i = 0; i < l->n_kernels; i++)
        json_array_append_new(kernels, json_string(l->kernels[i]->name));
    for (size_t i = 0; i < n_refused; i++) {
        json_array_append_new(refused, json_pack("{s:s, s:s}", "kernel", refusals[i].row->name,
                                                 "where", refusals[i].where));
    }
    json_object_set_new(root, "isa", json_string(tern_model_isa(l->model)));
    json_object_set_new(root, "choice", json_string(tern_model_choice(l->model)));
    json_object_set_new(root, "kernels", kernels);
    json_object_set_new(root, "refused_kernels", refused);
}

void json_set_activations(json_t *root, const tern_model *model) {
    if (strcmp(tern_model_activations(model), "auto") != 0)
        json_object_set_new(root, "activations", json_string(tern_model_activations(model)));
}

void json_set_loading(json_t *root, const loaded *l) {
    json_object_set_new(root, "load_seconds", json_number(l->loading.seconds));
    json_object_set_new(root, "weights", json_string(l->loading.mapped ? "mapped" : "packed"));
}
