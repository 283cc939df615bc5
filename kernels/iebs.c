/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files of sparse blocks: each field is checked before anything is read by it. */
#include "kernels/iebs.h"

#include <inttypes.h>
#include <math.h>

#include "kernels/half.h"

/* The u32 of a header, in their order. */
enum {
    MAGIC,
    VERSION,
    ROWS,
    COLS,
    BLOCK_ROWS,
    BLOCK_COLS,
    BLOCKS,
    KIND,
    SCALE,
    BLOCK_ROW_COUNT, /* versions 1 and 2: 0, and so is the word after it, the last one */
    PAYLOAD,         /* three u64: bytes of start, column, values */
    WORDS = TERN_IEBS_HEADER / 4
};

enum { VERSION_FLOATS = 1, VERSION_OTHERS = 2, VERSION_SIZES = 3, VALUES_ALIGN = 64 };

/* Kinds of values by their numbers. */
static const tern_format kinds[] = {TERN_FORMAT_F32, TERN_FORMAT_F16, TERN_FORMAT_I2_S};
enum { KINDS = sizeof kinds / sizeof *kinds, KIND_TERNARY = 2 };

/* Sides of blocks of ternary values. */
static bool is_chunked(uint32_t side) {
    return side == 4 || side == 8 || (side > 0 && side % TERN_IEBS_CHUNK == 0);
}

bool tern_iebs_holds(tern_format format, uint32_t block_rows, uint32_t block_cols) {
    if (format == TERN_FORMAT_I2_S)
        return is_chunked(block_rows) && is_chunked(block_cols);
    return (format == TERN_FORMAT_F32 || format == TERN_FORMAT_F16) && block_rows > 0 &&
           block_cols > 0;
}

/* Below 2^64: both sides are below 2^32, and a float of either kind has at most 4 bytes. */
static bool find_block_bytes(const tern_iebs *m, uint64_t *out) {
    const uint64_t values = (uint64_t)m->block_rows * m->block_cols;
    if (m->format == TERN_FORMAT_I2_S)
        *out = values / 4;
    else if (__builtin_mul_overflow(values, m->format == TERN_FORMAT_F32 ? 4 : 2, out))
        return false;
    return *out <= SIZE_MAX / 2;
}

static size_t header_bytes(uint32_t version) {
    return version == VERSION_FLOATS || version == VERSION_OTHERS ? TERN_IEBS_OLDER_HEADER
                                                                  : TERN_IEBS_HEADER;
}

/* Bytes before the values. */
static uint64_t values_at(const tern_iebs *m) {
    const uint64_t end = header_bytes(m->version) + 4 * ((uint64_t)tern_iebs_block_rows(m) + 1) +
                         4 * (uint64_t)m->blocks;
    return m->format == TERN_FORMAT_F32 ? end
                                        : (end + VALUES_ALIGN - 1) / VALUES_ALIGN * VALUES_ALIGN;
}

uint64_t tern_iebs_bytes(const tern_iebs *m) {
    uint64_t block, bytes;
    if (m->rows == 0 || m->cols == 0 || !tern_iebs_holds(m->format, m->block_rows, m->block_cols) ||
        m->blocks > (uint64_t)tern_iebs_block_rows(m) * tern_iebs_block_columns(m) ||
        !find_block_bytes(m, &block) || __builtin_mul_overflow(block, m->blocks, &bytes) ||
        bytes > INT64_MAX - values_at(m))
        return 0;
    return values_at(m) + bytes;
}

/* Bytes of the three parts after a header. */
typedef struct payload {
    uint64_t start, column, values;
} payload;

/* Sizes of a possible matrix (tern_iebs_bytes). */
static payload payload_of(const tern_iebs *m) {
    uint64_t block = 0;
    (void)find_block_bytes(m, &block);
    return (payload){4 * ((uint64_t)tern_iebs_block_rows(m) + 1), 4 * (uint64_t)m->blocks,
                     block * m->blocks};
}

/* The fields of a header alone: nothing else need be there. */
static tern_iebs read_fields(const uint32_t *words) {
    tern_iebs m = {.format = kinds[words[KIND]],
                   .rows = words[ROWS],
                   .cols = words[COLS],
                   .block_rows = words[BLOCK_ROWS],
                   .block_cols = words[BLOCK_COLS],
                   .blocks = words[BLOCKS],
                   .scale = 1.0f,
                   .version = words[VERSION]};
    uint64_t block_bytes = 0;
    if (find_block_bytes(&m, &block_bytes))
        m.block_bytes = (size_t)block_bytes;
    if (m.format == TERN_FORMAT_I2_S)
        memcpy(&m.scale, &words[SCALE], sizeof m.scale);
    return m;
}

