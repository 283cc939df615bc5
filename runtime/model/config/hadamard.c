/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/config/hadamard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/word_list.h"
#include "runtime/files/gguf/internal.h"
#include "runtime/model/config/internal.h"
#include "runtime/model/parts/block.h"

#define PREFIX "prism.hadamard."

enum {
    VERSION = 1,
    SMALLEST_BLOCK = 16, /* the least that kernels take */
    LARGEST_BLOCK = 1 << 15,
    MAX_WIDTHS = 16,
    MAX_WIDTH = 65535
};

/* Known keys. */
static const char *const keys[] = {"version",      "block_size",   "transform",
                                   "axis",         "sign_mode",    "sign_widths",
                                   "sign_values",  "weight_names", "inverse_weight_names",
                                   "gdn_v_grouped"};

/* The input of a matrix of the block's table; TERN_BLOCK_INPUTS: its rows are never turned. */
static tern_block_input input_of(size_t matrix) {
    const tern_block_tensor *t = tern_block_matrix(matrix);
    if (t->routed || t->rows == TERN_SIZE_EXPERTS || t->when == TERN_HAS_SHARED_EXPERT)
        return TERN_BLOCK_INPUTS;
    switch (t->stage) {
    case TERN_STAGE_QKV:
        return TERN_BLOCK_QKV;
    case TERN_STAGE_OUT:
        return TERN_BLOCK_OUT;
    case TERN_STAGE_GATE_UP:
        return TERN_BLOCK_GATE_UP;
    default:
        return TERN_BLOCK_DOWN;
    }
}

/* The signs of one width. */
typedef struct width {
    uint32_t columns;
    const float *signs;
} width;

/* The state of reading the keys. */
typedef struct reader {
    const tern_gguf *file;
    const tern_config *c;
    tern_hadamards *out;
    tern_error *err;
    bool has_signs;
    width widths[MAX_WIDTHS];
    size_t n_widths;
    uint32_t *named; /* [n_layer] a bit for each listed matrix of the block's table */
    bool head, embedding, embedding_back; /* listed: output, token_embd, token_embd to turn back */
} reader;

/* ---- keys ---------------------------------------------------------------------------------- */

/* Sets *found if the file has any of the keys. An unknown one is refused. */
static tern_status look_for_keys(const reader *r, bool *found) {
    *found = false;
    for (size_t i = 0; i < tern_gguf_value_count(r->file); i++) {
        const tern_span key = tern_gguf_value_at(r->file, i)->key;
        size_t k = 0;
        if (!tern_span_begins_with(key, PREFIX))
            continue;
        const tern_span suffix = {key.data + strlen(PREFIX), key.size - strlen(PREFIX)};
        while (k < sizeof keys / sizeof *keys && !tern_span_is(suffix, keys[k]))
            k++;
        if (k == sizeof keys / sizeof *keys)
            return tern_fail(r->err, TERN_ERR_ARCH,
                             "%s: key %.*s: tern does not know this part of a Hadamard transform",
                             tern_gguf_name(r->file), TERN_SPAN_SHOWN(key));
        *found = true;
    }
    return TERN_OK;
}

/* Checks a key that has only one supported value. */
static tern_status expect(const reader *r, const char *key, const char *meaning) {
    tern_span text;
    const tern_status status = tern_gguf_string(r->file, key, &text, r->err);
    if (status == TERN_OK && !tern_span_is(text, meaning))
        return tern_fail(r->err, TERN_ERR_ARCH, "%s: key %s is '%.*s', tern knows '%s' only",
                         tern_gguf_name(r->file), key, TERN_SPAN_SHOWN(text), meaning);
    return status;
}

/* Delta nets whose heads are turned in groups are refused. Without such layers the key means
 * nothing. */
static tern_status refuse_groups(const reader *r) {
    static const char key[] = PREFIX "gdn_v_grouped";
    bool grouped = false;
    if (r->c->delta.n_states == 0 || tern_gguf_find(r->file, key) == NULL)
        return TERN_OK;
    const tern_status status = tern_gguf_bool(r->file, key, &grouped, r->err);
    return status == TERN_OK && grouped
               ? tern_fail(r->err, TERN_ERR_ARCH,
                           "%s: key %s: tern does not turn heads of delta nets in groups",
                           tern_gguf_name(r->file), key)
               : status;
}

