/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/parts/head.h"

#include <math.h>

tern_head_slack tern_head_slack_of(const tern_head_image *image, const float *x, const int8_t *q,
                                   const float *d) {
    const size_t cols = image->scan.matrix.cols;
    double x2 = 0.0, difference2 = 0.0;
    for (size_t i = 0; i < cols; i++) {
        const double rounded = (double)q[i] * (double)d[i / TERN_BLOCK];
        const double difference = (double)x[i] - rounded;
        x2 += (double)x[i] * (double)x[i];
        difference2 += difference * difference;
    }
    const double norm = sqrt(x2);
    const double difference = sqrt(difference2);
    /* The chain of the scan: a product and an addition a block, the scale; then the rounding of a
     * -+ bound. */
    const double chain = (double)((cols + TERN_BLOCK - 1) / TERN_BLOCK + 8);
    const double y = difference + chain * TERN_HEAD_ROUNDING * (norm + difference);
    return (tern_head_slack){.x = (float)(norm * TERN_HEAD_UPWARDS),
                             .y = (float)(y * TERN_HEAD_UPWARDS),
                             /* Neither x and y nor a sum of products on its way can overflow;
                              * false for NaN too. */
                             .certain = norm + y < 0x1p120 &&
                                        (double)image->largest * (norm + y) < 0x1p120};
}

/* Far more than denormal products can lose, 2^-149 each, and far less than matters. */
static const float denormals = 0x1p-100f;

void tern_head_bounds(const tern_head_image *image, tern_head_slack slack, size_t r0, size_t r1,
                      float *lower, float *upper) {
    const float *restrict error = image->error;
    const float *restrict norm = image->norm;
    float *restrict low = lower;
    float *restrict high = upper;
    for (size_t r = r0; r < r1; r++) {
        const float bound =
            (error[r] * slack.x + norm[r] * slack.y) * (float)TERN_HEAD_UPWARDS + denormals;
        const float middle = low[r];
        low[r] = middle - bound;
        high[r] = middle + bound;
    }
}