tern_iebs tern_iebs_view(const void *bytes) {
    tern_iebs m = read_fields(bytes);
    m.start = (const uint32_t *)bytes + header_bytes(m.version) / 4;
    m.column = m.start + tern_iebs_block_rows(&m) + 1;
    m.values = (const uint8_t *)bytes + values_at(&m);
    return m;
}

void tern_iebs_write_header(const tern_iebs *m, void *out) {
    uint32_t kind = 0;
    while (kinds[kind] != m->format)
        kind++;
    uint32_t words[WORDS] = {TERN_IEBS_MAGIC, VERSION_SIZES, m->rows,   m->cols,
                             m->block_rows,   m->block_cols, m->blocks, kind};
    const payload sizes = payload_of(m);
    words[BLOCK_ROW_COUNT] = (uint32_t)tern_iebs_block_rows(m);
    memcpy(&words[PAYLOAD], &sizes, sizeof sizes);
    if (kind == KIND_TERNARY)
        memcpy(&words[SCALE], &m->scale, sizeof m->scale);
    memcpy(out, words, sizeof words);
}

/* Checks that a version has values of a kind. */
static bool has_kind(uint32_t version, uint32_t kind) {
    return version == VERSION_FLOATS   ? kind == 0
           : version == VERSION_OTHERS ? kind > 0 && kind < KINDS
                                       : kind < KINDS;
}

/* Checks the words of a header against each other, except for sizes. */
static tern_status check_words(const uint32_t *words, tern_error *err) {
    float scale;
    if (words[MAGIC] != TERN_IEBS_MAGIC)
        return tern_fail(err, TERN_ERR_TENSOR_DATA,
                         "sparse blocks: begin with %08" PRIx32 ", not with IEBS", words[MAGIC]);
    if (words[VERSION] == 0 || words[VERSION] > VERSION_SIZES)
        return tern_fail(err, TERN_ERR_TENSOR_DATA,
                         "sparse blocks: version %" PRIu32 ", only 1 to 3 are known",
                         words[VERSION]);
    if (!has_kind(words[VERSION], words[KIND]))
        return tern_fail(err, TERN_ERR_TENSOR_DATA,
                         "sparse blocks: values of kind %" PRIu32 " in version %" PRIu32,
                         words[KIND], words[VERSION]);
    memcpy(&scale, &words[SCALE], sizeof scale);
    if (words[KIND] != KIND_TERNARY && words[SCALE] != 0)
        return tern_fail(err, TERN_ERR_TENSOR_DATA, "sparse blocks: floats have a scale");
    if (!isfinite(scale) || scale < 0.0f)
        return tern_fail(err, TERN_ERR_TENSOR_DATA,
                         "sparse blocks: scale %g, must be finite and not negative", (double)scale);
    if (words[VERSION] != VERSION_SIZES && (words[BLOCK_ROW_COUNT] != 0 || words[PAYLOAD] != 0))
        return tern_fail(err, TERN_ERR_TENSOR_DATA, "sparse blocks: reserved words are not 0");
    return TERN_OK;
}

/* Checks, for a possible matrix, the sizes that version 3 repeats and that follow from the others.
 */
static tern_status check_payload(const uint32_t *words, const tern_iebs *m, tern_error *err) {
    const payload want = payload_of(m);
    payload said;
    if (m->version != VERSION_SIZES)
        return TERN_OK;
    memcpy(&said, &words[PAYLOAD], sizeof said);
    if (words[BLOCK_ROW_COUNT] != tern_iebs_block_rows(m))
        return tern_fail(err, TERN_ERR_TENSOR_RANGE,
                         "sparse blocks: %" PRIu32 " block rows, must be %zu",
                         words[BLOCK_ROW_COUNT], tern_iebs_block_rows(m));
    if (said.start != want.start || said.column != want.column || said.values != want.values)
        return tern_fail(err, TERN_ERR_TENSOR_RANGE,
                         "sparse blocks: parts of %" PRIu64 ", %" PRIu64 " and %" PRIu64
                         " bytes, must be %" PRIu64 ", %" PRIu64 " and %" PRIu64,
                         said.start, said.column, said.values, want.start, want.column,
                         want.values);
    return TERN_OK;
}

static tern_status check_sizes(const tern_iebs *m, size_t size, tern_error *err) {
    const uint64_t bytes = tern_iebs_bytes(m);
    if (bytes == 0)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "sparse blocks: %" PRIu32 " blocks of %" PRIu32 " x %" PRIu32
                         " in %" PRIu32 " x %" PRIu32 " weights cannot be",
                         m->blocks, m->block_rows, m->block_cols, m->rows, m->cols);
    if (bytes != size)
        return tern_fail(err, TERN_ERR_TENSOR_RANGE, "sparse blocks: %zu bytes, must be %" PRIu64,
                         size, bytes);
    return TERN_OK;
}

