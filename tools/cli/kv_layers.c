/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/kv_layers.h"

kept_layers kept_layers_of(const tern_model *model, tern_format kv) {
    tern_session_params params = tern_session_params_default();
    tern_session_cache_size cache;
    tern_model_info info;
    tern_model_describe(model, &info);
    params.kv = kv;
    if (tern_session_cache_bytes(model, &params, &cache, NULL) != TERN_OK)
        return (kept_layers){.n = info.n_layer};
    const uint32_t n = cache.layers + cache.window_layers;
    kept_layers kept = {.n = n, .deltas = info.n_layer - n};
    if (kept.deltas > 0) /* no layer has a window then */
        kept.states = cache.bytes - tern_model_kv_bytes(model, cache.positions, kv);
    return kept;
}
