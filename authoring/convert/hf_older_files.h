/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_OLDER_FILES_H
#define TERN_AUTHORING_CONVERT_HF_OLDER_FILES_H

/*
 * The small files about the tokenizer of a folder without tokenizer.json: tokenizer_config.json,
 * special_tokens_map.json, added_tokens.json. They become those parts of a tokenizer.json that do
 * not depend on the model.
 */

#include "base/json.h"
#include "base/json_tree/text.h"
#include "runtime/text/tokenizer/vocabulary.h"

enum { HF_OLDER_MAX_ADDED = 16384 };

/* A token that is cut out of the text before anything else happens to it. */
typedef struct hf_older_token {
    int64_t id; /* -1: not known yet */
    tern_span content;
    bool special, lstrip, rstrip, single_word, normalized;
} hf_older_token;

typedef struct hf_older_files {
    tern_json config, map, added, model; /* the last one is config.json */
    hf_older_token *tokens;              /* [n] no two with one text or with one id */
    size_t n, capacity;
} hf_older_files;

/* Reads the files in the folder of the file `path`. All of them may be missing. */
TERN_MUST_CHECK tern_status hf_older_files_open(const char *path, hf_older_files *out,
                                                tern_error *err);
void hf_older_files_close(hf_older_files *f); /* zero-initialised or opened */

/* The text of a token such as "bos_token"; size 0: the files name none. */
tern_span hf_older_role(const hf_older_files *f, const char *name);

/* A setting of tokenizer_config.json. */
bool hf_older_flag(const hf_older_files *f, const char *name, bool otherwise);

/* The class of the tokenizer; without one, the model_type of config.json. */
tern_span hf_older_class(const hf_older_files *f);

/* True if that class is one of the names "a b c". */
bool hf_older_is_class(const hf_older_files *f, const char *names);

/* Refuses the file `path` of a tokenizer whose class is none that tern knows for it. */
TERN_MUST_CHECK tern_status hf_older_refuse_class(const hf_older_files *f, const char *path,
                                                  tern_error *err);

/* Adds a token. Where one has its text or its id already, that one stays; if the new one is
 * special, it becomes so, too. */
TERN_MUST_CHECK tern_status hf_older_add(hf_older_files *f, hf_older_token token, tern_error *err);

/* The use of a token, and its text where the files do not say it. */
typedef struct hf_older_default {
    const char *role, *content;
} hf_older_default;

/* The text for a role: the files' own, or the default. */
tern_span hf_older_role_or(const hf_older_files *f, hf_older_default d);

/* Adds the tokens of n roles, which are special. */
TERN_MUST_CHECK tern_status hf_older_add_defaults(hf_older_files *f, const hf_older_default *list,
                                                  size_t n, tern_error *err);

/* The id of a text in the model's vocabulary; -1: none. */
typedef int64_t hf_older_find(const void *user, tern_span text);

/* Finds the ids that are not known. Tokens outside of the vocabulary get those after all others;
 * n_model is the size of the vocabulary. */
void hf_older_find_ids(hf_older_files *f, hf_older_find *find, const void *user, size_t n_model);

/* Writes "added_tokens". */
void hf_older_put_added(const hf_older_files *f, text *out);

/* Writes "post_processor", which puts the tokens with these texts at both ends; size 0: none. */
void hf_older_put_ends(const hf_older_files *f, tern_span first, tern_span last, text *out);

#endif
