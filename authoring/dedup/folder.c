/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the model without its shared bytes. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "authoring/dedup/dedup.h"
#include "authoring/iebin_writer.h"
#include "runtime/files/gguf/iebin.h"
#include "runtime/files/gguf/internal.h"

static void copy_keys(const tern_gguf *model, tern_gguf_writer *w) {
    for (size_t i = 0; i < tern_gguf_value_count(model); i++) {
        const tern_gguf_value *value = tern_gguf_value_at(model, i);
        if (value->key.size < 6 || memcmp(value->key.data, "split.", 6) != 0)
            tern_gguf_put_value(w, value);
    }
}

/*
 * The size by shape and type: the last I2_S tensor of a file may lack meaningless trailing bytes.
 */
static uint64_t full_bytes(const tern_gguf_tensor *t) {
    uint64_t bytes = 0;
    if (t->type >= TERN_GGUF_FIRST_OWN_TYPE ||
        tern_gguf_type_bytes(t->type, t->ne, &bytes) != TERN_OK)
        bytes = 0;
    return bytes > t->bytes ? bytes : t->bytes;
}

static void describe(const dedup_plan *plan, size_t i, tern_gguf_writer *w) {
    const tern_gguf_tensor *t = tern_gguf_tensor_at(plan->model, i);
    char name[TERN_GGUF_MAX_NAME_BYTES + 1];
    memcpy(name, t->name.data, t->name.size); /* at most 255 bytes */
    name[t->name.size] = '\0';
    if (t->int4.group > 0)
        tern_iebin_put_int4(w, name, t->n_dims, t->ne, &t->int4);
    else
        tern_gguf_put_tensor(w, name, t->type, t->n_dims, t->ne, full_bytes(t));
    if (plan->shared[i])
        tern_iebin_share_last(w);
}

static tern_status write_tensor(const tern_gguf_tensor *t, tern_gguf_writer *w, tern_error *err) {
    static const uint8_t zeros[TERN_GGUF_DEFAULT_ALIGNMENT];
    const uint64_t missing = full_bytes(t) - t->bytes;
    tern_status status = tern_gguf_writer_data(w, t->data, (size_t)t->bytes, err);
    for (uint64_t done = 0; status == TERN_OK && done < missing;) {
        const size_t n = missing - done < sizeof zeros ? (size_t)(missing - done) : sizeof zeros;
        status = tern_gguf_writer_data(w, zeros, n, err);
        done += n;
    }
    return status;
}

/* Removes a list that will be replaced before anything else, so no list ever describes the bytes of
 * another one. */
static tern_status remove_list(const char *folder, tern_error *err) {
    char *path = NULL;
    tern_status status = TERN_OK;
    if (asprintf(&path, "%s/%s", folder, TERN_IEBIN_LIST) < 0)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", folder);
    if (unlink(path) != 0 && errno != ENOENT)
        status = tern_fail(err, TERN_ERR_IO, "%s: cannot be replaced: %s", path, strerror(errno));
    free(path);
    return status;
}

static tern_status write_model(const dedup_plan *plan, tern_gguf_writer **w, tern_error *err) {
    const size_t n = tern_gguf_tensor_count(plan->model);
    copy_keys(plan->model, *w);
    for (size_t i = 0; i < n; i++)
        describe(plan, i, *w);
    tern_status status = tern_gguf_writer_begin(*w, err);
    for (size_t i = 0; status == TERN_OK && i < n; i++)
        if (!plan->shared[i])
            status = write_tensor(tern_gguf_tensor_at(plan->model, i), *w, err);
    return status == TERN_OK ? tern_gguf_writer_finish(w, err) : status;
}

tern_status dedup_write_folder(const dedup_plan *plan, const char *folder, tern_out_mode mode,
                               dedup_sizes *sizes, tern_error *err) {
    const bool made = access(folder, F_OK) != 0;
    tern_gguf_writer *w = NULL;
    char *prefix = NULL;
    if (asprintf(&prefix, "%s/model", folder) < 0)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", folder);
    tern_status status = tern_iebin_writer_new(folder, mode, &w, err);
    if (status == TERN_OK && mode == TERN_OUT_REPLACE)
        status = remove_list(folder, err);
    if (status == TERN_OK)
        status = dedup_write(plan, prefix, mode, sizes, err);
    if (status == TERN_OK) {
        status = write_model(plan, &w, err);
        if (status != TERN_OK)
            dedup_remove(prefix);
    }
    tern_gguf_writer_abort(&w);
    if (status != TERN_OK && made)
        (void)rmdir(folder); /* the writer could not remove it while shared bytes lay there */
    free(prefix);
    return status;
}
