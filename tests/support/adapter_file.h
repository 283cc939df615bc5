/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_SUPPORT_ADAPTER_FILE_H
#define TERN_TESTS_SUPPORT_ADAPTER_FILE_H

/* Adapters with random numbers for tiny models, in temporary files. */

#include "tests/support/tiny_model.h"

/* The numbers of one. */
typedef struct adapter_file {
    uint64_t seed;
    uint32_t rank;
    tern_format format; /* F32 or F16 */
} adapter_file;

/* Writes an adapter for every matrix of a preset's blocks. The caller removes the file. */
void adapter_file_write(const char *preset, const adapter_file *a, char path[TINY_PATH_BYTES]);

#endif
