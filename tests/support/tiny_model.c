/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/tiny_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "authoring/gguf_writer.h"
#include "authoring/synth.h"
#include "dispatch/cpu.h"
#include "dispatch/select.h"
#include "tests/support/check.h"

enum { MAX_TENSORS = 96, MAX_PRESETS = 64, SEED = 1 };

/* True for preset i of the share that the test takes. */
static bool is_taken(size_t i) {
    size_t share, shares;
    const char *wanted = getenv("TERN_TEST_SHARE");
    if (wanted == NULL)
        return true;
    if (sscanf(wanted, "%zu/%zu", &share, &shares) != 2 || shares == 0)
        check_fail("TERN_TEST_SHARE must be K/N, not %s", wanted);
    return i % shares == share;
}

const char *const *tiny_presets(void) {
    static const char *names[MAX_PRESETS + 1];
    const tern_synth_preset *preset;
    size_t found = 0, n = 0;
    for (size_t i = 0; (preset = tern_synth_preset_at(i)) != NULL; i++) {
        if (strstr(preset->name, "-tiny") == NULL || !is_taken(found++))
            continue;
        if (n == MAX_PRESETS)
            check_fail("more than %d tiny presets", MAX_PRESETS);
        names[n++] = preset->name;
    }
    return names;
}

static void check_ok(tern_status status, const tern_error *err) {
    if (status != TERN_OK)
        check_fail("%s", err->message);
}

size_t tiny_isas(const char **names, size_t capacity) {
    size_t count;
    size_t n = 0;
    const tern_isa_info *isas = tern_isas(&count);
    for (size_t i = 0; i < count && n < capacity; i++)
        if (isas[i].built && (isas[i].needs & ~tern_cpu_features()) == 0)
            names[n++] = isas[i].name;
    return n;
}

void tiny_path(char path[TINY_PATH_BYTES]) {
    snprintf(path, TINY_PATH_BYTES, "/tmp/tern-tiny-XXXXXX");
    const int fd = mkstemp(path);
    if (fd < 0)
        check_fail("cannot make a temporary file");
    close(fd);
}

tern_model *tiny_open(const char *preset, const char *isa) {
    return tiny_open_with(preset, (tern_model_params){.isa = isa, .threads = 2});
}

tern_model *tiny_open_with(const char *preset, tern_model_params params) {
    tern_error err = {0};
    tern_model *model = NULL;
    char path[TINY_PATH_BYTES];
    tiny_path(path);
    tern_status status = tern_synth(preset, path, TERN_OUT_REPLACE, SEED, NULL, NULL, &err);
    if (status == TERN_OK)
        status = tern_model_open(path, &params, &model, &err);
    unlink(path);
    check_ok(status, &err);
    return model;
}

size_t tiny_cache_row_bytes(tern_format kv, size_t head_dim) {
    return kv == TERN_FORMAT_Q8_0  ? (head_dim + 31) / 32 * 34
           : kv == TERN_FORMAT_F16 ? 2 * head_dim
                                   : 4 * head_dim;
}

tern_session *tiny_session(const tern_model *model, tern_session_params params) {
    tern_error err = {0};
    tern_session *session = NULL;
    check_ok(tern_session_new(model, &params, &session, &err), &err);
    return session;
}

void tiny_same_cache(const tern_session *a, const tern_session *b, uint32_t n) {
    tern_model_info info;
    tern_model_describe(tern_session_model(a), &info);
    assert_int_equal(tern_session_cache(a), tern_session_cache(b));
    const size_t row_bytes = tiny_cache_row_bytes(tern_session_cache(a), info.head_dim);
    for (uint32_t layer = 0; layer < info.n_layer; layer++)
        for (uint32_t head = 0; head < info.n_head_kv; head++)
            for (uint32_t position = 0; position < n; position++)
                for (int value = 0; value < 2; value++) {
                    const void *want = tern_session_kv(a, value, layer, head, position);
                    const void *got = tern_session_kv(b, value, layer, head, position);
                    assert_int_equal(want == NULL, got == NULL);
                    if (want == NULL && tiny_mixes_layers(info.architecture))
                        continue; /* a delta net */
                    assert_non_null(want);
                    check_bytes(value ? "V" : "K", want, got, row_bytes);
                }
}

float *tiny_eval(tern_session *s, const int32_t *tokens, size_t n) {
    tern_error err = {0};
    float *logits = tern_session_logits(s);
    check_ok(tern_session_eval(s, tokens, n, TERN_LOGITS_LAST, logits, &err), &err);
    return logits;
}

void tiny_prompt(const tern_model *model, uint64_t seed, int32_t *ids, size_t n) {
    tern_model_info info;
    const tern_tokenizer *tokenizer;
    check_rng rng = {seed};
    tern_model_describe(model, &info);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)check_below(&rng, info.n_vocab);
    if (n > 0 && tern_model_tokenizer(model, &tokenizer, NULL) == TERN_OK &&
        tern_token_bos(tokenizer) >= 0)
        ids[0] = tern_token_bos(tokenizer);
}