static tern_status read_form(reader *r) {
    uint32_t version, block;
    tern_status s;
    if ((s = tern_gguf_u32(r->file, PREFIX "version", &version, r->err)))
        return s;
    if (version != VERSION)
        return tern_fail(r->err, TERN_ERR_ARCH, "%s: key " PREFIX "version is %u, tern knows %d",
                         tern_gguf_name(r->file), version, VERSION);
    if ((s = tern_gguf_u32(r->file, PREFIX "block_size", &block, r->err)) ||
        (s = expect(r, PREFIX "transform", "normalized-sylvester-walsh-hadamard")) ||
        (s = expect(r, PREFIX "axis", "input-last-dimension")))
        return s;
    if (block < SMALLEST_BLOCK || block > LARGEST_BLOCK || (block & (block - 1)) != 0)
        return tern_fail(r->err, TERN_ERR_KEY_RANGE,
                         "%s: key " PREFIX "block_size is %u, must be a power of two, %d to %d",
                         tern_gguf_name(r->file), block, SMALLEST_BLOCK, LARGEST_BLOCK);
    r->out->block = block;
    return TERN_OK;
}

/* ---- signs --------------------------------------------------------------------------------- */

/* Element i of an array as a sign: 1 or -1, else 0. */
static int sign_at(const tern_gguf_value *values, uint64_t i) {
    switch (values->element) {
    case TERN_GGUF_I8: {
        const int8_t v = (int8_t)values->data[i];
        return v == 1 || v == -1 ? v : 0;
    }
    case TERN_GGUF_I32: {
        const int32_t v = (int32_t)tern_load_u32(values->data + i * sizeof v);
        return v == 1 || v == -1 ? v : 0;
    }
    case TERN_GGUF_I64: {
        const int64_t v = (int64_t)tern_load_u64(values->data + i * sizeof v);
        return v == 1 || v == -1 ? (int)v : 0;
    }
    case TERN_GGUF_F32: {
        float v;
        memcpy(&v, values->data + i * sizeof v, sizeof v);
        return v == 1.0f ? 1 : v == -1.0f ? -1 : 0;
    }
    default:
        return 0;
    }
}

/* An array under a key, of any elements; NULL where the key is missing. */
static tern_status find_array(const reader *r, const char *key, const tern_gguf_value **out) {
    *out = tern_gguf_find(r->file, key);
    if (*out != NULL && (*out)->type != TERN_GGUF_ARRAY)
        return tern_fail(r->err, TERN_ERR_KEY_TYPE, "%s: key %s is not an array",
                         tern_gguf_name(r->file), key);
    return TERN_OK;
}

static tern_status add_width(reader *r, const tern_gguf_value *widths, size_t i, size_t *sum) {
    uint32_t columns;
    if (!tern_gguf_element_u32(widths, i, &columns) || columns == 0 || columns > MAX_WIDTH ||
        columns % r->out->block != 0)
        return tern_fail(r->err, TERN_ERR_KEY_RANGE,
                         "%s: key " PREFIX
                         "sign_widths: element %zu is not a multiple of block_size "
                         "%zu up to %d",
                         tern_gguf_name(r->file), i, r->out->block, MAX_WIDTH);
    for (size_t k = 0; k < i; k++)
        if (r->widths[k].columns == columns)
            return tern_fail(r->err, TERN_ERR_CONFIG, "%s: key " PREFIX "sign_widths has %u twice",
                             tern_gguf_name(r->file), columns);
    r->widths[i].columns = columns;
    *sum += columns;
    return TERN_OK;
}

static tern_status copy_signs(reader *r, const tern_gguf_value *values, size_t sum) {
    r->out->signs = malloc(sum * sizeof *r->out->signs);
    if (r->out->signs == NULL)
        return tern_fail(r->err, TERN_ERR_NOMEM, "%s: no memory for %zu signs",
                         tern_gguf_name(r->file), sum);
    for (size_t i = 0; i < sum; i++) {
        const int sign = sign_at(values, i);
        if (sign == 0)
            return tern_fail(r->err, TERN_ERR_KEY_RANGE,
                             "%s: key " PREFIX "sign_values: element %zu is neither 1 nor -1",
                             tern_gguf_name(r->file), i);
        r->out->signs[i] = (float)sign;
    }
    for (size_t i = 0, at = 0; i < r->n_widths; at += r->widths[i++].columns)
        r->widths[i].signs = r->out->signs + at;
    return TERN_OK;
}

