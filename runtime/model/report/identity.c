/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The identity of a model: it differs between models whose answers could differ. It covers every
 * weight, and the metadata that the forward pass reads. Tokenizer, name and chat format are left
 * out, and so are the order of tensors and how the model is spread over files: the sum of the
 * entries' hashes does not depend on order.
 */

#include <stdatomic.h>
#include <string.h>

#include "base/hash64.h"
#include "runtime/files/gguf/int4.h"
#include "runtime/files/gguf/internal.h"
#include "runtime/model/model.h"

static void add_span(tern_hash64 *h, tern_span text) {
    const uint64_t size = text.size;
    tern_hash64_add(h, &size, sizeof size);
    tern_hash64_add(h, text.data, text.size);
}

static uint64_t hash_value(const tern_gguf_value *v) {
    tern_hash64 h;
    const uint32_t types[2] = {(uint32_t)v->type, (uint32_t)v->element};
    tern_hash64_start(&h);
    add_span(&h, v->key);
    tern_hash64_add(&h, types, sizeof types);
    tern_hash64_add(&h, v->data, tern_gguf_value_bytes(v));
    return tern_hash64_value(&h);
}

static uint64_t hash_tensor(const tern_gguf_tensor *t) {
    tern_hash64 h;
    tern_hash64_start(&h);
    add_span(&h, t->name);
    tern_hash64_add(&h, &t->type, sizeof t->type);
    tern_hash64_add(&h, t->ne, sizeof t->ne);
    tern_int4_hash(&h, &t->int4);
    tern_hash64_add(&h, t->data, (size_t)t->bytes);
    return tern_hash64_value(&h);
}

/*
 * True for general.architecture, the keys of that architecture, and those of Hadamard transforms.
 */
static bool matters(tern_span key, const char *arch) {
    static const char name[] = "general.architecture", turns[] = "prism.hadamard.";
    const size_t n = strlen(arch);
    return (key.size > n && memcmp(key.data, arch, n) == 0 && key.data[n] == '.') ||
           (key.size == sizeof name - 1 && memcmp(key.data, name, key.size) == 0) ||
           (key.size > sizeof turns - 1 && memcmp(key.data, turns, sizeof turns - 1) == 0);
}

/* 0 for the model's own: then the identity is that of the file. */
static uint64_t hash_precision(tern_precision precision) {
    tern_hash64 h;
    const char *name = tern_precision_name(precision);
    tern_hash64_start(&h);
    tern_hash64_add(&h, name, strlen(name));
    return precision != TERN_PRECISION_AUTO ? tern_hash64_value(&h) : 0;
}

/* 0 for the factors that the file's model has by default. */
static uint64_t hash_factors(bool long_factors) {
    static const char name[] = "long_context";
    tern_hash64 h;
    tern_hash64_start(&h);
    tern_hash64_add(&h, name, sizeof name);
    return long_factors ? tern_hash64_value(&h) : 0;
}

static uint64_t compute(const tern_model *m) {
    /* How codes are read comes from outside the file and changes every weight. */
    uint64_t sum = tern_reading_hash(&m->reading);
    for (size_t i = 0; i < tern_gguf_value_count(m->file); i++) {
        const tern_gguf_value *value = tern_gguf_value_at(m->file, i);
        if (matters(value->key, m->config.arch->name))
            sum += hash_value(value);
    }
    for (size_t i = 0; i < tern_gguf_tensor_count(m->file); i++) {
        const tern_gguf_tensor *tensor = tern_gguf_tensor_at(m->file, i);
        sum += hash_tensor(tensor);
        tern_gguf_drop_pages(m->file, tensor); /* most were packed and are not read again */
    }
    sum += hash_precision(m->precision);
    sum += hash_factors(m->config.long_factors);
    sum += tern_adapter_set_hash(&m->adapters, &m->adapters.usual);
    return sum ? sum : 1; /* 0 means: not known yet */
}

uint64_t tern_model_identity(const tern_model *model) {
    /* Threads that meet here find the same number, so it does not matter who stores it last. */
    _Atomic uint64_t *known = &((tern_model *)(uintptr_t)model)->identity;
    uint64_t identity = atomic_load_explicit(known, memory_order_relaxed);
    if (identity == 0) {
        identity = compute(model);
        atomic_store_explicit(known, identity, memory_order_relaxed);
    }
    return identity;
}
