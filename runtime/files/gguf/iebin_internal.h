/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FILES_GGUF_IEBIN_INTERNAL_H
#define TERN_RUNTIME_FILES_GGUF_IEBIN_INTERNAL_H

/* Shared by iebin.c (the files) and iebin_tensor.c (an entry of the list). */

#include "base/json.h"
#include "runtime/files/gguf/iebin.h"
#include "runtime/files/gguf/internal.h"

/* A list while it is being read. */
typedef struct tern_iebin_reading {
    tern_gguf *file; /* the list; its `others` are the files that were opened so far */
    const tern_json_value *root;
    tern_iebin_opener *opener;
    void *user;
    size_t last; /* number in `others` of the file that was asked for last */
} tern_iebin_reading;

/* Returns the file that `name` names; opens it unless it is open. It must be a bare name. */
tern_status tern_iebin_file(tern_iebin_reading *r, const tern_json_value *name, tern_gguf **out,
                            tern_error *err);

/* Reads the text of a raw file as JSON, in memory of its own. */
tern_status tern_iebin_text(tern_gguf *file, tern_json *json, tern_error *err);

/* Reads a checksum, a text of 16 hexadecimal digits; false: it is something else. v may be NULL. */
bool tern_iebin_sum(const tern_json_value *v, uint64_t *out);

/* Reads entry number `index` of the list into *t. The file that holds its bytes counts it. */
tern_status tern_iebin_tensor(tern_iebin_reading *r, const tern_json_value *entry, size_t index,
                              tern_gguf_tensor *t, tern_error *err);

/* Reads the fields of an entry of INT4, whose name and shape *t has, and counts its bytes. */
tern_status tern_iebin_int4(const tern_gguf *file, const tern_json_value *entry,
                            tern_gguf_tensor *t, tern_error *err);

#endif
