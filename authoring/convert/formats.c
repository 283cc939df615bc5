/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/formats.h"

#include <string.h>
#include <strings.h>

#include "authoring/gguf_writer.h"
#include "base/word_list.h"
#include "kernels/facts.h"
#include "kernels/quantize_important.h"
#include "runtime/files/gguf/int4.h"

static bool is_float(tern_format format) {
    return format <= TERN_FORMAT_BF16;
}

bool convert_is_coarse(tern_format format) {
    return tern_format_facts_of(format)->coarse;
}

static tern_format find_format(const char *name) {
    for (int i = 0; name != NULL && i < TERN_FORMAT_COUNT; i++)
        if (strcasecmp(tern_format_describe((tern_format)i)->name, name) == 0)
            return (tern_format)i;
    return TERN_FORMAT_NONE;
}

tern_status convert_formats_read(const char *body, bool pure, const char *embedding,
                                 const char *output, const char *tl_tiles, convert_formats *out,
                                 tern_error *err) {
    *out = (convert_formats){.body = find_format(body),
                             .embedding = find_format(embedding),
                             .output = find_format(output),
                             .mixture = pure ? NULL : convert_mixture_find(body)};
    if (pure && out->body == TERN_FORMAT_NONE && convert_mixture_find(body) != NULL)
        return tern_fail(err, TERN_ERR_ARG, "%s is a mixture of formats: --pure needs one format",
                         body);
    if (body != NULL && (strcasecmp(body, "tl1") == 0 || strcasecmp(body, "tl2") == 0)) {
        out->tiled = strcasecmp(body, "tl1") == 0 ? TERN_TL1 : TERN_TL2;
        out->body = TERN_FORMAT_I2_S;
    }
    if (body != NULL && (strcasecmp(body, "iq1_bn") == 0 || strcasecmp(body, "iq2_bn") == 0)) {
        out->bn = strcasecmp(body, "iq1_bn") == 0 ? TERN_IQ1_BN : TERN_IQ2_BN;
        out->body = TERN_FORMAT_I2_S;
    }
    return tern_reading_init(&out->reading, TERN_I2S_UNITS_128, NULL, tl_tiles, err);
}

static tern_format embedding_format(tern_format body, tern_format source) {
    if (body == TERN_FORMAT_NONE || is_float(body))
        return body;
    const bool kept = convert_is_coarse(body) || body == TERN_FORMAT_INT4 || !is_float(source);
    return kept ? source : TERN_FORMAT_Q8_0;
}

/* True for tensors that choose experts: an error there picks another expert, not a slightly other
 * number. */
static bool is_router(const char *name) {
    return text_ends_with(name, ".ffn_gate_inp.weight") ||
           text_ends_with(name, ".ffn_gate_inp_shexp.weight");
}

static tern_format wanted(const convert_formats *asked, const char *name, tern_format source,
                          size_t cols) {
    const bool embedding = strcmp(name, "token_embd.weight") == 0;
    const bool output = strcmp(name, "output.weight") == 0;
    if (is_router(name) || text_begins_with(name, "cls.")) /* the head that scores pairs is small */
        return source;
    const tern_format own = embedding ? asked->embedding
                            : output  ? asked->output
                                      : TERN_FORMAT_NONE;
    if (own != TERN_FORMAT_NONE)
        return own;
    if (asked->mixture != NULL)
        return convert_mixture_format(asked->mixture, &asked->shape, name, cols);
    return embedding || output ? embedding_format(asked->body, source) : asked->body;
}

tern_status convert_int4_choose(const convert_formats *asked, const char *name, bool vector,
                                size_t cols, tern_format *target, tern_int4_rows *form,
                                tern_error *err) {
    const convert_q4_entry *entry = convert_q4_map_find(asked->map, name);
    if (entry != NULL && (vector || strncmp(name, "blk.", 4) != 0))
        return tern_fail(err, TERN_ERR_ARG,
                         "%s: tensor %s stays in floats: only matrices of "
                         "blocks become int4",
                         asked->map->path, name);
    if (entry != NULL && cols % TERN_INT4_BLOCK != 0)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "%s: tensor %s: %zu columns are not a multiple of 32, as int4 needs them",
                         asked->map->path, name, cols);
    if (entry != NULL)
        *target = TERN_FORMAT_INT4;
    if (entry != NULL)
        *form = entry->form;
    else if (*target == TERN_FORMAT_INT4 && asked->body == TERN_FORMAT_INT4)
        *form = asked->int4;
    form->group = form->group > cols ? cols : form->group;
    return TERN_OK;
}

