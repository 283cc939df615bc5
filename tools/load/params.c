/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/load/params.h"

#include <string.h>

#include "tern/inspect.h"
#include "tools/cli/output.h"
#include "tools/load/adapters.h"
#include "tools/load/late_tuning.h"
#include "tools/load/placement.h"
#include "tools/load/together.h"

static bool is_taken(const options *o, option_id id) {
    return option_applies(id, o->command);
}

/* The value of an option; its choice `auto` gives NULL. */
static const char *unless_auto(const options *o, option_id id) {
    const char *name = options_text(o, id);
    return name != NULL && strcmp(name, "auto") == 0 ? NULL : name;
}

const char *params_layout(const options *o) {
    return unless_auto(o, OPT_LAYOUT);
}

const char *params_chat_format(const options *o) {
    return unless_auto(o, OPT_CHAT_TEMPLATE);
}

const char *params_cache(const options *o, char path[PATH_MAX]) {
    if (options_switch(o, OPT_NO_CACHE) || !is_taken(o, OPT_CACHE))
        return NULL;
    if (options_text(o, OPT_CACHE) != NULL)
        return options_text(o, OPT_CACHE);
    const size_t length = tern_cache_default(path, PATH_MAX);
    return length > 0 && length < PATH_MAX ? path : NULL;
}

bool params_tune(const options *o) {
    return is_taken(o, OPT_NO_TUNE) && !options_switch(o, OPT_NO_TUNE) &&
           !options_switch(o, OPT_DETERMINISTIC);
}

tern_status params_read_codes(const options *o, tern_model_params *params, tern_error *err) {
    if (is_taken(o, OPT_I2S_LAYOUT)) /* always a letter: a, b, ... */
        params->i2s_order = (tern_i2s_order)(options_text(o, OPT_I2S_LAYOUT)[0] - 'a');
    params->i2s_map = options_text(o, OPT_I2S_MAP);
    params->tl_tiles = options_text(o, OPT_TL_TILES);
    return tern_reading_check(params, err);
}

static tern_image_use image_use(const options *o) {
    if (!is_taken(o, OPT_PRETRANSPOSE))
        return TERN_IMAGES_LARGE;
    const char *name = options_text(o, OPT_PRETRANSPOSE);
    if (name[0] == 'w') /* woh, wxh: single matrices in other programs */
        complain("--pretranspose %s: all matrices are packed, so all of them are kept", name);
    if (strcmp(name, "large") == 0)
        return TERN_IMAGES_LARGE;
    return strcmp(name, "none") == 0 ? TERN_IMAGES_NONE : TERN_IMAGES_ALL; /* all, woh, wxh */
}

static tern_dedup_params dedup_params(const options *o) {
    tern_dedup_params params = {.use = TERN_DEDUP_AUTO};
    if (!is_taken(o, OPT_DEDUP_CACHE))
        return params;
    const uint64_t cache = options_integer(o, OPT_DEDUP_CACHE) << 20;
    params.cache_bytes = cache > 0 ? cache : 1;
    if (options_switch(o, OPT_DEDUP_STRICT))
        params.use = TERN_DEDUP_STRICT;
    else if (options_given(o, OPT_DEDUP))
        params.use = options_switch(o, OPT_DEDUP) ? TERN_DEDUP_ON : TERN_DEDUP_OFF;
    return params;
}

static tern_fetch_hint fetch_hint(const char *when) {
    if (strcmp(when, "on") == 0)
        return TERN_FETCH_PASSING;
    return strcmp(when, "off") == 0 ? TERN_FETCH_KEPT : TERN_FETCH_AUTO;
}

static tern_fetch fetch_params(const options *o) {
    if (!is_taken(o, OPT_FETCH_NT))
        return (tern_fetch){0};
    return (tern_fetch){.ahead = (uint32_t)options_integer(o, OPT_FETCH_AHEAD),
                        .hint = fetch_hint(options_text(o, OPT_FETCH_NT)),
                        .kept_percent = 100.0 - options_real(o, OPT_FETCH_NT_RATIO)};
}

/* The largest number of answers that are computed at once. */
static uint32_t expected_together(const options *o) {
    if (o->command == COMMAND_SERVE)
        return (uint32_t)options_integer(o, OPT_PARALLEL);
    if (o->command != COMMAND_RUN || !options_given(o, OPT_PROMPTS_FILE))
        return 1;
    const uint64_t most = options_integer(o, OPT_RUN_PARALLEL);
    return most > 0 ? (uint32_t)most : UINT32_MAX; /* 0: no limit but memory */
}

/* A flag is an instruction. A variable is only a hint, because harnesses set it for models of any
 * kind. */
static void read_activations(const options *o, tern_model_params *params) {
    params->activations = options_text(o, OPT_ACTIVATION_PRECISION);
    params->activations_hint =
        params->activations != NULL && o->values[OPT_ACTIVATION_PRECISION].source != OPTION_FLAG;
}

tern_status params_read(const options *o, char cache[PATH_MAX], tern_model_params *params,
                        tern_error *err) {
    *params = tern_model_params_default();
    params->isa = options_text(o, OPT_ISA);
    params->disable = options_text(o, OPT_DISABLE);
    params->device = options_text(o, OPT_DEVICE);
    params->ranks = together_ranks();
    params->exact_head = options_switch(o, OPT_EXACT_HEAD);
    params->layout = params_layout(o);
    params->cache = params_cache(o, cache);
    params->cache_limit = options_integer(o, OPT_CACHE_LIMIT) << 20;
    params->images = image_use(o);
    params->tune = params_tune(o);
    params->tune_later = late_tuning_wanted(o);
    params->threads = (uint32_t)options_integer(o, OPT_THREADS);
    params->together = expected_together(o);
    params->fetch = fetch_params(o);
    params->dedup = dedup_params(o);
    params->no_sidecar = options_switch(o, OPT_NO_SIDECAR);
    params->long_context = options_switch(o, OPT_LONG_CONTEXT);
    params->pre_tokenizer = options_text(o, OPT_PRE);
    params->tokenizer = options_text(o, OPT_TOKENIZER);
    params->chat_format = params_chat_format(o);
    params->strict = options_switch(o, OPT_STRICT);
    read_activations(o, params);
    tern_status status = adapters_read(o, OPT_LORA, params, err);
    if (status == TERN_OK)
        status = params_read_codes(o, params, err);
    return status == TERN_OK ? placement_read(o, params, err) : status;
}
