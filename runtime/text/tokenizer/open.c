/* SPDX-License-Identifier: Apache-2.0 */
/* Opens tokenizers from files. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/in_file.h"
#include "runtime/files/arch/arch.h"
#include "runtime/files/gguf/iebin.h"
#include "runtime/text/tokenizer/internal.h"

bool tern_tokenizer_is_bitnet(const char *architecture) {
    if (architecture == NULL)
        return false;
    const tern_arch *arch = tern_arch_find((tern_span){architecture, strlen(architecture)});
    return arch != NULL && arch->bitnet_text;
}

/* Builds a tokenizer of a vocabulary that was read with that status, and frees the vocabulary. */
static tern_status build_of(tern_status status, tern_vocabulary *v, const char *architecture,
                            tern_tokenizer **out, tern_error *err) {
    if (status == TERN_OK)
        status = tern_tokenizer_build(v, architecture, out, err);
    tern_vocabulary_free(&v);
    return status;
}

tern_status tern_tokenizer_new(const tern_gguf *file, const char *architecture, const char *pre,
                               tern_tokenizer **out, tern_error *err) {
    const bool bitnet = tern_tokenizer_is_bitnet(architecture);
    tern_vocabulary *v = NULL;
    tern_status status = tern_vocabulary_from_gguf(file, bitnet, pre, &v, err);
    status = build_of(status, v, architecture, out, err);
    if (status != TERN_ERR_TOKENIZER_PRE || pre != NULL || !tern_vocabulary_is_twice_in_gguf(file))
        return status;
    /* a pattern of the tokenizer.json, which was compiled only now, is not supported */
    v = NULL;
    status = tern_vocabulary_from_gguf_keys(file, bitnet, NULL, &v, err);
    return build_of(status, v, architecture, out, err);
}

/* Takes a token id from a key, if it is the id of one of the tokens. */
static void take_id(const tern_tokenizer *t, const tern_gguf *file, const char *key, int32_t *id) {
    uint32_t value;
    if (tern_gguf_u32(file, key, &value, NULL) == TERN_OK && value < t->n_tokens &&
        t->tokens[value].size > 0)
        *id = (int32_t)value;
}

void tern_tokenizer_complete(tern_tokenizer *t, const tern_gguf *file, const char *architecture) {
    t->bitnet = tern_tokenizer_is_bitnet(architecture);
    take_id(t, file, "tokenizer.ggml.bos_token_id", &t->bos);
    take_id(t, file, "tokenizer.ggml.eos_token_id", &t->eos);
    if (t->eos >= 0)
        t->ends[t->eos] = true;
    if (!t->add_bos)
        (void)tern_gguf_bool(file, "tokenizer.ggml.add_bos_token", &t->add_bos, NULL);
    if (!t->add_eos)
        (void)tern_gguf_bool(file, "tokenizer.ggml.add_eos_token", &t->add_eos, NULL);
    if (t->chat_template.size > 0)
        return;
    (void)tern_gguf_string(file, "tokenizer.chat_template", &t->chat_template, NULL);
    (void)tern_gguf_string(file, "tokenizer.chat_template.tool_use", &t->tool_template, NULL);
}

static tern_status open_json(const char *path, const char *pre, tern_tokenizer **out,
                             tern_error *err) {
    if (pre != NULL)
        return tern_fail(err, TERN_ERR_TOKENIZER_PRE,
                         "%s: the file says how it splits text; '%s' cannot be set", path, pre);
    tern_vocabulary *v = NULL;
    tern_status status = tern_vocabulary_open(path, &v, err);
    if (status == TERN_OK)
        status = tern_tokenizer_build(v, NULL, out, err);
    tern_vocabulary_free(&v);
    return status;
}

char *tern_tokenizer_beside(const char *model) {
    static const char name[] = "tokenizer.json";
    const char *slash = strrchr(model, '/');
    const size_t folder = slash != NULL ? (size_t)(slash - model) + 1 : 0;
    char *path = malloc(folder + sizeof name);
    if (path == NULL)
        return NULL;
    memcpy(path, model, folder);
    memcpy(path + folder, name, sizeof name);
    if (access(path, F_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* For a model file without a tokenizer: opens the one beside it. *err says what the file lacks, and
 * stays if there is none. */
static tern_status open_beside(const tern_gguf *file, const char *architecture,
                               tern_tokenizer **out, tern_error *err) {
    char *path = tern_tokenizer_beside(tern_gguf_name(file));
    if (path == NULL)
        return TERN_ERR_TOKENIZER_MISSING;
    const tern_status status = open_json(path, NULL, out, err);
    free(path);
    if (status == TERN_OK)
        tern_tokenizer_complete(*out, file, architecture);
    return status;
}

static tern_status open_gguf(const char *path, const char *pre, tern_tokenizer **out,
                             tern_error *err) {
    tern_gguf *file = NULL;
    tern_status status = tern_gguf_open(path, &file, err);
    if (status != TERN_OK)
        return status;
    tern_span name = {"", 0};
    (void)tern_gguf_string(file, "general.architecture", &name, NULL);
    char architecture[32];
    (void)snprintf(architecture, sizeof architecture, "%.*s",
                   (int)(name.size < 31 ? name.size : 31), name.data);
    tern_tokenizer *t = NULL;
    status = tern_tokenizer_new(file, architecture, pre, &t, err);
    if (status == TERN_ERR_TOKENIZER_MISSING)
        status = open_beside(file, architecture, &t, err);
    if (status != TERN_OK) {
        tern_gguf_close(&file);
        return status;
    }
    t->own = file;
    *out = t;
    return TERN_OK;
}

tern_status tern_tokenizer_open(const char *path, const char *pre_tokenizer, tern_tokenizer **out,
                                tern_error *err) {
    if (path == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_tokenizer_open: NULL argument");
    if (tern_iebin_is(path))
        return open_gguf(path, pre_tokenizer, out, err);
    char magic[4] = "";
    FILE *file = NULL;
    const tern_status status = tern_in_file_open(path, TERN_IN_FILE, &file, err);
    if (status != TERN_OK)
        return status;
    const size_t got = fread(magic, 1, sizeof magic, file);
    (void)fclose(file);
    if (got == sizeof magic && memcmp(magic, "GGUF", sizeof magic) == 0)
        return open_gguf(path, pre_tokenizer, out, err);
    if (got > 0 && memchr("{[ \t\r\n", magic[0], 6) == NULL)
        return tern_fail(err, TERN_ERR_JSON, "%s: neither a GGUF file nor JSON", path);
    return open_json(path, pre_tokenizer, out, err);
}
