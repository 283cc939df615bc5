/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic models: the promised geometry, the same bytes everywhere, sane weights. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "authoring/synth_internal.h"
#include "kernels/codes.h"
#include "runtime/files/gguf/gguf.h"
#include "tests/support/tiny_model.h"

static char folder[] = "/tmp/tern-synth-XXXXXX";
static char path[sizeof folder + 16];

static int folder_new(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    return 0;
}

static int folder_free(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails when a temporary file was left */
}

static tern_gguf *synth(const char *preset, uint64_t seed) {
    tern_error err = {0};
    tern_gguf *file = NULL;
    assert_int_equal(tern_synth(preset, path, TERN_OUT_REPLACE, seed, NULL, NULL, &err), TERN_OK);
    assert_int_equal(tern_gguf_open(path, &file, &err), TERN_OK);
    assert_string_equal(err.message, "");
    return file;
}

/* ---- the same bytes everywhere ------------------------------------------------------------- */

/* FNV-1a, 64 bits. */
static uint64_t hash_file(void) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    for (int c = getc(f); c != EOF; c = getc(f))
        hash = (hash ^ (uint64_t)c) * UINT64_C(0x100000001b3);
    fclose(f);
    return hash;
}

static void test_fixed_bytes(void **state) {
    (void)state;
    static const struct {
        const char *preset;
        uint64_t seed, hash;
    } cases[] = {
        {"bitnet-tiny", 1, UINT64_C(0x619edb4f83ac1d84)},
        {"bitnet-tiny", 2, UINT64_C(0x84bcd969ff502f67)},
        {"bitnet-tiny-odd", 1, UINT64_C(0xaca60ff9980f7d2e)},
        {"llama-tiny-q4_0", 1, UINT64_C(0x1da286fce3953cea)},
        {"llama-tiny-q4_1", 1, UINT64_C(0xd4b6da3f4c1c1b04)},
        {"llama-tiny-q5_0", 1, UINT64_C(0x249c057d17ad75a1)},
        {"llama-tiny-q8_0", 1, UINT64_C(0x35093e868aac5d1d)},
        {"llama-tiny-q4_k", 1, UINT64_C(0xfd255beffd7292d3)},
        {"llama-tiny-q5_k", 1, UINT64_C(0x602308ed79888c40)},
        {"llama-tiny-q6_k", 1, UINT64_C(0x4134325b1b57ddc2)},
        {"bonsai-tiny-q1_0", 1, UINT64_C(0xc1307dadbfe08f33)},
        {"bonsai-tiny-q2_0", 1, UINT64_C(0xb69f44f8a836937c)},
        {"bonsai-tiny-pq2_0", 1, UINT64_C(0x9477bc447c63d762)},
        {"bonsai-tiny-ptq1_0", 1, UINT64_C(0xa1347ebab12bfef6)},
        {"sherry-tiny", 1, UINT64_C(0x10c7241fd655e3e1)},
        {"llama-tiny-f16", 1, UINT64_C(0x639d379ddbeefe36)},
        {"llama-tiny-bf16", 1, UINT64_C(0xbd061b46671cfc00)},
        {"llama-tiny-f32", 1, UINT64_C(0x4459d04faf9d0e0c)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tern_gguf *file = synth(cases[i].preset, cases[i].seed);
        tern_gguf_close(&file);
        const uint64_t hash = hash_file();
        if (hash != cases[i].hash)
            print_message("%s, seed %d: %#llx\n", cases[i].preset, (int)cases[i].seed,
                          (unsigned long long)hash);
        assert_true(hash == cases[i].hash);
    }
}

/* ---- geometry ------------------------------------------------------------------------------ */

static void check_shape(const tern_gguf *file, const char *name, uint32_t type, uint64_t ne0,
                        uint64_t ne1) {
    const tern_gguf_tensor *t = tern_gguf_find_tensor(file, name);
    assert_non_null(t);
    assert_int_equal(t->type, type);
    assert_int_equal(t->ne[0], ne0);
    assert_int_equal(t->ne[1], ne1);
}

static void check_u32(const tern_gguf *file, const char *key, uint32_t expected) {
    uint32_t value = 0;
    assert_int_equal(tern_gguf_u32(file, key, &value, NULL), TERN_OK);
    assert_int_equal(value, expected);
}

static void test_bitnet_tiny(void **state) {
    (void)state;
    tern_gguf *file = synth("bitnet-tiny", 1);
    assert_int_equal(tern_gguf_tensor_count(file), 2 + 2 * 11);
    check_shape(file, "token_embd.weight", 1, 256, 515);
    check_shape(file, "output_norm.weight", 0, 256, 1);
    check_shape(file, "blk.1.attn_q.weight", 36, 256, 256);
    check_shape(file, "blk.1.attn_k.weight", 36, 256, 128);
    check_shape(file, "blk.1.attn_sub_norm.weight", 0, 256, 1);
    check_shape(file, "blk.1.ffn_sub_norm.weight", 0, 640, 1);
    check_shape(file, "blk.1.ffn_down.weight", 36, 640, 256);
    check_u32(file, "bitnet-b1.58.block_count", 2);
    check_u32(file, "bitnet-b1.58.attention.head_count_kv", 2);
    check_u32(file, "general.file_type", 40);
    check_u32(file, "tokenizer.ggml.bos_token_id", 505);
    check_u32(file, "tokenizer.ggml.eos_token_id", 506);
    tern_gguf_close(&file);
}

static void test_llama_tiny(void **state) {
    (void)state;
    tern_gguf *file = synth("llama-tiny-q4_1", 1);
    assert_int_equal(tern_gguf_tensor_count(file), 3 + 2 * 9);
    check_shape(file, "token_embd.weight", 8, 96, 307);
    check_shape(file, "output.weight", 3, 96, 307);
    check_shape(file, "blk.0.attn_v.weight", 3, 96, 48);
    check_shape(file, "blk.0.ffn_down.weight", 3, 160, 96);
    assert_null(tern_gguf_find_tensor(file, "blk.0.ffn_sub_norm.weight"));
    check_u32(file, "llama.rope.dimension_count", 24);
    check_u32(file, "general.file_type", 3);
    check_u32(file, "tokenizer.ggml.bos_token_id", 1);
    tern_gguf_close(&file);
}

static void keep_total(uint64_t done, uint64_t total, void *user) {
    assert_true(done <= total);
    *(uint64_t *)user = total;
}

/*
 * The tensor bytes of a large preset. It is not written to the end: a limit of the file size stops
 * it, and nothing may be left then.
 */
static uint64_t bytes_of(const char *preset) {
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 16 << 20;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    uint64_t total = 0;
    tern_error err = {0};
    unlink(path);
    const tern_status status =
        tern_synth(preset, path, TERN_OUT_REPLACE, 1, keep_total, &total, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, TERN_ERR_IO);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(access(path, F_OK), -1);
    return total;
}

/* The published file has exactly these figures. */
static void test_bitnet_2b(void **state) {
    tern_error err = {0};
    const tern_synth_model *m = NULL;
    (void)state;
    assert_int_equal(bytes_of("bitnet-2b"), 1179449920);
    assert_int_equal(tern_synth_find_model("bitnet-2b", &m, &err), TERN_OK);
    assert_int_equal(m->n_layer, 30);
    assert_int_equal(m->n_embd, 2560);
    assert_int_equal(m->n_ff, 6912);
    assert_int_equal(m->n_head, 20);
    assert_int_equal(m->n_head_kv, 5);
    assert_int_equal(m->n_vocab, 128256);
    assert_true(m->rope_base == 500000.0f);
}

/* A model of 500M parameters: its size in Q4_0, Q8_0 and floats. */
static void test_qwen_500m(void **state) {
    const uint64_t n = 896, ff = 4864, kv = 128, layers = 24, vocabulary = 151936;
    const uint64_t matrices = layers * (2 * n * n + 2 * n * kv + 3 * n * ff);
    const uint64_t vectors = layers * (2 * n + n + 2 * kv) + n;
    (void)state;
    assert_int_equal(bytes_of("qwen2.5-500m"),
                     matrices / 32 * 18 + vocabulary * n / 32 * 34 + 4 * vectors);
}

static void count_calls(uint64_t done, uint64_t total, void *user) {
    uint64_t *calls = user;
    calls[0]++;
    calls[1] = done;
    calls[2] = total;
}

static void test_progress(void **state) {
    (void)state;
    uint64_t calls[3] = {0, 0, 0};
    assert_int_equal(tern_synth("bitnet-tiny", path, TERN_OUT_REPLACE, 1, count_calls, calls, NULL),
                     TERN_OK);
    assert_true(calls[0] >= 24);
    assert_int_equal(calls[1], calls[2]);
}

static void test_presets_and_arguments(void **state) {
    (void)state;
    tern_error err = {0};
    size_t n = 0;
    assert_int_equal(tern_synth("bitnet-3b", path, TERN_OUT_REPLACE, 1, NULL, NULL, &err),
                     TERN_ERR_NAME);
    assert_non_null(strstr(err.message, "'bitnet-3b'"));
    assert_non_null(strstr(err.message, "synth --list"));
    for (const tern_synth_preset *p; (p = tern_synth_preset_at(n)) != NULL; n++) {
        assert_true(strlen(p->description) > 10);
    }
    assert_true(n >= 22);
    assert_int_equal(tern_synth(NULL, path, TERN_OUT_REPLACE, 1, NULL, NULL, &err), TERN_ERR_NULL);
    assert_int_equal(tern_synth("bitnet-tiny", NULL, TERN_OUT_REPLACE, 1, NULL, NULL, &err),
                     TERN_ERR_NULL);
    assert_int_equal(tern_synth("bitnet-tiny", folder, TERN_OUT_REPLACE, 1, NULL, NULL, &err),
                     TERN_ERR_IO);
    assert_non_null(strstr(err.message, folder));
}

/* ---- weights ------------------------------------------------------------------------------- */

static void check_ternary(const tern_gguf_tensor *t, uint64_t counts[4]) {
    const uint64_t n = t->ne[0] * t->ne[1];
    for (uint64_t i = 0; i < n / 4; i++)
        for (int shift = 0; shift < 8; shift += 2)
            counts[t->data[i] >> shift & 3]++;
    float scale;
    memcpy(&scale, t->data + n / 4, sizeof scale);
    assert_true(isfinite(scale) && scale > 0);
    for (uint64_t i = n / 4 + 4; i < t->bytes; i++)
        assert_int_equal(t->data[i], 0);
}

static void test_ternary_codes(void **state) {
    (void)state;
    static const char *const presets[] = {"bitnet-tiny", "bitnet-tiny-odd"};
    for (int p = 0; p < 2; p++) {
        tern_gguf *file = synth(presets[p], 3);
        uint64_t counts[4] = {0, 0, 0, 0};
        for (size_t i = 0; i < tern_gguf_tensor_count(file); i++)
            if (tern_gguf_tensor_at(file, i)->type == 36)
                check_ternary(tern_gguf_tensor_at(file, i), counts);
        const double n = (double)(counts[0] + counts[1] + counts[2]);
        assert_true(n > 400000);
        assert_int_equal(counts[3], 0);
        for (int c = 0; c < 3; c++) /* five standard deviations */
            assert_true(fabs((double)counts[c] - n / 3) < 5 * sqrt(n * 2 / 9));
        tern_gguf_close(&file);
    }
}

/* Mean and deviation of a whole matrix, decoded by the kernel library. */
static void moments(const tern_gguf_tensor *t, double *mean, double *sd) {
    const tern_format format = tern_format_from_gguf(t->type);
    const size_t cols = t->ne[0], rows = t->ne[1] * t->ne[2];
    float scale = 1;
    if (format == TERN_FORMAT_I2_S)
        memcpy(&scale, t->data + cols * rows / 4, sizeof scale);
    float *y = malloc(cols * sizeof *y);
    assert_non_null(y);
    double sum = 0, squares = 0;
    for (size_t r = 0; r < rows; r++) {
        tern_dequantize_row(format, t->data, cols, r, scale, y);
        for (size_t i = 0; i < cols; i++) {
            assert_true(isfinite(y[i]));
            sum += (double)y[i];
            squares += (double)y[i] * (double)y[i];
        }
    }
    free(y);
    const double n = (double)(rows * cols);
    *mean = sum / n;
    *sd = sqrt(squares / n - *mean * *mean);
}

/* Checks a matrix whose product with inputs of deviation 1 should have deviation `gain`. */
static void check_moments(const char *preset, const char *name, double gain) {
    tern_gguf *file = synth(preset, 1);
    const tern_gguf_tensor *t = tern_gguf_find_tensor(file, name);
    double mean, sd;
    moments(t, &mean, &sd);
    const double expected = gain / sqrt((double)t->ne[0]);
    const double n = (double)(t->ne[0] * t->ne[1] * t->ne[2]);
    assert_true(fabs(sd / expected - 1) < 0.04);
    assert_true(fabs(mean) < 6 * expected / sqrt(n / 32)); /* blocks share their minimum */
    tern_gguf_close(&file);
}

/* Two layers add a contribution of deviation 2.5 to the stream, three 2.04, four 2.5 / sqrt(2).
 * Experts are averaged, so the deviation of a single expert is larger by the root of their number.
 */
static void check_feed_forward(const char *preset) {
    static const struct {
        const char *preset;
        double gain;
    } experts[] = {{"qwen2moe-tiny", 4.3301},  {"qwen35moe-tiny", 2.8868},
                   {"qwen3next-tiny", 2.8868}, {"qwen3moe-tiny", 3.5355},
                   {"olmoe-tiny", 4.3301},     {"maple-tiny", 3.0619},
                   {"gpt-oss-tiny", 2.5},      {"gpt-oss-tiny-nvfp4", 3.5355}};
    for (size_t i = 0; i < sizeof experts / sizeof *experts; i++)
        if (strcmp(preset, experts[i].preset) == 0) {
            check_moments(preset, "blk.1.ffn_down_exps.weight", experts[i].gain);
            check_moments(preset, "blk.1.ffn_gate_inp.weight", 2);
            return;
        }
    const bool three = tiny_mixes_layers(preset) || strcmp(preset, "glm4-tiny") == 0;
    check_moments(preset, "blk.1.ffn_down.weight",
                  strcmp(preset, "smollm3-tiny") == 0 ? 1.7678
                  : three                             ? 2.0412
                                                      : 2.5);
}

static void test_moments(void **state) {
    (void)state;
    const char *const *presets = tiny_presets();
    for (size_t i = 0; presets[i] != NULL; i++) {
        check_moments(presets[i], "token_embd.weight", 2.5);
        if (strcmp(presets[i], "phi3-tiny") == 0) { /* q, k and v are one */
            check_moments(presets[i], "blk.0.attn_qkv.weight", 2);
        } else if (tiny_mixes_layers(presets[i])) { /* layer 0 is a delta net */
            check_moments(presets[i], "blk.0.attn_qkv.weight", 1);
            check_moments(presets[i], "blk.1.attn_q.weight", 2);
        } else {
            check_moments(presets[i], "blk.0.attn_q.weight", 2);
            check_moments(presets[i], "blk.0.attn_v.weight", 1);
        }
        check_feed_forward(presets[i]);
    }
}

/* Scales of IQ4_XS have 16 to 31, and both signs as often, so that the levels' mean is no bias. */
static void test_scales_of_iq4_xs(void **state) {
    (void)state;
    tern_gguf *file = synth("llama-tiny-iq4_xs", 1);
    const tern_gguf_tensor *t = tern_gguf_find_tensor(file, "blk.1.ffn_down.weight");
    const size_t block = 136, n = t->ne[0] * t->ne[1] / 32; /* bytes of 256 weights; scales */
    size_t negative = 0;
    for (size_t i = 0; i < n; i++) {
        const int scale = tern_iq4_xs_scale(t->data + i / 8 * block, i % 8);
        assert_in_range(abs(scale), 16, 31);
        negative += scale < 0;
    }
    assert_true(fabs((double)negative - (double)n / 2) < 3 * sqrt((double)n)); /* six deviations */
    tern_gguf_close(&file);
}

static void test_norms(void **state) {
    (void)state;
    tern_gguf *file = synth("bitnet-tiny", 1);
    const tern_gguf_tensor *t = tern_gguf_find_tensor(file, "blk.1.ffn_sub_norm.weight");
    float low = 2, high = 0;
    for (uint64_t i = 0; i < t->ne[0]; i++) {
        float g;
        memcpy(&g, t->data + 4 * i, sizeof g);
        low = g < low ? g : low;
        high = g > high ? g : high;
    }
    assert_true(low >= 0.875f && low < 0.9f);
    assert_true(high < 1.125f && high > 1.1f);
    tern_gguf_close(&file);
}

/* Two tensors of one shape share no values, nor does one tensor under two seeds. */
static void test_streams_differ(void **state) {
    (void)state;
    static uint8_t a[4096], b[4096];
    tern_synth_stream s;
    tern_synth_stream_weights(&s, TERN_FORMAT_I2_S, 1, 1, 2);
    assert_int_equal(tern_synth_stream_fill(&s, a, 4 * sizeof a), sizeof a);
    static const uint64_t others[][2] = {{1, 3}, {2, 2}, {2, 1}, {0, 3}};
    for (int i = 0; i < 4; i++) {
        tern_synth_stream_weights(&s, TERN_FORMAT_I2_S, 1, others[i][0], others[i][1]);
        (void)tern_synth_stream_fill(&s, b, 4 * sizeof b);
        size_t equal = 0;
        for (size_t k = 0; k < sizeof a; k++)
            equal += a[k] == b[k];
        assert_true(equal < 120); /* 51 of 4096 by chance */
    }
}

/* ---- vocabulary ---------------------------------------------------------------------------- */

typedef struct ranked {
    tern_span text; /* a merge: "left right" */
    size_t rank;
} ranked;

static int compare_spans(tern_span a, tern_span b) {
    const int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_ranked(const void *a, const void *b) {
    return compare_spans(((const ranked *)a)->text, ((const ranked *)b)->text);
}

/* The spans with their indices, sorted by text. Fails if two spans are equal. */
static ranked *sort_unique(const tern_span *spans, size_t n) {
    ranked *sorted = calloc(n, sizeof *sorted);
    assert_non_null(sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = (ranked){spans[i], i};
    qsort(sorted, n, sizeof *sorted, compare_ranked);
    for (size_t i = 1; i < n; i++)
        assert_true(compare_ranked(&sorted[i - 1], &sorted[i]) != 0);
    return sorted;
}

/* Rank of the merge of two symbols, or SIZE_MAX. */
static size_t rank_of(const ranked *merges, size_t n, tern_span left, tern_span right) {
    char text[32];
    assert_true(left.size + right.size + 1 < sizeof text);
    memcpy(text, left.data, left.size);
    text[left.size] = ' ';
    memcpy(text + left.size + 1, right.data, right.size);
    const ranked key = {{text, left.size + 1 + right.size}, 0};
    const ranked *found = bsearch(&key, merges, n, sizeof *merges, compare_ranked);
    return found != NULL ? found->rank : SIZE_MAX;
}

/* Number of symbols that remain when byte-pair encoding is applied to a token's own text. */
static size_t encode(tern_span token, const ranked *merges, size_t n_merges) {
    tern_span symbols[16];
    size_t n = 0;
    for (size_t i = 0; i < token.size; n++) { /* one symbol per character */
        const size_t size = (token.data[i] & 0x80) != 0 ? 2 : 1;
        symbols[n] = (tern_span){token.data + i, size};
        i += size;
    }
    for (;;) {
        size_t best = SIZE_MAX, at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            const size_t rank = rank_of(merges, n_merges, symbols[i], symbols[i + 1]);
            if (rank < best) {
                best = rank;
                at = i;
            }
        }
        if (best == SIZE_MAX)
            return n;
        symbols[at].size += symbols[at + 1].size;
        memmove(&symbols[at + 1], &symbols[at + 2], (n - at - 2) * sizeof symbols[0]);
        n--;
    }
}

static void check_vocab(tern_synth_tokens kind, size_t n_tokens, size_t n_special, size_t step) {
    tern_synth_vocab v;
    assert_int_equal(tern_synth_vocab_new(kind, n_tokens, n_special, &v, NULL), TERN_OK);
    assert_int_equal(v.n_tokens, n_tokens);
    assert_int_equal(v.n_merges, n_tokens - 256 - n_special);
    ranked *tokens = sort_unique(v.tokens, v.n_tokens);
    ranked *merges = sort_unique(v.merges, v.n_merges);
    size_t n_control = 0;
    for (size_t i = 0; i < n_tokens; i++)
        if (v.types[i] == 3)
            n_control++;
        else if (i % step == 0) /* the merges build exactly this token */
            assert_int_equal(encode(v.tokens[i], merges, v.n_merges), 1);
    assert_int_equal(n_control, n_special);
    free(tokens);
    free(merges);
    tern_synth_vocab_free(&v);
}

static void test_vocabularies(void **state) {
    (void)state;
    check_vocab(TERN_SYNTH_LLAMA3, 128256, 256, 7);
    check_vocab(TERN_SYNTH_CHATML, 49152, 17, 3);
    check_vocab(TERN_SYNTH_LLAMA3, 515, 10, 1);
    check_vocab(TERN_SYNTH_CHATML, 307, 3, 1);
}

static void check_token(const tern_synth_vocab *v, size_t id, const char *text) {
    assert_int_equal(v->tokens[id].size, strlen(text));
    assert_memory_equal(v->tokens[id].data, text, strlen(text));
}

static void test_token_ids(void **state) {
    (void)state;
    tern_synth_vocab v;
    assert_int_equal(tern_synth_vocab_new(TERN_SYNTH_LLAMA3, 128256, 256, &v, NULL), TERN_OK);
    check_token(&v, 0, "!");
    check_token(&v, 93, "~");
    check_token(&v, 94, "\xc2\xa1");  /* U+00A1 */
    check_token(&v, 187, "\xc3\xbf"); /* U+00FF */
    check_token(&v, 188, "\xc4\x80"); /* U+0100: byte 00 */
    check_token(&v, 220, "\xc4\xa0"); /* U+0120: space */
    check_token(&v, 255, "\xc5\x83"); /* U+0143: byte AD */
    check_token(&v, 256, "ba");
    check_token(&v, 128000, "<|begin_of_text|>");
    check_token(&v, 128001, "<|end_of_text|>");
    check_token(&v, 128002, "<|reserved_special_token_0|>");
    check_token(&v, 128006, "<|start_header_id|>");
    check_token(&v, 128008, "<|reserved_special_token_4|>");
    check_token(&v, 128009, "<|eot_id|>");
    check_token(&v, 128010, "<|reserved_special_token_5|>");
    check_token(&v, 128255, "<|reserved_special_token_250|>");
    tern_synth_vocab_free(&v);
    assert_int_equal(tern_synth_vocab_new(TERN_SYNTH_CHATML, 307, 3, &v, NULL), TERN_OK);
    check_token(&v, 0, "<|endoftext|>");
    check_token(&v, 2, "<|im_end|>");
    check_token(&v, 3, "!");
    tern_synth_vocab_free(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixed_bytes),
        cmocka_unit_test(test_bitnet_tiny),
        cmocka_unit_test(test_llama_tiny),
        cmocka_unit_test(test_bitnet_2b),
        cmocka_unit_test(test_qwen_500m),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_presets_and_arguments),
        cmocka_unit_test(test_ternary_codes),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_scales_of_iq4_xs),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_streams_differ),
        cmocka_unit_test(test_vocabularies),
        cmocka_unit_test(test_token_ids),
    };
    return cmocka_run_group_tests(tests, folder_new, folder_free);
}
