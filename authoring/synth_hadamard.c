/* SPDX-License-Identifier: Apache-2.0 */
/* The keys prism.hadamard.* of a preset whose matrices all read rotated rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/synth_internal.h"
#include "runtime/model/parts/block.h"

enum { NAME_BYTES = 48 };

static tern_span span_of(const char *text) {
    return (tern_span){text, strlen(text)};
}

/* The distinct widths of rows. */
static size_t find_widths(const tern_synth_model *m, int32_t out[3]) {
    const uint32_t all[] = {m->n_embd, m->n_head * m->head_dim, m->n_ff};
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t k = 0;
        while (k < n && out[k] != (int32_t)all[i])
            k++;
        if (k == n)
            out[n++] = (int32_t)all[i];
    }
    return n;
}

/* -1 or 1 from the top bit of a mixed counter: the same for every seed. */
static int32_t sign_of(uint64_t i) {
    uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (x ^ x >> 32) >> 63 ? -1 : 1;
}

static tern_status put_signs(tern_gguf_writer *w, const tern_synth_model *m, tern_error *err) {
    int32_t widths[3];
    const size_t n = find_widths(m, widths);
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (size_t)widths[i];
    int32_t *signs = malloc(sum * sizeof *signs);
    if (signs == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu signs", sum);
    for (size_t i = 0; i < sum; i++)
        signs[i] = sign_of(i);
    tern_gguf_put_string(w, "prism.hadamard.sign_mode", "explicit");
    tern_gguf_put_i32s(w, "prism.hadamard.sign_widths", widths, n);
    tern_gguf_put_i32s(w, "prism.hadamard.sign_values", signs, sum);
    free(signs);
    return TERN_OK;
}

/* Writes the names of all matrices of all blocks, and of the head. */
static tern_status put_names(tern_gguf_writer *w, const tern_synth_model *m, tern_error *err) {
    const tern_arch *arch = tern_arch_find(span_of(m->architecture));
    const size_t each = tern_block_linears(arch, 0), n = m->n_layer * each;
    tern_span *spans = malloc((n + 1) * sizeof *spans);
    char(*names)[NAME_BYTES] = malloc(n * sizeof *names);
    const tern_span embedding = span_of("token_embd.weight");
    if (spans != NULL && names != NULL) {
        for (size_t i = 0; i < n; i++) {
            snprintf(names[i], sizeof names[i], "blk.%zu.%s", i / each,
                     tern_block_matrix(tern_block_linear_at(arch, 0, i % each))->name);
            spans[i] = span_of(names[i]);
        }
        spans[n] = span_of("output.weight");
        tern_gguf_put_strings(w, "prism.hadamard.weight_names", spans, n + 1);
        tern_gguf_put_strings(w, "prism.hadamard.inverse_weight_names", &embedding, 1);
    }
    const bool done = spans != NULL && names != NULL;
    free(names);
    free(spans);
    return done ? TERN_OK : tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu names", n);
}

tern_status tern_synth_put_hadamard(tern_gguf_writer *w, const tern_synth_model *m,
                                    tern_error *err) {
    if (m->hadamard == 0)
        return TERN_OK;
    tern_gguf_put_u32(w, "prism.hadamard.version", 1);
    tern_gguf_put_u32(w, "prism.hadamard.block_size", m->hadamard);
    tern_gguf_put_string(w, "prism.hadamard.transform", "normalized-sylvester-walsh-hadamard");
    tern_gguf_put_string(w, "prism.hadamard.axis", "input-last-dimension");
    const tern_status status = put_signs(w, m, err);
    return status == TERN_OK ? put_names(w, m, err) : status;
}
