/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_RANK_H
#define TERN_AUTHORING_CONVERT_HF_RANK_H

/* The parts of a head that scores pairs of texts: tensors of a folder and of the written file. */

#include "authoring/convert/hf_config.h"

typedef struct hf_rank_part {
    const char *hf, *name; /* in the folder, and in the written file */
    size_t rows, cols;
    bool vector;
} hf_rank_part;

enum { HF_RANK_PARTS = 4 };

/* Part i < HF_RANK_PARTS; texts are static. */
hf_rank_part hf_rank_part_at(const hf_config *c, size_t i);

#endif
