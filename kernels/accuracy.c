/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tern/kernels.h"

tern_status tern_validate_accuracy(const float *reference, const float *output, size_t n,
                                   double tolerance, double *mse, tern_error *err) {
    double sum = 0.0;

    if (reference == NULL || output == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_validate_accuracy needs two lists of values");
    if (n == 0)
        return tern_fail(err, TERN_ERR_EMPTY, "no values to compare");
    for (size_t i = 0; i < n; i++) {
        const double difference = (double)output[i] - (double)reference[i];
        sum += difference * difference;
    }
    sum /= (double)n;
    if (mse != NULL)
        *mse = sum;
    if (!(sum <= tolerance)) /* a NaN is not accurate either */
        return tern_fail(err, TERN_ERR_ACCURACY,
                         "mean squared error %.3g of %zu values is above %.3g", sum, n, tolerance);
    return TERN_OK;
}
