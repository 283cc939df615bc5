/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/receipt/facts.h"

#ifdef TERN_HAVE_JANSSON

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "dispatch/cpu.h"
#include "dispatch/select.h"
#include "runtime/metrics.h"
#include "runtime/model.h"
#include "tools/out.h"
#include "tools/sha256.h"

enum { READ_BYTES = 1 << 20 };

/* ---- hashes ---------------------------------------------------------------------------------- */

void facts_hash(const void *bytes, size_t size, char hex[RECEIPT_HEX]) {
    sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, bytes, size);
    sha256_finish(&hash, hex);
}

void facts_hash_ids(const int32_t *ids, size_t n, char hex[RECEIPT_HEX]) {
    facts_hash(n > 0 ? ids : (const int32_t[]){0}, n * sizeof *ids, hex);
}

bool facts_hash_file(const char *path, char hex[RECEIPT_HEX], uint64_t *bytes, tern_error *err) {
    sha256 hash;
    size_t got;
    *bytes = 0;
    FILE *f = fopen(path, "rbe");
    uint8_t *buffer = malloc(READ_BYTES);
    bool good = f != NULL && buffer != NULL;
    sha256_start(&hash);
    while (good && (got = fread(buffer, 1, READ_BYTES, f)) > 0) {
        sha256_add(&hash, buffer, got);
        *bytes += got;
    }
    good = good && ferror(f) == 0;
    if (!good) {
        (void)tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (f != NULL) {
        (void)fclose(f); /* read only: nothing can be lost */
    }
    free(buffer);
    sha256_finish(&hash, hex);
    return good;
}

/* ---- kernels --------------------------------------------------------------------------------- */

const char *facts_family(const tern_kernel_row *row) {
    if (row->op == TERN_OP_ROPE_NORM || row->op == TERN_OP_ROPE_NEOX) {
        return "rope_apply";
    }
    if (row->op == TERN_OP_ATTEND) {
        return "attention_real";
    }
    if (row->op != TERN_OP_GEMV && row->op != TERN_OP_GEMM) {
        return NULL;
    }
    switch (row->layout) {
    case TERN_LAYOUT_T2R16:
    case TERN_LAYOUT_T5R16:
        return "i2s_gemv";
    case TERN_LAYOUT_TL1R16:
        return "tl1_matmul";
    case TERN_LAYOUT_TL2R16:
        return "tl2_matmul";
    default:
        return NULL;
    }
}

static bool has_text(const json_t *list, const char *text) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(json_string_value(json_array_get(list, i)), text) == 0) {
            return true;
        }
    }
    return false;
}

json_t *facts_kernels(const tern_session *session) {
    const tern_kernel_row *rows[64];
    const size_t n = tern_session_kernels(session, rows, 64);
    json_t *list = json_array();
    for (size_t i = 0; i < n && i < 64; i++) {
        json_array_append_new(list, json_string(rows[i]->name));
    }
    for (size_t i = 0; i < n && i < 64; i++) {
        const char *family = facts_family(rows[i]);
        if (family != NULL && !has_text(list, family)) {
            json_array_append_new(list, json_string(family));
        }
    }
    return list;
}

const char *facts_compute_path(const json_t *kernels) {
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const char *name = json_string_value(json_array_get(kernels, i));
        if (name != NULL && strcasestr(name, "mock") != NULL) {
            return "mock";
        }
    }
    return "real";
}

/* ---- the model ------------------------------------------------------------------------------- */

/* Weights by format, for the matrices that are multiplied by: {"i2_s": 2083520512, ...}. */
static json_t *count_weights(const tern_model *m, tern_format *main_format) {
    uint64_t counts[TERN_FORMAT_COUNT] = {0};
    json_t *object = json_object();
    for (uint32_t layer = 0; layer < m->config.n_layer; layer++) {
        for (size_t i = 0; i < TERN_LAYER_LINEARS; i++) {
            const tern_matrix *w = &tern_layer_linear(&m->layers[layer], i)->matrix;
            counts[w->format] += (uint64_t)w->rows * w->cols;
        }
    }
    *main_format = TERN_FORMAT_F32;
    for (int f = 0; f < TERN_FORMAT_COUNT; f++) {
        if (counts[f] > counts[*main_format]) {
            *main_format = (tern_format)f;
        }
    }
    counts[m->head.matrix.format] += (uint64_t)m->head.matrix.rows * m->head.matrix.cols;
    for (int f = 0; f < TERN_FORMAT_COUNT; f++) {
        if (counts[f] > 0) {
            json_object_set_new(object, tern_format_describe((tern_format)f)->name,
                                json_integer((json_int_t)counts[f]));
        }
    }
    return object;
}

