/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/touch/touch_options.h"

#include <string.h>
#include <unistd.h>

#include "base/os/os.h"
#include "tools/cli/output.h"

/* The option of the touch, or the one for weights if only that one is given. */
static option_id given_of(const options *o, option_id own, option_id weights) {
    return !options_given(o, own) && options_given(o, weights) ? weights : own;
}

static touch_hint hint_of(const options *o) {
    const char *when = options_text(o, given_of(o, OPT_TOUCH_HINT, OPT_FETCH_NT));
    if (strcmp(when, "on") == 0)
        return TOUCH_HINT_ON;
    return strcmp(when, "off") == 0 ? TOUCH_HINT_OFF : TOUCH_HINT_AUTO;
}

int touch_open_as_asked(const options *o, touch *t) {
    const size_t cache = tern_os_last_cache_bytes();
    const option_id ahead = given_of(o, OPT_TOUCH_AHEAD, OPT_FETCH_AHEAD);
    const option_id ratio = given_of(o, OPT_TOUCH_HINT_RATIO, OPT_FETCH_NT_RATIO);
    const touch_plan plan = {.bytes = options_integer(o, OPT_TOUCH_BYTES),
                             .stride = options_integer(o, OPT_TOUCH_STRIDE),
                             .hint = hint_of(o),
                             .cache = cache,
                             .ahead_is_given = options_given(o, ahead),
                             .ahead = options_integer(o, ahead),
                             .keep_not = options_real(o, ratio)};
    if (plan.bytes == 0)
        return EXIT_DONE;
    if (plan.stride % sizeof(uint64_t) != 0) {
        complain("--touch-stride: %zu is not a multiple of 8", plan.stride);
        return EXIT_USAGE;
    }
    if (!touch_open(t, &plan)) {
        complain("no memory for %zu bytes to touch", plan.bytes);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

int touch_verify_as_asked(const options *o, const touch *t) {
    if (options_switch(o, OPT_VERIFY_TOUCH) && t->words != NULL && !touch_is_complete(t)) {
        complain("verify-touch: not every word was read");
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

void touch_set_json(json_t *root, const touch *t) {
    if (t == NULL || t->words == NULL)
        return;
    const size_t word = sizeof *t->words;
    const double seconds = t->tokens > 0 ? t->seconds / (double)t->tokens : 0.0;
    json_t *touched = json_object();
    json_object_set_new(touched, "bytes_per_token",
                        json_integer((json_int_t)(t->steps * t->stride * word)));
    json_object_set_new(touched, "stride", json_integer((json_int_t)(t->stride * word)));
    json_object_set_new(touched, "tokens", json_integer((json_int_t)t->tokens));
    json_object_set_new(touched, "ms_per_token", json_number(1e3 * seconds));
    json_object_set_new(touched, "non_temporal", json_boolean(t->non_temporal));
    json_object_set_new(touched, "non_temporal_percent",
                        json_number(t->non_temporal && t->ahead > 0 ? t->keep_not : 0.0));
    json_object_set_new(touched, "ahead", json_integer((json_int_t)(t->ahead * word)));
    json_object_set_new(touched, "complete", json_boolean(touch_is_complete(t)));
    json_object_set_new(root, "touch", touched);
}