static tern_status read_explicit_signs(reader *r, const tern_gguf_value *widths,
                                       const tern_gguf_value *values) {
    size_t sum = 0;
    if (widths == NULL || values == NULL)
        return tern_fail(r->err, TERN_ERR_KEY_MISSING, "%s: key %s is missing, signs are explicit",
                         tern_gguf_name(r->file),
                         widths == NULL ? PREFIX "sign_widths" : PREFIX "sign_values");
    if (widths->count == 0 || widths->count > MAX_WIDTHS)
        return tern_fail(r->err, TERN_ERR_KEY_RANGE,
                         "%s: key " PREFIX "sign_widths has %llu elements, must have 1 to %d",
                         tern_gguf_name(r->file), (unsigned long long)widths->count, MAX_WIDTHS);
    r->n_widths = (size_t)widths->count;
    for (size_t i = 0; i < r->n_widths; i++) {
        const tern_status status = add_width(r, widths, i, &sum);
        if (status != TERN_OK)
            return status;
    }
    if (values->count != sum)
        return tern_fail(r->err, TERN_ERR_CONFIG,
                         "%s: key " PREFIX "sign_values has %llu elements, sign_widths add up to "
                         "%zu",
                         tern_gguf_name(r->file), (unsigned long long)values->count, sum);
    return copy_signs(r, values, sum);
}

static tern_status read_signs(reader *r) {
    const tern_gguf_value *widths, *values;
    tern_span mode;
    tern_status s;
    if ((s = tern_gguf_string(r->file, PREFIX "sign_mode", &mode, r->err)) ||
        (s = find_array(r, PREFIX "sign_widths", &widths)) ||
        (s = find_array(r, PREFIX "sign_values", &values)))
        return s;
    r->has_signs = tern_span_is(mode, "explicit");
    if (r->has_signs)
        return read_explicit_signs(r, widths, values);
    if (!tern_span_is(mode, "identity"))
        return tern_fail(r->err, TERN_ERR_ARCH,
                         "%s: key " PREFIX "sign_mode is '%.*s', tern knows 'explicit' and "
                         "'identity'",
                         tern_gguf_name(r->file), TERN_SPAN_SHOWN(mode));
    if ((widths != NULL && widths->count > 0) || (values != NULL && values->count > 0))
        return tern_fail(r->err, TERN_ERR_CONFIG,
                         "%s: key " PREFIX "sign_mode is identity, but there are signs",
                         tern_gguf_name(r->file));
    return TERN_OK;
}

/* ---- names --------------------------------------------------------------------------------- */

/*
 * Splits "blk.<n>.<matrix>" into the layer and the index in the table. False: it is something else.
 */
static bool parse_name(const reader *r, tern_span name, uint32_t *layer, size_t *matrix) {
    size_t i = strlen("blk."), digits = 0;
    if (!tern_span_begins_with(name, "blk."))
        return false;
    *layer = 0;
    for (; i < name.size && name.data[i] >= '0' && name.data[i] <= '9' && digits < 5; i++, digits++)
        *layer = *layer * 10 + (uint32_t)(name.data[i] - '0');
    if (digits == 0 || i >= name.size || name.data[i] != '.' || *layer >= r->c->n_layer)
        return false;
    const tern_span rest = {name.data + i + 1, name.size - i - 1};
    for (*matrix = 0; *matrix < TERN_LAYER_LINEARS; ++*matrix)
        if (tern_span_is(rest, tern_block_matrix(*matrix)->name))
            return input_of(*matrix) != TERN_BLOCK_INPUTS;
    return false;
}

enum { NAME_BYTES = 48 };

