/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are restored as a session of a tiny model. A refused input must leave the session
 * unchanged. An accepted one must be complete, and the model must be able to go on from it. The
 * first byte of the input says whether hashes and lengths are corrected, so that mutations get past
 * them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "authoring/synth.h"
#include "base/hash64.h"
#include "runtime/engine/session/session_file.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONTEXT = 6, MAX_INPUT = 1 << 16 };

static const tern_format formats[] = {TERN_FORMAT_F16, TERN_FORMAT_F32, TERN_FORMAT_Q8_0};
enum { FORMATS = sizeof formats / sizeof *formats };
static tern_session *sessions[FORMATS];
static int32_t held[FORMATS][CONTEXT]; /* the tokens each session was last restored with */
static uint32_t n_held[FORMATS];
static tern_model *model;

static void must(bool good) {
    if (!good)
        abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    char path[] = "/tmp/tern-fuzz-XXXXXX";
    const tern_model_params params = {.isa = "scalar", .threads = 1};
    (void)argc;
    (void)argv;
    const int fd = mkstemp(path);
    must(fd >= 0 && close(fd) == 0);
    must(tern_synth("bitnet-tiny", path, TERN_OUT_REPLACE, 1, NULL, NULL, NULL) == TERN_OK);
    must(tern_model_open(path, &params, &model, NULL) == TERN_OK);
    must(unlink(path) == 0);
    for (size_t i = 0; i < FORMATS; i++) {
        const tern_session_params p = {.n_ctx = CONTEXT, .threads = 1, .kv = formats[i]};
        must(tern_session_new(model, &p, &sessions[i], NULL) == TERN_OK);
    }
    return 0;
}

/* Makes the header fit this model, with a position near the limit and the matching length. */
static size_t make_shape(uint8_t *bytes, const tern_session *s) {
    tern_session_header header;
    tern_model_info info;
    tern_model_describe(model, &info);
    memcpy(&header, bytes, sizeof header);
    memcpy(header.magic, TERN_SESSION_MAGIC, sizeof header.magic);
    header.version = TERN_SESSION_VERSION;
    header.kv = tern_format_describe(tern_session_cache(s))->gguf_type;
    header.identity = tern_model_identity(model);
    header.n_layer = info.n_layer;
    header.n_head_kv = info.n_head_kv;
    header.head_dim = info.head_dim;
    header.n_vocab = info.n_vocab;
    header.position %= CONTEXT + 2;
    header.kept = 0;
    memcpy(bytes, &header, sizeof header);
    return sizeof header + header.position * sizeof(int32_t) +
           (size_t)tern_model_kv_bytes(model, header.position, tern_session_cache(s)) +
           sizeof(uint64_t);
}

static void make_hashes(uint8_t *bytes, size_t size) {
    tern_session_header header;
    if (size < sizeof header + sizeof(uint64_t))
        return;
    memcpy(&header, bytes, sizeof header);
    header.hash = tern_session_header_hash(&header);
    memcpy(bytes, &header, sizeof header);
    const uint64_t hash = tern_hash64_of(bytes, size - sizeof(uint64_t));
    memcpy(bytes + size - sizeof hash, &hash, sizeof hash);
}

/* The session must be complete: all rows and tokens can be read, and another token evaluated. */
static void use(tern_session *s, bool evaluate) {
    tern_model_info info;
    float row[256];
    int32_t token = 7;
    tern_model_describe(model, &info);
    const uint32_t n = tern_session_position(s);
    must(n <= CONTEXT && info.head_dim <= sizeof row / sizeof *row);
    for (uint32_t i = 0; i < n; i++) {
        const int32_t id = tern_session_tokens(s)[i];
        must(id >= 0 && (uint32_t)id < info.n_vocab);
        for (uint32_t layer = 0; layer < info.n_layer; layer++)
            for (uint32_t k = 0; k < 2 * info.n_head_kv; k++)
                must(tern_session_kv_floats(s, k % 2, layer, k / 2, i, row));
    }
    if (n == CONTEXT || !evaluate)
        return;
    /* Invented keys may lead to logits that are not finite, which is then reported. */
    const tern_status status =
        tern_session_eval(s, &token, 1, TERN_LOGITS_LAST, tern_session_logits(s), NULL);
    must(status == TERN_OK || status == TERN_ERR_NONFINITE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t bytes[MAX_INPUT];
    tern_error err = {0};
    if (size > MAX_INPUT)
        return 0;
    const unsigned flags = size > 0 ? *data++ : 0;
    size -= size > 0;
    const size_t f = flags / 4 % FORMATS;
    tern_session *s = sessions[f];
    memset(bytes, 0, sizeof bytes);
    if (size > 0)
        memcpy(bytes, data, size);
    if (flags & 2)
        size = make_shape(bytes, s);
    if (flags & 1)
        make_hashes(bytes, size);
    FILE *in = fmemopen(bytes, size, "rb");
    must(in != NULL);
    const tern_status status = tern_session_read(s, in, "fuzz", &err);
    (void)fclose(in);
    if (status == TERN_OK) {
        /* A pass costs as much as ten thousand files, so bits of the hash choose a few inputs for
         * it. */
        use(s, bytes[size - 1] == 0 && bytes[size - 2] < 32);
        n_held[f] = tern_session_position(s);
        memcpy(held[f], tern_session_tokens(s), n_held[f] * sizeof *held[f]);
        return 0;
    }
    must(err.message[0] != '\0' && err.status == status);
    must(tern_session_position(s) == n_held[f] &&
         memcmp(tern_session_tokens(s), held[f], n_held[f] * sizeof *held[f]) == 0);
    return 0;
}