static void set_count(json_t *object, const char *key, uint64_t value) {
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

json_t *facts_model(const loaded *l, const options *o, double *hash_seconds) {
    const tern_model_info *info = &l->info;
    const double start = tern_clock_seconds();
    char hex[RECEIPT_HEX];
    uint64_t bytes;
    tern_format format;
    tern_error err = {0};
    if (!facts_hash_file(info->path, hex, &bytes, &err)) {
        (void)complain_error(&err);
        return NULL;
    }
    *hash_seconds = tern_clock_seconds() - start;
    json_t *weights = count_weights(l->model, &format);
    json_t *root = json_object();
    json_object_set_new(root, "model_path", json_text(info->path, strlen(info->path)));
    json_object_set_new(root, "sha256", json_string(hex));
    set_count(root, "file_bytes", bytes);
    json_object_set_new(root, "architecture", json_string(info->architecture));
    json_object_set_new(root, "name", json_text(info->name, strlen(info->name)));
    json_object_set_new(root, "quantization_type",
                        json_string(tern_format_describe(format)->name));
    json_object_set_new(root, "weight_formats", weights);
    json_object_set_new(root, "i2s_layout", json_string(options_text(o, OPT_I2S_LAYOUT)));
    json_object_set_new(root, "pre_tokenizer",
                        json_string(l->tokenizer ? tern_tokenizer_pre(l->tokenizer) : ""));
    set_count(root, "layers", info->n_layer);
    set_count(root, "hidden_size", info->n_embd);
    set_count(root, "ffn_size", info->n_ff);
    set_count(root, "num_attention_heads", info->n_head);
    set_count(root, "num_key_value_heads", info->n_head_kv);
    set_count(root, "head_dim", info->head_dim);
    set_count(root, "vocab_size", info->n_vocab);
    set_count(root, "context_length", info->n_ctx_train);
    set_count(root, "parameters", info->parameters);
    set_count(root, "weight_bytes", info->weight_bytes);
    return root;
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void operating_system(char *text, size_t size) {
    struct utsname name;
    if (uname(&name) != 0) {
        (void)snprintf(text, size, "unknown");
        return;
    }
    (void)snprintf(text, size, "%s %s", name.sysname, name.release);
}

static const char *architecture(void) {
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "other";
#endif
}

json_t *facts_machine(const tern_model *model) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const char *cpu = tern_cpu_name();
    char os[256];
    size_t count;
    const tern_isa_info *isas = tern_isas(&count);
    json_t *sets = json_array();
    for (size_t i = 0; i < count; i++) {
        if (isas[i].built && (isas[i].needs & ~model->guard.mask) == 0) {
            json_array_append_new(sets, json_string(isas[i].name));
        }
    }
    operating_system(os, sizeof os);
    return json_pack("{s:o, s:I, s:s, s:o, s:o}", "cpu", json_text(cpu, strlen(cpu)), "cores",
                     (json_int_t)(cores > 0 ? cores : 1), "architecture", architecture(), "os",
                     json_text(os, strlen(os)), "instruction_sets", sets);
}

static const char *compiler(void) {
#ifdef __clang__
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

json_t *facts_versions(void) {
    return json_pack("{s:s, s:s}", "tern", tern_version(), "compiler", compiler());
}

json_t *facts_environment(const receipt_run *run) {
    const char *cpu = tern_cpu_name();
    char os[256];
    operating_system(os, sizeof os);
    return json_pack(
        "{s:s, s:o, s:o, s:s, s:s, s:s, s:o, s:o}", "BITNET_DETERMINISTIC",
        options_switch(run->o, OPT_DETERMINISTIC) ? "1" : "0", "BITNET_SEED",
        json_sprintf("%" PRIu64, run->sampling.seed), "RAYON_NUM_THREADS",
        json_sprintf("%u", tern_session_threads(run->l->session)), "BITNET_STRICT_MODE",
        options_switch(run->o, OPT_STRICT) ? "1" : "0", "TERN_VERSION", tern_version(), "COMPILER",
        compiler(), "OS", json_text(os, strlen(os)), "CPU_BRAND", json_text(cpu, strlen(cpu)));
}

/* ---- the run --------------------------------------------------------------------------------- */

json_t *facts_ids(const int32_t *ids, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, json_integer(ids[i]));
    }
    return list;
}

/* Every setting has its member here: a new one changes the size below and must be added. */
json_t *facts_sampler(const tern_sampler_params *s) {
    _Static_assert(sizeof *s == 3 * 4 + 4 + 8, "receipts record every setting of the sampler");
    char hex[RECEIPT_HEX];
    json_t *root = json_pack("{s:f, s:I, s:f, s:o}", "temperature", (double)s->temperature, "top_k",
                             (json_int_t)s->top_k, "top_p", (double)s->top_p, "seed",
                             json_sprintf("%" PRIu64, s->seed));
    receipt_digest(root, NULL, hex);
    json_object_set_new(root, "sha256", json_string(hex));
    return root;
}

#endif
