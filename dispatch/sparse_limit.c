/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch/sparse_limit.h"

#include <string.h>

typedef struct limit {
    const char *isa;
    tern_format format; /* of the values */
    unsigned percent;
} limit;

/* The least that `make bench-sparse` printed at its end, of the machines that were measured:
 * docs/report/sparse-blocks*.json. */
static const limit limits[] = {
    {"avx512", TERN_FORMAT_F32, 90},      {"avx2", TERN_FORMAT_F32, 80},
    {"sse41", TERN_FORMAT_F32, 80},       {"scalar", TERN_FORMAT_F32, 60},
    {"avx512", TERN_FORMAT_F16, 75},      {"avx2", TERN_FORMAT_F16, 100},
    {"sse41", TERN_FORMAT_F16, 100},      {"scalar", TERN_FORMAT_F16, 85},
    {"avx512vnni", TERN_FORMAT_I2_S, 80}, {"avx512", TERN_FORMAT_I2_S, 70},
    {"avxvnni", TERN_FORMAT_I2_S, 85},    {"avx2", TERN_FORMAT_I2_S, 75},
    {"sse41", TERN_FORMAT_I2_S, 75},      {"scalar", TERN_FORMAT_I2_S, 75},
};

unsigned tern_sparse_limit(const tern_kernel_row *kernel) {
    const tern_format format = tern_layout_sparse_format(kernel->layout);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].format == format && strcmp(limits[i].isa, kernel->isa) == 0)
            return limits[i].percent;
    return 100;
}

unsigned tern_sparse_limit_anywhere(tern_format format) {
    unsigned most = 0;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].format == format && limits[i].percent > most)
            most = limits[i].percent;
    return most > 0 ? most : 100;
}
