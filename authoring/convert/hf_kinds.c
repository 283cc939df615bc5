/* SPDX-License-Identifier: Apache-2.0 */
/* Windows and layers of two kinds in a config.json. */
#include <math.h>
#include <stdio.h>

#include "authoring/convert/hf_reading.h"

/* Reads the window if the class has windows and this one hides anything. */
void hf_read_window(hf_reading *r, hf_config *c) {
    const tern_json_value *v = tern_json_get(r->root, "sliding_window");
    const tern_json_value *used = tern_json_get(r->root, "use_sliding_window");
    if (!c->windowed || v == NULL || v->type == TERN_JSON_NULL ||
        (used != NULL && used->type == TERN_JSON_FALSE))
        return;
    const uint32_t window = hf_read_count(r, "sliding_window", 0);
    c->window = window < c->n_ctx ? window : 0;
}

/* The period in a list of layers, all but some of which are called `others`. If no layer of the
 * list sees all, it is `usual`, or more than the number of layers. */
static uint32_t listed_period(hf_reading *r, const tern_json_value *list, const char *others,
                              uint32_t n_layer, uint32_t usual) {
    char why[112];
    uint32_t period = 0, n = 0;
    bool regular = list->type == TERN_JSON_ARRAY;
    for (size_t i = 1; regular && i < list->size; i += list[i].size) {
        const bool full = tern_json_is_string(list + i, "full_attention");
        n++;
        if (full && period == 0)
            period = n;
        regular = (full || tern_json_is_string(list + i, others)) &&
                  full == (period != 0 && n % period == 0);
    }
    (void)snprintf(why, sizeof why, "is not one full_attention after every so many %s, one a layer",
                   others);
    if (!regular || n != n_layer)
        hf_fail_key(r, TERN_ERR_CONFIG, "layer_types", why);
    return period != 0 ? period : usual > n ? usual : n + 1;
}

/* The period that a text such as LLLG says, of layers with a window and one without. */
static uint32_t written_period(hf_reading *r, const char *key, const tern_json_value *text) {
    const size_t n = text->text.size;
    bool regular = n > 0 && text->text.data[n - 1] == 'G';
    for (size_t i = 0; regular && i + 1 < n; i++)
        regular = text->text.data[i] == 'L';
    if (!regular)
        hf_refuse_value(r, TERN_ERR_CONFIG, key, text, "not one G after some L");
    return (uint32_t)n;
}

/* The period of layers that see everything; a list takes precedence over a number or a text. */
static uint32_t read_period(hf_reading *r, const hf_config *c) {
    static const char newer[] = "_sliding_window_pattern";
    const tern_json_value *list = tern_json_get(r->root, "layer_types");
    const char *key = hf_has_key(r, newer) ? newer : newer + 1;
    const tern_json_value *v = tern_json_get(r->root, key);
    const uint32_t period = v != NULL && v->type == TERN_JSON_STRING
                                ? written_period(r, key, v)
                                : hf_read_count(r, key, c->arch->second->period);
    return list != NULL ? listed_period(r, list, "sliding_attention", c->n_layer, period) : period;
}

/* Checks which layers turn q and k: all but every so many, as in the architecture. Files have no
 * key for that. */
static void check_turned(hf_reading *r, const hf_config *c) {
    static const char key[] = "no_rope_layers", step[] = "no_rope_layer_interval";
    const tern_json_value *list = tern_json_get(r->root, key);
    const uint32_t period = c->arch->second->period;
    uint32_t n = 0;
    bool fits = list != NULL && list->type == TERN_JSON_ARRAY;
    if (list == NULL || list->type == TERN_JSON_NULL) {
        if (hf_read_count(r, step, period) != period)
            hf_fail_key(r, TERN_ERR_CONFIG, step, "is not 4, as in this architecture");
        return;
    }
    for (size_t i = 1; fits && i < list->size; i += list[i].size) {
        int64_t turned = 0;
        fits = tern_json_integer(list + i, &turned) && turned == (++n % period != 0);
    }
    if (!fits || n != c->n_layer)
        hf_fail_key(r, TERN_ERR_CONFIG, key,
                    "is not 0 for every fourth layer and 1 for the others");
}

/* True if the folder says that no layer has a window, which makes all layers alike in some
 * architectures. */
static bool lacks_windows(const hf_reading *r, const hf_config *c) {
    const tern_json_value *v = tern_json_get(r->root, "sliding_window");
    return c->arch->may_lack_second && (v == NULL || v->type == TERN_JSON_NULL);
}

/* Layers that are delta nets, all but every so many, and their sizes. */
static void read_deltas(hf_reading *r, hf_config *c) {
    static const char every[] = "full_attention_interval", values[] = "linear_num_value_heads";
    const tern_json_value *list = tern_json_get(r->root, "layer_types");
    tern_delta_sizes *d = &c->delta;
    const uint32_t period = hf_read_count(r, every, c->arch->second->period);
    c->period =
        list != NULL ? listed_period(r, list, "linear_attention", c->n_layer, period) : period;
    d->n_taps = hf_read_count(r, "linear_conv_kernel_dim", 0);
    d->state_dim = hf_read_count(r, "linear_key_head_dim", 0);
    d->n_keys = hf_read_count(r, "linear_num_key_heads", 0);
    d->n_states = hf_read_count(r, values, 0);
    if (hf_read_count(r, "linear_value_head_dim", 0) != d->state_dim)
        hf_fail_key(r, TERN_ERR_CONFIG, "linear_value_head_dim",
                    "is not linear_key_head_dim, which is not supported");
    if (r->status == TERN_OK && d->n_states % d->n_keys != 0)
        hf_fail_key(r, TERN_ERR_HEADS, values, "is not a multiple of linear_num_key_heads");
    if (r->status == TERN_OK && c->period > c->n_layer)
        hf_fail_key(r, TERN_ERR_CONFIG, "layer_types", "has no full_attention");
}

/* Layers of two kinds: which ones have a window, its width, and the base of their rope. */
void hf_read_kinds(hf_reading *r, hf_config *c) {
    const tern_json_value *rope = hf_rope_of_kind(r, "sliding_attention");
    const tern_json_value *type = rope != NULL ? tern_json_get(rope, "rope_type") : NULL;
    if (c->arch->second == NULL || lacks_windows(r, c))
        return;
    if (c->arch->second->delta) {
        read_deltas(r, c);
        return;
    }
    if (!c->arch->second->windowed) {
        check_turned(r, c);
        return;
    }
    c->period = read_period(r, c);
    c->window = hf_read_count(r, "sliding_window", 0);
    if (!hf_has_own_bases(c->arch))
        return;
    if (type != NULL && !tern_json_is_string(type, "default"))
        hf_refuse_value(r, TERN_ERR_CONFIG, "rope_type", type,
                        "of windowed layers must be default");
    c->window_base =
        (float)(rope != NULL ? hf_read_real(r, rope, "rope_theta", (double)NAN)
                             : hf_read_real(r, r->root, "rope_local_base_freq", (double)NAN));
    if (!(c->window_base >= 1.0f))
        hf_fail_key(r, TERN_ERR_KEY_RANGE, rope != NULL ? "rope_theta" : "rope_local_base_freq",
                    "of windowed layers is below 1");
}
