/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a config.json. */
#include "authoring/convert/hf_reading.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hf_fail_key(hf_reading *r, tern_status status, const char *key, const char *what) {
    if (r->status == TERN_OK)
        r->status = tern_fail(r->err, status, "%s: \"%s\" %s", r->path, key, what);
}

/* A fallback > 0 replaces a missing key. */
uint32_t hf_read_count(hf_reading *r, const char *key, uint32_t fallback) {
    const tern_json_value *v = tern_json_get(r->root, key);
    int64_t value = fallback;
    if (v == NULL && fallback == 0)
        hf_fail_key(r, TERN_ERR_KEY_MISSING, key, "is missing");
    else if (v != NULL && !tern_json_integer(v, &value))
        hf_fail_key(r, TERN_ERR_KEY_TYPE, key, "is not an integer");
    if (value < 1 || value > INT32_MAX) {
        hf_fail_key(r, TERN_ERR_KEY_RANGE, key, "is not from 1 to 2147483647");
        return 1;
    }
    return (uint32_t)value;
}

/* A number of an object. A fallback that is not NAN replaces a missing one. */
double hf_read_real(hf_reading *r, const tern_json_value *object, const char *key,
                    double fallback) {
    const tern_json_value *v = tern_json_get(object, key);
    char text[64];
    if (v == NULL && !isnan(fallback))
        return fallback;
    if (v == NULL || v->type != TERN_JSON_NUMBER || v->text.size >= sizeof text) {
        hf_fail_key(r, v == NULL ? TERN_ERR_KEY_MISSING : TERN_ERR_KEY_TYPE, key,
                    v == NULL ? "is missing" : "is not a number");
        return 1.0;
    }
    memcpy(text, v->text.data, v->text.size);
    text[v->text.size] = '\0';
    const double value = strtod(text, NULL);
    if (!(value >= 0.0 && value <= 1e12)) {
        hf_fail_key(r, TERN_ERR_KEY_RANGE, key, "is not from 0 to 1e12");
        return 1.0;
    }
    return value;
}

/* A value as text for messages. */
static void show(const tern_json_value *v, char *text, size_t size) {
    const bool shown = v->type == TERN_JSON_STRING || v->type == TERN_JSON_NUMBER;
    (void)snprintf(text, size, shown ? "is '%.*s'" : "is neither text nor number",
                   (int)(v->text.size < 48 ? v->text.size : 48), v->text.data);
}

void hf_refuse_value(hf_reading *r, tern_status status, const char *key, const tern_json_value *v,
                     const char *why) {
    char value[80], what[512];
    show(v, value, sizeof value);
    (void)snprintf(what, sizeof what, "%s, %s", value, why);
    hf_fail_key(r, status, key, what);
}

bool hf_has_key(const hf_reading *r, const char *key) {
    return tern_json_get(r->root, key) != NULL;
}
