/* SPDX-License-Identifier: Apache-2.0 */

/* Lists the kernels that a runner has run, and those that a model could use. */

#include "runtime/engine/forward/internal.h"
#include "runtime/model/on_device.h"

/* The destination of a list of kernels. */
typedef struct listing {
    const tern_model *m;
    const tern_kernel_row **kernels;
    size_t capacity;
} listing;

/* Appends a kernel, or its replacement on the model's device, unless it is there already. Beyond
 * capacity only the count grows. */
static size_t add_kernel(const listing *l, const tern_kernel_row *of_processor, size_t count) {
    const tern_kernel_row *kernel = tern_model_kernel_there(l->m, of_processor);
    for (size_t i = 0; i < count && i < l->capacity; i++)
        if (l->kernels[i] == kernel)
            return count;
    if (count < l->capacity)
        l->kernels[count] = kernel;
    return count + 1;
}

/* Appends the kernels of one linear map. */
static size_t add_linear(const listing *l, const tern_linear *linear, size_t n) {
    return add_kernel(l, linear->gemm, add_kernel(l, linear->gemv, n));
}

size_t tern_model_kernels(const tern_model *m, tern_format kv, const tern_kernel_row **kernels,
                          size_t capacity) {
    const tern_kernel_set *r = &m->kernels;
    const listing l = {m, kernels, capacity};
    size_t n = add_kernel(&l, m->own.embedding.kernel, 0);
    n = add_kernel(
        &l, m->config.arch->encodes || m->config.arch->layer_norms ? r->layernorm : r->rmsnorm, n);
    unsigned forms =
        m->own.head.form | m->image.scan.form; /* quantized even when no logits are requested */
    for (uint32_t layer = 0; layer < m->config.n_layer; layer++)
        for (size_t i = 0; i < TERN_LAYER_LINEARS; i++) {
            const tern_linear *linear = tern_layer_linear(&m->layers[layer], i);
            if (linear->tensor == NULL)
                continue;
            forms |= linear->form;
            n = add_linear(&l, linear, n);
        }
    if (forms & TERN_INPUT_TOKEN)
        n = add_kernel(&l, r->quantize_token, n);
    if (forms & TERN_INPUT_BLOCK)
        n = add_kernel(&l, r->quantize_block, n);
    if (forms & TERN_INPUT_FLOAT && r->round != NULL)
        n = add_kernel(&l, r->round, n);
    if (m->hadamards.block > 0)
        n = add_kernel(&l, r->hadamard, n);
    if (!m->config.arch->encodes)
        n = add_kernel(&l, r->rope, n);
    n = add_kernel(&l, r->store[kv], n);
    n = add_kernel(&l, r->attend[kv], n);
    n = add_kernel(&l, r->gate, n);
    n = add_kernel(&l, r->add, n);
    if (m->config.n_expert > 0)
        n = add_kernel(&l, r->softmax, n);
    if (m->config.logit_cap > 0.0f)
        n = add_kernel(&l, r->tanh, n);
    if (m->image.scan.gemv != NULL)
        n = add_kernel(&l, m->image.scan.gemv, n);
    return add_linear(&l, &m->own.head, n);
}

size_t tern_runner_kernels(const tern_runner *r, const tern_kernel_row **kernels, size_t capacity) {
    const tern_tally *t = r->tally;
    for (size_t i = 0; i < t->n && i < capacity; i++)
        kernels[i] = t->ran[i];
    return t->n;
}

uint64_t tern_runner_calls(const tern_runner *r, const tern_kernel_row *kernel) {
    return r->tally->calls[kernel - r->tally->table];
}