static tern_status check_columns(const tern_iebs *m, size_t i, tern_error *err) {
    const size_t columns = tern_iebs_block_columns(m);
    for (size_t b = m->start[i]; b < m->start[i + 1]; b++)
        if (m->column[b] >= columns || (b > m->start[i] && m->column[b] <= m->column[b - 1]))
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "sparse blocks: block %zu in column %" PRIu32
                             " of %zu is out of place",
                             b, m->column[b], columns);
    return TERN_OK;
}

/* Places of all blocks. The bytes of both lists are there: check_sizes. */
static tern_status check_places(const tern_iebs *m, tern_error *err) {
    const size_t block_rows = tern_iebs_block_rows(m);
    tern_status status = TERN_OK;
    if (m->start[0] != 0 || m->start[block_rows] != m->blocks)
        return tern_fail(err, TERN_ERR_TENSOR_DATA,
                         "sparse blocks: rows begin at block %" PRIu32 " and end at %" PRIu32
                         " of %" PRIu32,
                         m->start[0], m->start[block_rows], m->blocks);
    for (size_t i = 0; i < block_rows; i++)
        if (m->start[i] > m->start[i + 1])
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "sparse blocks: block row %zu ends before it starts", i);
    for (size_t i = 0; status == TERN_OK && i < block_rows; i++)
        status = check_columns(m, i, err);
    return status;
}

static tern_status check_padding(const tern_iebs *m, tern_error *err) {
    for (const uint8_t *p = (const uint8_t *)(m->column + m->blocks); p < m->values; p++)
        if (*p != 0)
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "sparse blocks: bytes before the values are not 0");
    return TERN_OK;
}

tern_status tern_iebs_check(const void *bytes, size_t size, tern_iebs *out, tern_error *err) {
    *out = (tern_iebs){.format = TERN_FORMAT_F32};
    const size_t header = size < TERN_IEBS_OLDER_HEADER
                              ? TERN_IEBS_OLDER_HEADER
                              : header_bytes(((const uint32_t *)bytes)[VERSION]);
    if (size < header)
        return tern_fail(err, TERN_ERR_TRUNCATED, "sparse blocks: %zu bytes, a header has %zu",
                         size, header);
    tern_status status = check_words(bytes, err);
    if (status == TERN_OK) {
        const tern_iebs fields = read_fields(bytes);
        status = check_sizes(&fields, size, err);
        if (status == TERN_OK)
            status = check_payload(bytes, &fields, err);
    }
    if (status != TERN_OK)
        return status;
    const tern_iebs m = tern_iebs_view(bytes);
    status = check_places(&m, err);
    if (status == TERN_OK)
        status = check_padding(&m, err);
    if (status == TERN_OK)
        *out = m;
    return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The value in row r, column k of a block. */
static float value_at(const tern_iebs *m, const uint8_t *block, size_t r, size_t k) {
    const size_t i = r * m->block_cols + k;
    float value;
    if (m->format == TERN_FORMAT_I2_S)
        return m->scale * (float)tern_iebs_trit(m, block, r, k);
    if (m->format == TERN_FORMAT_F16)
        return tern_f16_load(block + 2 * i);
    memcpy(&value, block + 4 * i, sizeof value);
    return value;
}

/* A code 3 has both bits of a pair set. */
static bool has_code_3(const uint8_t *codes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (codes[i] & codes[i] >> 1 & 0x55)
            return true;
    return false;
}

static bool is_finite(const tern_iebs *m, const uint8_t *block) {
    for (size_t r = 0; r < m->block_rows; r++)
        for (size_t k = 0; k < m->block_cols; k++)
            if (!isfinite(value_at(m, block, r, k)))
                return false;
    return true;
}

tern_status tern_iebs_values(const tern_iebs *m, size_t i0, size_t i1, tern_error *err) {
    const bool ternary = m->format == TERN_FORMAT_I2_S;
    for (size_t b = m->start[i0]; b < m->start[i1]; b++) {
        const uint8_t *block = tern_iebs_block(m, b);
        if (ternary ? has_code_3(block, m->block_bytes) : !is_finite(m, block))
            return tern_fail(err, TERN_ERR_TENSOR_DATA, "sparse block %zu: %s", b,
                             ternary ? "holds code 3, which is not a ternary weight"
                                     : "holds a value that is not finite");
    }
    return TERN_OK;
}

void tern_iebs_row(const tern_iebs *m, size_t r, float *out) {
    const size_t i = r / m->block_rows;
    memset(out, 0, m->cols * sizeof *out);
    for (size_t b = m->start[i]; b < m->start[i + 1]; b++)
        for (size_t k = 0; k < tern_iebs_width(m, b); k++)
            out[(size_t)m->column[b] * m->block_cols + k] =
                value_at(m, tern_iebs_block(m, b), r % m->block_rows, k);
}
