/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the fields that say how a tensor of INT4 lies in its bytes. It is refused unless all are
 * there. */

#include <inttypes.h>

#include "runtime/files/gguf/iebin_internal.h"
#include "runtime/files/gguf/int4.h"

/* A field, and the words of which it must be one. */
typedef struct field {
    const char *name;
    const char *words[4];
} field;

enum { SCHEME, NIBBLE, ORDER, SCALE, ZERO, PLACE, FIELDS };

static const field fields[FIELDS] = {
    [SCHEME] = {"scheme", {"symmetric", "affine"}},
    [NIBBLE] = {"nibble", {"biased", "twos_complement", "unsigned"}},
    [ORDER] = {"nibble_order", {"low_first", "high_first"}},
    [SCALE] = {"scale_dtype", {"f16"}},
    [ZERO] = {"zero_point", {"none", "u8"}},
    [PLACE] = {"scales", {"after_each_row"}},
};

static tern_status wrong(const tern_gguf *file, const tern_gguf_tensor *t, const field *f,
                         const tern_json_value *v, tern_error *err) {
    if (v == NULL)
        return tern_fail(err, TERN_ERR_JSON, "%s: tensor '%.*s': int4 needs the field '%s'",
                         file->name, TERN_SPAN_ARG(t->name), f->name);
    return tern_fail(err, TERN_ERR_JSON, "%s: tensor '%.*s': '%s' is '%.*s', must be %s%s%s%s%s",
                     file->name, TERN_SPAN_ARG(t->name), f->name, TERN_SPAN_ARG(v->text),
                     f->words[0], f->words[1] != NULL ? " or " : "",
                     f->words[1] != NULL ? f->words[1] : "", f->words[2] != NULL ? " or " : "",
                     f->words[2] != NULL ? f->words[2] : "");
}

static tern_status read_field(const tern_gguf *file, const tern_gguf_tensor *t,
                              const tern_json_value *entry, const field *f, size_t *out,
                              tern_error *err) {
    const tern_json_value *v = tern_json_get(entry, f->name);
    for (*out = 0; f->words[*out] != NULL; (*out)++)
        if (tern_json_is_string(v, f->words[*out]))
            return TERN_OK;
    return wrong(file, t, f, v, err);
}

/* Reads how many columns share a scale: 32, 64, 128, or all of a row. */
static tern_status read_group(const tern_gguf *file, const tern_json_value *entry,
                              tern_gguf_tensor *t, tern_error *err) {
    const tern_json_value *v = tern_json_get(entry, "group");
    int64_t group = 0;
    if (tern_json_is_string(v, "row"))
        t->int4.group = t->ne[0];
    else if (tern_json_integer(v, &group) && (group == 32 || group == 64 || group == 128))
        t->int4.group = (uint64_t)group;
    else
        return tern_fail(err, TERN_ERR_JSON,
                         "%s: tensor '%.*s': int4 needs the field 'group': 32, 64, 128 or \"row\"",
                         file->name, TERN_SPAN_ARG(t->name));
    return TERN_OK;
}

tern_status tern_iebin_int4(const tern_gguf *file, const tern_json_value *entry,
                            tern_gguf_tensor *t, tern_error *err) {
    const uint64_t rows = t->ne[1] * t->ne[2] * t->ne[3]; /* below 2^62 with the columns */
    size_t said[FIELDS];
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < FIELDS; i++)
        status = read_field(file, t, entry, &fields[i], &said[i], err);
    if (status == TERN_OK)
        status = read_group(file, entry, t, err);
    if (status != TERN_OK)
        return status;
    const bool affine = said[SCHEME] == 1;
    if (affine != (said[ZERO] == 1) || affine != (said[NIBBLE] == 2))
        return tern_fail(err, TERN_ERR_JSON,
                         "%s: tensor '%.*s': 'scheme' affine goes with 'nibble' unsigned and "
                         "'zero_point' u8, symmetric with none of them",
                         file->name, TERN_SPAN_ARG(t->name));
    if (t->ne[0] % TERN_INT4_BLOCK != 0)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "%s: tensor '%.*s': %" PRIu64 " columns are not a multiple of 32",
                         file->name, TERN_SPAN_ARG(t->name), t->ne[0]);
    t->int4.zero_points = affine;
    t->int4.twos_complement = said[NIBBLE] == 1;
    t->int4.high_first = said[ORDER] == 1;
    t->bytes = rows * tern_int4_row_bytes(&t->int4, (size_t)t->ne[0]);
    return TERN_OK;
}
