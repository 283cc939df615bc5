/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/adapter_file.h"

#include <stdio.h>
#include <string.h>

#include "authoring/gguf_writer.h"
#include "kernels/half.h"
#include "tests/support/check.h"

enum { MOST = 1 << 14 }; /* numbers of a half of a pair */

/* A matrix of a block that tokens are multiplied by. */
static bool is_adapted(const tiny_tensor *t) {
    return strncmp(t->name, "blk.", 4) == 0 && t->n_dims == 2;
}

static void describe(tern_gguf_writer *w, const adapter_file *a, const tiny_tensor *t, bool half) {
    const uint64_t ne[2] = {half ? a->rank : t->ne[0], half ? t->ne[1] : a->rank};
    const tern_format_info *info = tern_format_describe(a->format);
    char name[80];
    (void)snprintf(name, sizeof name, "%s.lora_%c", t->name, half ? 'b' : 'a');
    tern_gguf_put_tensor(w, name, info->gguf_type, 2, ne, ne[0] * ne[1] * info->block_bytes);
}

static tern_status fill(tern_gguf_writer *w, const adapter_file *a, check_rng *rng, size_t n,
                        tern_error *err) {
    static float floats[MOST];
    static uint16_t halves[MOST];
    assert_true(n <= MOST);
    for (size_t i = 0; i < n; i++) {
        floats[i] = 0.05F * check_normal(rng);
        halves[i] = tern_f32_to_f16(floats[i]);
    }
    return a->format == TERN_FORMAT_F32 ? tern_gguf_writer_data(w, floats, n * sizeof *floats, err)
                                        : tern_gguf_writer_data(w, halves, n * sizeof *halves, err);
}

void adapter_file_write(const char *preset, const adapter_file *a, char path[TINY_PATH_BYTES]) {
    tiny_file model = tiny_read(preset);
    tern_gguf_writer *w = NULL;
    tern_error err = {0};
    tern_span architecture;
    check_rng rng = {a->seed};
    tiny_path(path);
    tern_status status = tern_gguf_writer_new(path, TERN_OUT_REPLACE, &w, &err);
    assert_int_equal(status, TERN_OK);
    (void)tern_gguf_string(model.source, "general.architecture", &architecture, NULL);
    tern_gguf_put_string(w, "general.type", "adapter");
    tern_gguf_put_text(w, "general.architecture", architecture);
    tern_gguf_put_string(w, "adapter.type", "lora");
    tern_gguf_put_f32(w, "adapter.lora.alpha", 16.0F);
    for (size_t i = 0; i < 2 * model.n; i++)
        if (is_adapted(&model.tensors[i / 2]))
            describe(w, a, &model.tensors[i / 2], i % 2);
    status = tern_gguf_writer_begin(w, &err);
    for (size_t i = 0; status == TERN_OK && i < 2 * model.n; i++)
        if (is_adapted(&model.tensors[i / 2]))
            status = fill(w, a, &rng, a->rank * model.tensors[i / 2].ne[i % 2], &err);
    if (status == TERN_OK)
        status = tern_gguf_writer_finish(&w, &err);
    tiny_file_free(&model);
    if (status != TERN_OK)
        check_fail("%s", err.message);
}
