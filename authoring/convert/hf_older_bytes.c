/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_older_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/in_file.h"
#include "runtime/text/tokenizer/index.h"
#include "runtime/text/tokenizer/pre.h"
#include "runtime/text/tokenizer/vocabulary_json.h"

enum { MAX_FILE_BYTES = 64 << 20 };

/* How one of transformers' classes prepares a text for merging. */
typedef struct rule {
    const char *names; /* of classes, and values of model_type that mean this class; "a b c" */
    const char *pre;   /* the rule in pre.h that cuts as it does; NULL: ByteLevel's own pattern */
    bool composes;     /* NFC */
} rule;

static const rule rules[] = {
    {"GPT2Tokenizer GPT2TokenizerFast CodeGenTokenizer CodeGenTokenizerFast gpt2 gpt_bigcode "
     "granite "
     "granitemoe olmo olmo2 olmoe phi starcoder2",
     NULL, false},
    {"Qwen2Tokenizer Qwen2TokenizerFast qwen2 qwen2_moe qwen3 qwen3_moe", "qwen2", true},
};

static tern_status find_rule(const hf_older_files *f, const char *path, const rule **out,
                             tern_error *err) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (hf_older_is_class(f, rules[i].names)) {
            *out = &rules[i];
            return TERN_OK;
        }
    }
    return hf_older_refuse_class(f, path, err);
}

/* ---- the parts ------------------------------------------------------------------------------- */

static void put_steps(text *out, const hf_older_files *f, const rule *r) {
    const bool prefix = hf_older_flag(f, "add_prefix_space", false);
    if (r->composes) {
        text_name(out, "normalizer");
        text_print(out, "{\"type\":\"NFC\"}");
    }
    text_name(out, "pre_tokenizer");
    text_print(out, "{\"type\":\"Sequence\",\"pretokenizers\":[");
    if (r->pre != NULL) {
        tern_vocabulary steps = {.n_steps = 0};
        tern_pre_add_steps(tern_pre_find((tern_span){r->pre, strlen(r->pre)}), &steps);
        text_print(out, "{\"type\":\"Split\",\"pattern\":{\"Regex\":");
        text_quote(out, steps.steps[0].pattern.data, steps.steps[0].pattern.size);
        text_print(out, "},\"behavior\":\"Isolated\",\"invert\":false},");
    }
    text_print(out, "{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"use_regex\":%s}]}",
               prefix ? "true" : "false", r->pre == NULL ? "true" : "false");
    text_name(out, "decoder");
    text_print(out, "{\"type\":\"ByteLevel\"}");
}

/* Writes the lines of a merges.txt, of which the first is often its version. */
static void put_merges(text *out, const char *bytes, size_t size) {
    static const char version[] = "#version";
    const char *between = "";
    text_name(out, "merges");
    text_add(out, "[", 1);
    for (size_t at = 0, n; at < size; at += n + 1) {
        const char *line = bytes + at, *end = memchr(line, '\n', size - at);
        n = end != NULL ? (size_t)(end - line) : size - at;
        const size_t used = n > 0 && line[n - 1] == '\r' ? n - 1 : n;
        if (used == 0 || (at == 0 && strncmp(line, version, sizeof version - 1) == 0))
            continue;
        text_print(out, "%s", between);
        text_quote(out, line, used);
        between = ",";
    }
    text_add(out, "]", 1);
}

static tern_status put_model(text *out, const char *path, tern_span vocabulary, tern_error *err) {
    char *merges = NULL, *file = tern_json_beside(path, "merges.txt");
    size_t size = 0;
    if (file == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a path", path);
    const tern_status status = tern_in_file_read(file, MAX_FILE_BYTES, &merges, &size, err);
    free(file);
    if (status != TERN_OK)
        return status;
    text_name(out, "model");
    text_print(out, "{\"type\":\"BPE\"");
    put_merges(out, merges, size);
    text_name(out, "vocab");
    text_add(out, vocabulary.data, vocabulary.size);
    text_add(out, "}", 1);
    free(merges);
    return TERN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int64_t find_token(const void *user, tern_span content) {
    const tern_json_value *vocabulary = user, *key = vocabulary + 1;
    int64_t id = TERN_TOKEN_NONE;
    for (uint32_t i = 0; i < vocabulary->count; i++, key += 1 + (key + 1)->size)
        if (tern_spans_equal(key->text, content) && tern_json_integer(key + 1, &id))
            return id;
    return TERN_TOKEN_NONE;
}

/* The classes' default where the folder does not name the token that ends a text. */
static tern_status add_default_end(hf_older_files *f, const tern_json_value *vocabulary,
                                   tern_error *err) {
    static const char usual[] = "<|endoftext|>";
    const tern_span content = {usual, sizeof usual - 1};
    const int64_t id = find_token(vocabulary, content);
    return hf_older_role(f, "eos_token").size > 0 || id < 0
               ? TERN_OK
               : hf_older_add(f, (hf_older_token){.id = id, .content = content, .special = true},
                              err);
}

static tern_status write_all(hf_older_files *f, const char *path, const tern_json_value *vocabulary,
                             tern_span written, text *out, tern_error *err) {
    const rule *r = NULL;
    tern_status status = find_rule(f, path, &r, err);
    if (status == TERN_OK && vocabulary->type != TERN_JSON_OBJECT)
        status = tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: is not an object of tokens", path);
    if (status == TERN_OK)
        status = add_default_end(f, vocabulary, err);
    if (status != TERN_OK)
        return status;
    hf_older_find_ids(f, find_token, vocabulary, vocabulary->count);
    text_add(out, "{", 1);
    hf_older_put_added(f, out);
    put_steps(out, f, r);
    status = put_model(out, path, written, err);
    text_add(out, "}", 1);
    return status;
}

tern_status hf_older_bytes_write(hf_older_files *f, const char *path, text *out, tern_error *err) {
    char *bytes = NULL, *written = NULL;
    size_t size = 0;
    tern_json json = {NULL, NULL};
    tern_status status = tern_in_file_read(path, MAX_FILE_BYTES, &bytes, &size, err);
    if (status != TERN_OK)
        return status;
    written = strdup(bytes); /* parsing changes the bytes */
    if (written == NULL) {
        free(bytes);
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to read it", path);
    }
    status = tern_json_parse(bytes, size, path, &json, err);
    if (status == TERN_OK)
        status = write_all(f, path, json.values, (tern_span){written, strlen(written)}, out, err);
    tern_json_free(&json);
    free(written);
    return status;
}