/* The matrix of a layer; NULL: the file has none. Its name goes to name[NAME_BYTES]. */
static const tern_gguf_tensor *find_matrix(const reader *r, uint32_t layer, size_t matrix,
                                           char *name) {
    snprintf(name, NAME_BYTES, "blk.%u.%s", layer, tern_block_matrix(matrix)->name);
    return tern_gguf_find_tensor(r->file, name);
}

_Static_assert(TERN_LAYER_LINEARS <= 32, "a bit of `named` for each matrix");

/* Notes a name of weight_names. */
static tern_status note_name(reader *r, tern_span name) {
    char text[NAME_BYTES];
    uint32_t layer;
    size_t matrix;
    bool known = false, twice = false;
    if (tern_span_is(name, "output.weight")) {
        known = tern_gguf_find_tensor(r->file, "output.weight") != NULL;
        twice = r->head;
        r->head = true;
    } else if (tern_span_is(name, "token_embd.weight")) {
        known = true;
        twice = r->embedding;
        r->embedding = true;
    } else if (parse_name(r, name, &layer, &matrix)) {
        known = find_matrix(r, layer, matrix, text) != NULL;
        twice = (r->named[layer] >> matrix & 1) != 0;
        r->named[layer] |= UINT32_C(1) << matrix;
    }
    if (!known)
        return tern_fail(r->err, TERN_ERR_ARCH,
                         "%s: key " PREFIX
                         "weight_names: '%.*s' is not a matrix that tern turns rows "
                         "for",
                         tern_gguf_name(r->file), TERN_SPAN_SHOWN(name));
    return twice ? tern_fail(r->err, TERN_ERR_CONFIG,
                             "%s: key " PREFIX "weight_names has '%.*s' twice",
                             tern_gguf_name(r->file), TERN_SPAN_SHOWN(name))
                 : TERN_OK;
}

static tern_status read_names(reader *r) {
    const tern_gguf_value *names;
    tern_span name;
    tern_status status =
        tern_gguf_array(r->file, PREFIX "weight_names", TERN_GGUF_STRING, &names, r->err);
    if (status != TERN_OK)
        return status;
    const uint8_t *cursor = names->data;
    for (uint64_t i = 0; status == TERN_OK && i < names->count; i++) {
        name = tern_gguf_next_string(&cursor);
        status = note_name(r, name);
    }
    if (status != TERN_OK || tern_gguf_find(r->file, PREFIX "inverse_weight_names") == NULL)
        return status;
    status =
        tern_gguf_array(r->file, PREFIX "inverse_weight_names", TERN_GGUF_STRING, &names, r->err);
    if (status != TERN_OK)
        return status;
    cursor = names->data;
    for (uint64_t i = 0; i < names->count; i++) {
        name = tern_gguf_next_string(&cursor);
        if (!tern_span_is(name, "token_embd.weight"))
            return tern_fail(r->err, TERN_ERR_ARCH,
                             "%s: key " PREFIX "inverse_weight_names: '%.*s' is not the embedding",
                             tern_gguf_name(r->file), TERN_SPAN_SHOWN(name));
        r->embedding_back = true;
    }
    return TERN_OK;
}

/* ---- the model ----------------------------------------------------------------------------- */

/* Sets how rows of that width are turned; `who` is the tensor that reads them. */
static tern_status rotate_width(const reader *r, size_t columns, const char *who,
                                tern_hadamard *out) {
    const tern_hadamards *h = r->out;
    size_t i = 0;
    if (columns % h->block != 0)
        return tern_fail(r->err, TERN_ERR_CONFIG,
                         "%s: tensor %s: its %zu columns are not a multiple of " PREFIX
                         "block_size %zu",
                         tern_gguf_name(r->file), who, columns, h->block);
    while (i < r->n_widths && r->widths[i].columns != columns)
        i++;
    if (r->has_signs && i == r->n_widths)
        return tern_fail(r->err, TERN_ERR_CONFIG,
                         "%s: tensor %s: key " PREFIX "sign_widths lacks its %zu columns",
                         tern_gguf_name(r->file), who, columns);
    *out = (tern_hadamard){.block = h->block, .signs = r->has_signs ? r->widths[i].signs : NULL};
    return TERN_OK;
}

