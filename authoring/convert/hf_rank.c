/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_rank.h"

#include "runtime/model/config/config.h"

static const hf_rank_part parts[HF_RANK_PARTS] = {
    {"pooler.dense.weight", "classifier.dense.weight", TERN_RANK_DENSE, false, true},
    {"pooler.dense.bias", "classifier.dense.bias", TERN_RANK_DENSE_BIAS, true, true},
    {"classifier.weight", "classifier.out_proj.weight", TERN_RANK_OUT, false, false},
    {"classifier.bias", "classifier.out_proj.bias", TERN_RANK_OUT_BIAS, true, false},
};

const hf_rank_part *hf_rank_part_at(size_t i) {
    return &parts[i];
}
