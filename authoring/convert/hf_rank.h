/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_RANK_H
#define TERN_AUTHORING_CONVERT_HF_RANK_H

/* The parts of a head that scores pairs of texts: tensors of a folder and of the written file. */

#include <stdbool.h>
#include <stddef.h>

typedef struct hf_rank_part {
    const char *bert, *xlmr; /* in folders: BERT's pooler is the dense part, XLM-RoBERTa has its own */
    const char *name;        /* in the written file */
    bool vector, square;     /* one number or row a label, or as wide as the model */
} hf_rank_part;

enum { HF_RANK_PARTS = 4 };

/* Part i < HF_RANK_PARTS; static storage. */
const hf_rank_part *hf_rank_part_at(size_t i);

#endif
