/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_quantization.h"

#include <stdio.h>
#include <string.h>

static const char elsewhere[] =
    "convert the model that was not quantized, or pull a GGUF file of it";

/* The bits of a weight, where the settings say them; 0: they do not. */
static int64_t bits_of(const tern_json_value *settings) {
    int64_t bits = 0;
    (void)tern_json_integer(tern_json_get(settings, "bits"), &bits);
    if (tern_json_is_true(tern_json_get(settings, "load_in_4bit")))
        bits = 4;
    if (tern_json_is_true(tern_json_get(settings, "load_in_8bit")))
        bits = 8;
    return bits > 0 && bits <= 64 ? bits : 0;
}

/* Writes what is known of the form: " (4 bits)", or the name of an algorithm, or nothing. */
static void put_form(const tern_json_value *settings, char *out, size_t size) {
    static const char *const names[] = {"quant_algo", "format"};
    const int64_t bits = bits_of(settings);
    if (bits > 0)
        (void)snprintf(out, size, " (%d bits)", (int)bits);
    for (size_t i = 0; bits == 0 && i < sizeof names / sizeof *names; i++) {
        const tern_json_value *x = tern_json_get(settings, names[i]);
        if (x != NULL && x->type == TERN_JSON_STRING && *out == '\0')
            (void)snprintf(out, size, " (%.*s)", (int)(x->text.size < 40 ? x->text.size : 40),
                           x->text.data);
    }
}

static void explain(const tern_json_value *settings, tern_span method, char *why) {
    char form[48] = "";
    put_form(settings, form, sizeof form);
    (void)snprintf(why, HF_QUANTIZATION_BYTES, "weights quantized by %.*s%s are not read: %s",
                   (int)(method.size < 40 ? method.size : 40), method.data, form, elsewhere);
}

bool hf_quantization_is_fp4(const tern_json_value *config) {
    const tern_json_value *q = tern_json_get(config, "quantization_config");
    const tern_json_value *method = tern_json_get(q, "quant_method");
    return tern_json_is_string(method, "modelopt")
               ? tern_json_is_string(tern_json_get(q, "quant_algo"), "NVFP4")
               : tern_json_is_string(method, "compressed-tensors") &&
                     tern_json_is_string(tern_json_get(q, "format"), "nvfp4-pack-quantized");
}

bool hf_quantization_is_foreign(const tern_json_value *config, char why[HF_QUANTIZATION_BYTES]) {
    static const tern_span mlx = {"MLX", 3};
    const tern_json_value *settings = tern_json_get(config, "quantization_config");
    const tern_json_value *older = tern_json_get(config, "quantization"); /* MLX's own name */
    const tern_json_value *method = tern_json_get(settings, "quant_method");
    settings = settings != NULL ? settings : older;
    if (settings == NULL || tern_json_is_string(method, "bitnet") || hf_quantization_is_fp4(config))
        return false;
    explain(settings, method != NULL ? method->text : mlx, why);
    return true;
}

/* ---- modules that stay ----------------------------------------------------------------------- */

static bool is_plain(tern_span name) {
    static const char signs[] = "_.";
    bool plain = name.size > 0;
    for (size_t i = 0; plain && i < name.size; i++) {
        const char c = name.data[i];
        plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                (c != '\0' && strchr(signs, c) != NULL);
    }
    return plain;
}

bool hf_kept_read(const tern_json_value *quantization, hf_kept *out,
                  char why[HF_QUANTIZATION_BYTES]) {
    const tern_json_value *list = tern_json_get(quantization, "modules_to_not_convert");
    size_t used = 0;
    *out = (hf_kept){.listed = list != NULL && list->type == TERN_JSON_ARRAY};
    if (!out->listed)
        return true;
    const tern_json_value *x = list + 1;
    for (uint32_t i = 0; i < list->count; i++, x += x->size) {
        const tern_span name = x->type == TERN_JSON_STRING ? x->text : (tern_span){"", 0};
        if (!is_plain(name) || name.size + 2 > sizeof out->names - used) {
            (void)snprintf(why, HF_QUANTIZATION_BYTES,
                           "names '%.*s', which is not a plain name, or too many modules",
                           (int)(name.size < 64 ? name.size : 64), name.data);
            return false;
        }
        memcpy(out->names + used, name.data, name.size);
        used += name.size + 1;
    }
    return true;
}

static bool begins_with(const char *module, size_t size, const char *name, size_t n) {
    return size >= n && memcmp(module, name, n) == 0 &&
           (size == n || module[n] == '.' || module[n - 1] == '.');
}

bool hf_kept_has(const hf_kept *kept, const char *tensor) {
    static const char weight[] = ".weight";
    const size_t all = strlen(tensor), tail = sizeof weight - 1;
    const size_t size = all > tail && strcmp(tensor + all - tail, weight) == 0 ? all - tail : all;
    for (const char *name = kept->names; *name != '\0'; name += strlen(name) + 1) {
        const size_t n = strlen(name);
        if (begins_with(tensor, size, name, n) ||
            (size >= n && memcmp(tensor + size - n, name, n) == 0))
            return true;
    }
    return false;
}
