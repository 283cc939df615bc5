/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/load/head_image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/load/weight_check.h"

/* ---- the image ----------------------------------------------------------------------------- */

/* Squares below 2^-149 vanish: those of numbers below 2^-74. 2^16 such numbers have a norm of
 * 2^-66. */
#define UNDERFLOW_NORM 0x1p-64

/* Sums of float squares over more columns could be off by more than the bound allows. No model is
 * as wide. */
enum { MAX_COLS = 1 << 16 };

/* One image in the making, shared by the team. */
typedef struct imaging {
    tern_load_job job; /* its memory: scratch */
    tern_matrix head;
    const tern_kernel_row *widen;    /* a row of the head to floats */
    const tern_kernel_row *quantize; /* floats to codes, with one scale */
    tern_matrix image;
    uint8_t *data;
    float *scale, *error, *norm;
} imaging;

/* The scratch of one worker: a row of floats, its codes, and 16 rows of codes, all padded. */
static size_t codes_stride(size_t cols) {
    return (cols + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
}

static size_t scratch_size(size_t cols) {
    return codes_stride(cols) * (TERN_ROW_GROUP + 1 + sizeof(float));
}

/* Sums of squares of w - scale * q, of w and of q. Each has sixteen lanes, of which the compiler
 * makes vectors; cols / 16 additions and a few more round each sum by less than 2^-10 of it. */
typedef struct squares {
    double difference, weights;
    uint64_t codes;
} squares;

enum { LANES = 16 };

static double sum_lanes(const float *lanes) {
    double sum = 0.0;
    for (size_t j = 0; j < LANES; j++)
        sum += (double)lanes[j];
    return sum * (1.0 + 0x1p-10);
}

static squares add_squares(const float *restrict w, const int8_t *restrict q, float scale,
                           size_t padded) {
    float d2[LANES] = {0}, w2[LANES] = {0};
    int32_t q2[LANES] = {0}; /* at most 127^2 * 2^16 columns < 2^31 */
    for (size_t i = 0; i < padded; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            const float d = w[i + j] - scale * (float)q[i + j];
            d2[j] += d * d;
            w2[j] += w[i + j] * w[i + j];
            q2[j] += q[i + j] * q[i + j];
        }
    squares s = {.difference = sum_lanes(d2), .weights = sum_lanes(w2)};
    for (size_t j = 0; j < LANES; j++)
        s.codes += (uint64_t)q2[j];
    return s;
}

/* Makes the codes (in q), scale and norms of row r; x is scratch. */
static void image_row(const imaging *m, size_t r, float *x, int8_t *q) {
    const tern_matrix *w = &m->head;
    const size_t cols = w->cols;
    float s;
    int32_t sum;
    m->widen->fn.embed(tern_float_row(w, r), cols, x);
    m->quantize->fn.quantize_token(x, cols, q, &s, &sum);
    const float scale = 1.0f / s;
    const squares n = add_squares(x, q, scale, codes_stride(cols));
    /* scale * q was rounded, to 2^-24 of itself, and so was the difference. */
    const double codes = (double)scale * sqrt((double)n.codes);
    const double weights = sqrt(n.weights);
    const double difference = sqrt(n.difference) + 0x1p-22 * (codes + weights) + UNDERFLOW_NORM;
    const double chain = (double)(cols / TERN_LANES + 8); /* a product, its lane, the tree */
    m->scale[r] = scale;
    m->error[r] = (float)((difference + chain * TERN_HEAD_ROUNDING * weights) * TERN_HEAD_UPWARDS);
    m->norm[r] = (float)(codes * TERN_HEAD_UPWARDS);
    if (!isfinite(m->error[r]) || !isfinite(m->norm[r])) { /* squares beyond the largest float */
        memset(q, 0, cols);
        m->scale[r] = 0.0f;
        m->error[r] = INFINITY;
        m->norm[r] = 0.0f;
    }
}

static tern_status image_rows(tern_load_job *job, tern_worker worker, size_t begin, size_t end,
                              tern_error *err) {
    const imaging *m = (const imaging *)(const void *)job;
    const size_t cols = m->image.cols;
    const size_t stride = codes_stride(cols);
    const size_t group_bytes = tern_packed_bytes(m->image.layout, TERN_ROW_GROUP, cols);
    uint8_t *scratch = (uint8_t *)job->memory + worker.index * scratch_size(cols);
    float *x = (float *)(void *)scratch;
    int8_t *q = (int8_t *)scratch + stride * sizeof(float);
    int8_t *codes = q + stride;
    tern_status status = TERN_OK;
    for (size_t r0 = begin; r0 < end && status == TERN_OK; r0 += TERN_ROW_GROUP) {
        const size_t rows = end - r0 < TERN_ROW_GROUP ? end - r0 : TERN_ROW_GROUP;
        status = tern_weight_check(m->head.format, m->head.data, cols, r0, r0 + rows, err);
        if (status != TERN_OK)
            return status;
        for (size_t i = 0; i < rows; i++) {
            image_row(m, r0 + i, x, q);
            memcpy(codes + i * cols, q, cols);
        }
        status = tern_pack_rows(TERN_FORMAT_INT8, codes, rows, cols, m->image.layout, 0, rows,
                                m->data + r0 / TERN_ROW_GROUP * group_bytes, err);
    }
    return status;
}

/* ---- from the head ------------------------------------------------------------------------- */

bool tern_head_image_plan(const tern_linear *head, tern_head_image *out) {
    const tern_matrix *m = &head->matrix;
    *out = (tern_head_image){.largest = INFINITY};
    if (m->layout != TERN_LAYOUT_ROWS || tern_matrix_is_decoded(m) || m->cols > MAX_COLS)
        return false;
    out->scan = (tern_linear){.form = TERN_INPUT_BLOCK,
                              .tensor = head->tensor,
                              .all_rows = head->all_rows,
                              .first_row = head->first_row};
    out->scan.matrix = (tern_matrix){.format = TERN_FORMAT_INT8,
                                     .layout = TERN_LAYOUT_INT8R16,
                                     .rows = m->rows,
                                     .cols = m->cols};
    return true;
}

tern_status tern_head_image_no_kernels(const tern_guard *guard, tern_error *err) {
    return guard->no_memory
               ? tern_fail(err, TERN_ERR_NOMEM, "no memory to try kernels of the output head")
               : tern_fail(err, TERN_ERR_KERNEL, "no kernels for an int8 head");
}

/* The job of an image, whose memory is read-only from the end of the job on. */
static imaging imaging_of(const tern_head_image *image, const tern_linear *head) {
    return (imaging){.head = head->matrix,
                     .image = image->scan.matrix,
                     .data = (uint8_t *)(uintptr_t)image->scan.matrix.data,
                     .scale = (float *)(uintptr_t)image->scan.matrix.row_scale,
                     .error = (float *)(uintptr_t)image->error,
                     .norm = (float *)(uintptr_t)image->norm};
}

/* Chooses kernels that the guard has tried: the bounds follow from their results. */
static tern_status choose_kernels(imaging *m, tern_guard *guard, tern_error *err) {
    m->widen =
        tern_guard_operation(guard, TERN_OP_EMBED, m->head.format, m->head.data, m->head.cols);
    if (m->widen != NULL)
        m->quantize =
            tern_guard_operation(guard, TERN_OP_QUANTIZE_TOKEN, TERN_FORMAT_NONE, NULL, 0);
    return m->widen != NULL && m->quantize != NULL ? TERN_OK
                                                   : tern_head_image_no_kernels(guard, err);
}

tern_status tern_head_image_note(const tern_head_image *image, const tern_linear *head,
                                 const tern_gguf *file, tern_guard *guard, uint32_t workers,
                                 tern_load_jobs *jobs, tern_error *err) {
    const size_t bytes = workers * scratch_size(head->matrix.cols);
    imaging *m = malloc(sizeof *m);
    void *scratch = aligned_alloc(TERN_ALIGN, bytes);
    tern_status status = TERN_ERR_NOMEM;
    if (m != NULL && scratch != NULL) {
        *m = imaging_of(image, head);
        status = choose_kernels(m, guard, err);
    } else {
        status = tern_fail(err, status, "no memory to make the int8 image of the head");
    }
    if (status != TERN_OK) {
        free(m);
        free(scratch);
        return status;
    }
    memset(scratch, 0, bytes); /* the padding of x stays 0 */
    const size_t row_bytes = (size_t)(tern_float_row(&m->head, 1) - tern_float_row(&m->head, 0));
    m->job = (tern_load_job){.make = image_rows,
                             .rows = m->image.rows,
                             .row_bytes = row_bytes,
                             .memory = scratch,
                             .file = file,
                             .tensor = head->tensor};
    if (head->in_file) /* its float rows will be read rarely */
        m->job.source = m->head.data;
    tern_load_jobs_add(jobs, &m->job);
    return TERN_OK;
}

void tern_head_image_finish(tern_head_image *image) {
    image->largest = 0.0f;
    for (size_t r = 0; r < image->scan.matrix.rows; r++) {
        const float bound = image->error[r] + image->norm[r];
        image->largest = bound > image->largest ? bound : image->largest;
    }
}
