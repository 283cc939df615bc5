/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_rank.h"

#include "runtime/model/config/config.h"

/* BERT's pooler is the dense part; XLM-RoBERTa's classifier has its own. */
static const struct {
    const char *bert, *xlmr, *name;
    bool vector, dense;
} parts[HF_RANK_PARTS] = {
    {"pooler.dense.weight", "classifier.dense.weight", TERN_RANK_DENSE, false, true},
    {"pooler.dense.bias", "classifier.dense.bias", TERN_RANK_DENSE_BIAS, true, true},
    {"classifier.weight", "classifier.out_proj.weight", TERN_RANK_OUT, false, false},
    {"classifier.bias", "classifier.out_proj.bias", TERN_RANK_OUT_BIAS, true, false},
};

hf_rank_part hf_rank_part_at(const hf_config *c, size_t i) {
    const bool vector = parts[i].vector, dense = parts[i].dense;
    return (hf_rank_part){.hf = c->other_class ? parts[i].xlmr : parts[i].bert,
                          .name = parts[i].name,
                          .rows = dense && !vector ? c->n_embd : 1,
                          .cols = dense || !vector ? c->n_embd : 1,
                          .vector = vector};
}