float *tiny_floats(size_t n) {
    const size_t bytes = (n * sizeof(float) + TERN_ALIGN - 1) / TERN_ALIGN * TERN_ALIGN;
    float *values = aligned_alloc(TERN_ALIGN, bytes);
    if (values == NULL)
        check_fail("no memory for %zu floats", n);
    memset(values, 0xff, bytes); /* NaN, so that unwritten values show */
    return values;
}

/* ---- changed models ------------------------------------------------------------------------- */

static void copy_tensor(const tern_gguf_tensor *from, tiny_tensor *to) {
    memset(to, 0, sizeof *to);
    snprintf(to->name, sizeof to->name, "%.*s", (int)from->name.size, from->name.data);
    to->type = from->type;
    to->n_dims = from->n_dims;
    memcpy(to->ne, from->ne, sizeof to->ne);
    to->bytes = (size_t)from->bytes;
    to->data = malloc(to->bytes);
    assert_non_null(to->data);
    memcpy(to->data, from->data, to->bytes);
}

tiny_file tiny_read(const char *preset) {
    tern_error err = {0};
    tiny_file file = {.source = NULL, .alignment = 32};
    char path[TINY_PATH_BYTES];
    tiny_path(path);
    tern_status status = tern_synth(preset, path, TERN_OUT_REPLACE, SEED, NULL, NULL, &err);
    if (status == TERN_OK)
        status = tern_gguf_open(path, &file.source, &err);
    unlink(path);
    check_ok(status, &err);
    file.n = tern_gguf_tensor_count(file.source);
    file.tensors = calloc(MAX_TENSORS, sizeof *file.tensors);
    assert_non_null(file.tensors);
    assert_true(file.n < MAX_TENSORS);
    for (size_t i = 0; i < file.n; i++)
        copy_tensor(tern_gguf_tensor_at(file.source, i), &file.tensors[i]);
    return file;
}

void tiny_file_free(tiny_file *file) {
    for (size_t i = 0; i < file->n; i++)
        free(file->tensors[i].data);
    free(file->tensors);
    tern_gguf_close(&file->source);
    *file = (tiny_file){.source = NULL};
}

tiny_tensor *tiny_find(tiny_file *file, const char *name) {
    for (size_t i = 0; i < file->n; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    check_fail("the tiny model has no tensor %s", name);
    return NULL;
}

void tiny_remove(tiny_file *file, const char *name) {
    tiny_tensor *tensor = tiny_find(file, name);
    tiny_tensor *last = &file->tensors[--file->n];
    free(tensor->data);
    memmove(tensor, tensor + 1, (size_t)(last - tensor) * sizeof *tensor);
}

tiny_tensor *tiny_add(tiny_file *file, const char *name, tern_format format, uint64_t ne0,
                      uint64_t ne1) {
    uint64_t bytes = 0;
    assert_true(file->n < MAX_TENSORS);
    assert_int_equal(tern_format_bytes(format, ne1 ? ne1 : 1, ne0, &bytes), TERN_OK);
    tiny_tensor *tensor = &file->tensors[file->n++];
    *tensor = (tiny_tensor){.type = tern_format_describe(format)->gguf_type,
                            .n_dims = ne1 ? 2 : 1,
                            .ne = {ne0, ne1 ? ne1 : 1, 1, 1},
                            .bytes = (size_t)bytes};
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    tensor->data = calloc(1, tensor->bytes);
    assert_non_null(tensor->data);
    return tensor;
}

void tiny_write(const tiny_file *file, const char *path) {
    tern_error err = {0};
    tern_gguf_writer *w = NULL;
    check_ok(tern_gguf_writer_new(path, TERN_OUT_REPLACE, &w, &err), &err);
    for (size_t i = 0; i < tern_gguf_value_count(file->source); i++)
        tern_gguf_put_value(w, tern_gguf_value_at(file->source, i));
    if (file->alignment != 32)
        tern_gguf_put_u32(w, "general.alignment", file->alignment);
    if (file->filler != NULL)
        tern_gguf_put_string(w, "test.filler", file->filler);
    for (size_t i = 0; i < file->n; i++) {
        const tiny_tensor *t = &file->tensors[i];
        tern_gguf_put_tensor(w, t->name, t->type, t->n_dims, t->ne, t->bytes);
    }
    check_ok(tern_gguf_writer_begin(w, &err), &err);
    for (size_t i = 0; i < file->n; i++)
        check_ok(tern_gguf_writer_data(w, file->tensors[i].data, file->tensors[i].bytes, &err),
                 &err);
    check_ok(tern_gguf_writer_finish(&w, &err), &err);
}

bool tiny_mixes_layers(const char *preset) {
    return strncmp(preset, "qwen35", 6) == 0 || strncmp(preset, "qwen3next", 9) == 0;
}