static size_t columns_of(const tern_config *c, tern_block_input input) {
    switch (input) {
    case TERN_BLOCK_OUT:
        return (size_t)c->n_head * c->head_dim;
    case TERN_BLOCK_DOWN:
        return c->n_ff;
    default:
        return c->n_embd;
    }
}

/* Sets how an input of a block is turned: all matrices that read it must be listed, or none. */
static tern_status rotate_input(const reader *r, uint32_t layer, tern_block_input input) {
    char name[NAME_BYTES], missing[NAME_BYTES] = "", listed[NAME_BYTES] = "";
    size_t n = 0;
    for (size_t i = 0; i < TERN_LAYER_LINEARS; i++) {
        if (input_of(i) != input || find_matrix(r, layer, i, name) == NULL)
            continue;
        const bool is_listed = (r->named[layer] >> i & 1) != 0;
        memcpy(is_listed ? listed : missing, name, sizeof name);
        n += is_listed;
    }
    if (n == 0)
        return TERN_OK;
    if (missing[0] != '\0')
        return tern_fail(r->err, TERN_ERR_CONFIG,
                         "%s: key " PREFIX "weight_names has %s, but not %s, which reads the same "
                         "rows",
                         tern_gguf_name(r->file), listed, missing);
    if (r->c->n_expert > 0 && (input == TERN_BLOCK_GATE_UP || input == TERN_BLOCK_DOWN))
        return tern_fail(r->err, TERN_ERR_ARCH,
                         "%s: key " PREFIX
                         "weight_names has %s, but tern turns no rows for experts",
                         tern_gguf_name(r->file), listed);
    r->out->matrices += n;
    return rotate_width(r, columns_of(r->c, input), listed, &r->out->blocks[layer][input]);
}

/* Sets how the embedding and the head are turned. A head that is the embedding reads turned rows if
 * the embedding is turned. */
static tern_status rotate_ends(const reader *r) {
    tern_hadamards *h = r->out;
    const bool tied =
        r->c->arch->embedding_head || tern_gguf_find_tensor(r->file, "output.weight") == NULL;
    if (r->embedding && !(tied && r->embedding_back))
        return tern_fail(r->err, TERN_ERR_CONFIG,
                         "%s: key " PREFIX "weight_names has token_embd.weight, which %s",
                         tern_gguf_name(r->file),
                         tied ? "inverse_weight_names does not have" : "is not the head");
    tern_status status = TERN_OK;
    if (r->embedding_back)
        status = rotate_width(r, r->c->n_embd, "token_embd.weight", &h->embedding);
    if (status != TERN_OK || !(tied ? r->embedding_back : r->head))
        return status;
    h->matrices++;
    return rotate_width(r, r->c->n_embd, tied ? "token_embd.weight" : "output.weight", &h->head);
}

static tern_status read_all(reader *r) {
    tern_status s;
    if ((s = read_form(r)) || (s = refuse_groups(r)) || (s = read_signs(r)) || (s = read_names(r)))
        return s;
    for (uint32_t layer = 0; layer < r->c->n_layer; layer++)
        for (int input = 0; input < TERN_BLOCK_INPUTS; input++)
            if ((s = rotate_input(r, layer, (tern_block_input)input)))
                return s;
    return rotate_ends(r);
}

tern_status tern_hadamards_read(const tern_gguf *file, const tern_config *c, tern_hadamards *out,
                                tern_error *err) {
    tern_hadamards h = {.block = 0};
    reader r = {.file = file, .c = c, .out = &h, .err = err};
    bool found;
    tern_status status = look_for_keys(&r, &found);
    if (status == TERN_OK && found) {
        r.named = calloc(c->n_layer, sizeof *r.named);
        h.blocks = calloc(c->n_layer, sizeof *h.blocks);
        status = r.named != NULL && h.blocks != NULL
                     ? read_all(&r)
                     : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %u layers",
                                 tern_gguf_name(file), c->n_layer);
        free(r.named);
    }
    if (status == TERN_OK)
        *out = h;
    else
        tern_hadamards_free(&h);
    return status;
}

void tern_hadamards_free(tern_hadamards *h) {
    free(h->blocks);
    free(h->signs);
    *h = (tern_hadamards){.block = 0};
}
