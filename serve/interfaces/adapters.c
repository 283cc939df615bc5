/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/adapters.h"

#include <math.h>
#include <string.h>

void adapter_scales_open(adapter_scales *s, const tern_model *model) {
    *s = (adapter_scales){.n = 0};
    s->n = tern_model_adapters(model, &s->infos);
    (void)pthread_mutex_init(&s->lock, NULL);
    for (size_t i = 0; i < s->n; i++)
        s->scale[i] = s->infos[i].scale;
}

void adapter_scales_close(adapter_scales *s) {
    (void)pthread_mutex_destroy(&s->lock);
}

void adapter_scales_get(adapter_scales *s, adapter_uses *out) {
    (void)pthread_mutex_lock(&s->lock);
    out->n = s->n;
    out->said = true;
    for (size_t i = 0; i < s->n; i++)
        out->list[i] = (tern_adapter_use){(uint32_t)i, s->scale[i]};
    (void)pthread_mutex_unlock(&s->lock);
}

void adapter_scales_set(adapter_scales *s, const adapter_uses *uses) {
    (void)pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n; i++)
        s->scale[i] = 0.0f;
    for (size_t i = 0; i < uses->n; i++)
        s->scale[uses->list[i].id] = uses->list[i].scale;
    (void)pthread_mutex_unlock(&s->lock);
}

static bool refuse_form(refusal *r) {
    return refuse(r, 400, "lora",
                  "lora: an array of objects {\"id\": 0, \"scale\": 0.5}, scales from -1000 to "
                  "1000");
}

/* True if the list has adapter `id` already. */
static bool is_named(const adapter_uses *uses, uint32_t id) {
    for (size_t i = 0; i < uses->n; i++)
        if (uses->list[i].id == id)
            return true;
    return false;
}

static bool read_use(const adapter_scales *s, const json_t *value, adapter_uses *out, refusal *r) {
    const json_t *id = json_object_get(value, "id"), *scale = json_object_get(value, "scale");
    const json_int_t number = json_integer_value(id);
    if (!json_is_integer(id) || !json_is_number(scale) || fabs(json_number_value(scale)) > 1e3)
        return refuse_form(r);
    if (number < 0 || (size_t)number >= s->n)
        return refuse(r, 400, "lora", "lora: there is no adapter %lld, this server has %zu",
                      (long long)number, s->n);
    if (is_named(out, (uint32_t)number))
        return refuse(r, 400, "lora", "lora: adapter %lld is named twice", (long long)number);
    out->list[out->n++] = (tern_adapter_use){(uint32_t)number, (float)json_number_value(scale)};
    return true;
}

bool adapter_uses_read(const adapter_scales *s, const json_t *list, adapter_uses *out, refusal *r) {
    const size_t n = json_array_size(list);
    out->n = 0;
    out->said = true;
    if (!json_is_array(list))
        return refuse_form(r);
    if (n > 0 && (s == NULL || s->n == 0))
        return refuse(r, 400, "lora", "lora: this server has no adapters (serve --lora)");
    for (size_t i = 0; i < n; i++)
        if (!read_use(s, json_array_get(list, i), out, r))
            return false;
    return true;
}

void adapter_scales_write(adapter_scales *s, text *out) {
    adapter_uses now;
    adapter_scales_get(s, &now);
    text_print(out, "[");
    for (size_t i = 0; i < s->n; i++) {
        const char *path = s->infos[i].path;
        const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
        text_print(out, "%s{\"id\":%zu", i > 0 ? "," : "", i);
        text_string(out, "path", name);
        text_string(out, "sha256", s->infos[i].digest);
        text_print(out, ",\"rank\":%u,\"scale\":", s->infos[i].rank);
        text_float(out, now.list[i].scale);
        text_print(out, "}");
    }
    text_print(out, "]");
}