/* True if the format is too coarse for a matrix of a block without importance: as llama.cpp has it,
 * all types of grids but the finest are. */
static bool needs_importance(const convert_formats *asked, const char *name, tern_format target) {
    const bool too_coarse = tern_grid_of(target) != NULL && target != TERN_FORMAT_IQ3_S;
    const bool in_mixture =
        asked->mixture != NULL && convert_mixture_needs_importance(asked->mixture, target);
    return strncmp(name, "blk.", 4) == 0 && (too_coarse || in_mixture);
}

/* Reports an entry of the importance file that does not fit the tensor. */
static tern_status refuse_importance(const char *name, size_t matrices, size_t cols,
                                     const tern_importance_entry *e, tern_error *err) {
    if (matrices == 1 && e->matrices == 1)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "tensor %s has %zu columns, the file of importance says %zu", name, cols,
                         e->cols);
    return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                     "tensor %s has %zu x %zu columns, the file of importance says %zu x %zu", name,
                     matrices, cols, e->matrices, e->cols);
}

tern_status convert_importance_choose(const convert_formats *asked, const char *name,
                                      size_t matrices, size_t cols, tern_format target,
                                      const tern_importance_entry **out, tern_error *err) {
    const bool weighs = target == TERN_FORMAT_INT4 || tern_format_weighs(target);
    *out = NULL;
    if (asked->importance == NULL && needs_importance(asked, name, target))
        return tern_fail(err, TERN_ERR_ARG,
                         "tensor %s: %s needs to know which columns matter: --imatrix FILE", name,
                         tern_format_describe(target)->name);
    if (asked->importance == NULL || !weighs)
        return TERN_OK;
    const tern_importance_entry *e = tern_importance_find(asked->importance, name);
    if (e == NULL && strncmp(name, "blk.", 4) == 0)
        return tern_fail(err, TERN_ERR_TENSOR_MISSING,
                         "tensor %s: the file of importance says nothing of it", name);
    if (e != NULL && !tern_importance_fits(e, cols, matrices))
        return refuse_importance(name, matrices, cols, e, err);
    *out = e;
    return TERN_OK;
}

bool convert_has_form(const convert_formats *asked, const char *name, tern_format target) {
    return (asked->tiled != 0 || asked->bn != 0) && target == TERN_FORMAT_I2_S &&
           strcmp(name, "output.weight") != 0;
}

uint32_t convert_file_type(const convert_formats *asked, tern_format most) {
    enum { FILE_TYPE_TL1 = 38, FILE_TYPE_TL2 = 39, FILE_TYPE_IQ1_BN = 136, FILE_TYPE_IQ2_BN };
    if (asked->bn != 0 && most == TERN_FORMAT_I2_S)
        return asked->bn == TERN_IQ1_BN ? FILE_TYPE_IQ1_BN : FILE_TYPE_IQ2_BN;
    if (asked->tiled != 0 && most == TERN_FORMAT_I2_S)
        return asked->tiled == TERN_TL1 ? FILE_TYPE_TL1 : FILE_TYPE_TL2;
    if (asked->mixture != NULL)
        return convert_mixture_file_type(asked->mixture);
    return tern_gguf_file_type(most);
}

tern_status convert_format_choose(const convert_formats *asked, const char *name,
                                  tern_format source, size_t rows, size_t cols, bool vector,
                                  tern_format *out, tern_error *err) {
    uint64_t bytes;
    const tern_format first = vector ? TERN_FORMAT_F32 : wanted(asked, name, source, cols);
    tern_format format = first != TERN_FORMAT_NONE ? first : source;
    while (tern_format_bytes(format, rows, cols, &bytes) != TERN_OK) {
        const tern_format next = tern_format_facts_of(format)->stand_in;
        if (next == TERN_FORMAT_NONE) {
            return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                             "tensor %s: %zu x %zu cannot be %s; i2_s needs a multiple of 128 "
                             "weights, tq1_0, tq2_0 and stq1_0 of 256 columns, q1_0, pq2_0 and "
                             "ptq1_0 of 128, q2_0 of 64",
                             name, rows, cols, tern_format_describe(format)->name);
        }
        format = next;
    }
    *out = format;
    return TERN_OK;
}
