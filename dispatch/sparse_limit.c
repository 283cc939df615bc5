/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch/sparse_limit.h"

#include <string.h>

typedef struct limit {
    const char *isa;
    tern_format format; /* of the values */
    unsigned percent;
} limit;

/* What `make bench-sparse` prints at its end. */
static const limit limits[] = {
    {"sse41", TERN_FORMAT_F32, 100},      {"sse41", TERN_FORMAT_F16, 90},
    {"sse41", TERN_FORMAT_I2_S, 85},      {"avx2", TERN_FORMAT_F32, 75},
    {"avx2", TERN_FORMAT_F16, 75},        {"avx2", TERN_FORMAT_I2_S, 75},
    {"avx512", TERN_FORMAT_F32, 75},      {"avx512", TERN_FORMAT_F16, 100},
    {"avx512vnni", TERN_FORMAT_I2_S, 80},
};

unsigned tern_sparse_limit(const tern_kernel_row *row) {
    const tern_format format = tern_layout_sparse_format(row->layout);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].format == format && strcmp(limits[i].isa, row->isa) == 0)
            return limits[i].percent;
    return 100;
}
