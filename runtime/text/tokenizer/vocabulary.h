/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_VOCABULARY_H
#define TERN_RUNTIME_TEXT_TOKENIZER_VOCABULARY_H

/*
 * A vocabulary as data: what a GGUF file, a Hugging Face tokenizer.json or a plain JSON vocabulary
 * says about a tokenizer, in one shape. A tokenizer is built from it (tokenizer.h), and a converter
 * copies it into GGUF keys:
 *
 *   tokenizer.ggml.model          gpt2 for BYTE_BPE, llama for TEXT_BPE and SCORES, t5 for UNIGRAM,
 *                                 bert for WORDPIECE
 *   tokenizer.ggml.pre            pre; "" where GGUF has no name for the file's rules
 *   tokenizer.ggml.tokens         tokens; unused ids have size 0, GGUF wants distinct "[PAD<id>]"
 *   tokenizer.ggml.token_type     types, the numbers are GGUF's
 *   tokenizer.ggml.merges         merges (BYTE_BPE), "left right", by rank
 *   tokenizer.ggml.scores         scores, or tern_vocabulary_rank_scores (TEXT_BPE)
 *   tokenizer.ggml.normalizer.*   what the steps of WORDPIECE do (vocabulary_gguf.h)
 *   tokenizer.ggml.*_token_id     bos, eos, unknown, padding; -1: no such key
 *   tokenizer.ggml.add_*          add_bos, add_eos, add_space_prefix
 *   tokenizer.chat_template       chat_template, size 0: none
 *   tokenizer.chat_template.NAME  templates
 *   tokenizer.huggingface.json    the tokenizer.json as it is, where the keys above cannot say it
 */

#include "base/json.h"
#include "runtime/files/gguf/gguf.h"

typedef enum tern_vocabulary_kind {
    TERN_VOCABULARY_BYTE_BPE, /* merges over the byte alphabet */
    TERN_VOCABULARY_TEXT_BPE, /* merges over characters, U+2581 for spaces (Llama 2's json) */
    TERN_VOCABULARY_SCORES,   /* neighbours are joined by the score of what they make */
    TERN_VOCABULARY_GREEDY,   /* neither merges nor scores: the longest token that fits */
    TERN_VOCABULARY_UNIGRAM,  /* the tokens of a piece whose scores have the greatest sum */
    TERN_VOCABULARY_WORDPIECE /* a word's longest tokens from left to right, or the unknown token */
} tern_vocabulary_kind;

/* Values of tokenizer.ggml.token_type, with the file's numbers. */
typedef enum tern_token_type {
    TERN_TOKEN_UNDEFINED,
    TERN_TOKEN_NORMAL,
    TERN_TOKEN_UNKNOWN,
    TERN_TOKEN_CONTROL,
    TERN_TOKEN_USER_DEFINED,
    TERN_TOKEN_UNUSED,
    TERN_TOKEN_BYTE,
    TERN_TOKEN_TYPE_COUNT
} tern_token_type;

enum {
    TERN_TOKEN_NONE = -1,
    TERN_TOKENIZER_MAX_TOKENS = 1 << 24,
    TERN_TOKENIZER_MAX_STEPS = 32, /* real files have up to seven */
    TERN_TOKENIZER_MAX_ENDS = 64,
    TERN_TOKENIZER_MAX_TEMPLATES = 16, /* besides the usual one; real files have up to three */
    TERN_LONGEST_WORD = 100,           /* default for WORDPIECE */
    TERN_LONGEST_WORD_LIMIT = 1024
};

#define TERN_VOCABULARY_WHOLE_KEY "tokenizer.huggingface.json"

/* All tokens that end a text. */
#define TERN_VOCABULARY_ENDS_KEY "tokenizer.ggml.eos_token_ids"

/* tokenizer.ggml.model where other keys cannot even nearly say how texts become tokens. */
#define TERN_VOCABULARY_WHOLE_MODEL "huggingface"

typedef struct tern_merge {
    tern_span left, right;
} tern_merge;

/* A token that is cut out of the text before anything else happens to it (added_tokens). */
typedef struct tern_added_token {
    int32_t id;
    bool special;     /* not shown when decoded; in untrusted text just text */
    bool single_word; /* only where no letter, digit or mark is beside it */
    bool lstrip, rstrip;
    bool normalized; /* cut out after the normalizers, not before */
} tern_added_token;

typedef enum tern_normal_form { TERN_NFC, TERN_NFD, TERN_NFKC, TERN_NFKD } tern_normal_form;

/* Says how a SPLIT treats its matches and the text between them. */
typedef enum tern_split_behavior {
    TERN_SPLIT_ISOLATED,   /* each a piece */
    TERN_SPLIT_REMOVED,    /* the matches vanish */
    TERN_SPLIT_CONTIGUOUS, /* neighbouring matches are one piece */
    TERN_SPLIT_WITH_PREVIOUS,
    TERN_SPLIT_WITH_NEXT
} tern_split_behavior;

typedef enum tern_prepend_where {
    TERN_PREPEND_ALWAYS,        /* to each piece */
    TERN_PREPEND_UNLESS_THERE,  /* to each piece that does not begin with it already */
    TERN_PREPEND_FIRST_OF_TEXT, /* does the same, only at the very start of a text */
} tern_prepend_where;

/* Maps that a step applies to each character by itself (characters.h). */
typedef enum tern_character_map {
    TERN_MAP_CLEAN,      /* control characters vanish, white space becomes a space */
    TERN_MAP_SPACE_HAN,  /* a space on each side of Han characters */
    TERN_MAP_DROP_MN,    /* non-spacing marks vanish */
    TERN_MAP_DROP_MARKS, /* all marks vanish */
    TERN_MAP_LOWERCASE,
    TERN_MAP_NMT /* like TERN_MAP_CLEAN, for other characters: a few of those that SentencePiece
                    maps */
} tern_character_map;

typedef enum tern_step_kind {
    TERN_STEP_NORMALIZE,  /* form */
    TERN_STEP_CHARSMAP,   /* content: a map of SentencePiece (charsmap.h); by_character */
    TERN_STEP_CHARACTERS, /* map */
    TERN_STEP_REPLACE,    /* matches of pattern become content */
    TERN_STEP_PREPEND,    /* content, where */
    TERN_STEP_STRIP,      /* white space at the left, at the right */
    TERN_STEP_SPACES,     /* spaces become U+2581; left: one more in front; fewer: several in a row
                           * become one, and none stays at the ends */
    TERN_STEP_ADDED,      /* added tokens that are `normalized` are cut out; the normalizers end */
    TERN_STEP_SPLIT,      /* pattern, behavior; invert: what does not match counts as a match */
    TERN_STEP_WORDS,      /* BERT's: white space vanishes, punctuation stands alone */
    TERN_STEP_BYTES       /* bytes become characters of the byte alphabet */
} tern_step_kind;

/* One step from a text to the pieces that the model is given. Members that do not apply are
 * zero. */
typedef struct tern_step {
    tern_step_kind kind;
    tern_normal_form form;
    tern_split_behavior behavior;
    tern_prepend_where where;
    tern_character_map map;
    bool by_character; /* each user-perceived character is looked up as a whole, else the longest
                        * part of the text that the map has */
    bool fewer;
    bool literal; /* pattern is text; else a regular expression in Oniguruma's syntax, regex.h */
    bool invert, left, right;
    tern_span pattern, content;
} tern_step;

/* A chat template for chats of one kind, such as "tool_use" for those with tools. */
typedef struct tern_named_template {
    tern_span name, text;
    char *own; /* memory of both, or NULL: it is the vocabulary's */
} tern_named_template;

typedef struct tern_vocabulary {
    char *file; /* name in messages */
    tern_vocabulary_kind kind;

    size_t n_tokens;
    tern_span *tokens; /* [n_tokens] by id; size 0: an id that is not used */
    uint8_t *types;    /* [n_tokens] tern_token_type */
    bool *outside;     /* [n_tokens] added tokens that the model itself does not know, or NULL */
    double *scores;    /* [n_tokens] of SCORES and UNIGRAM, else NULL; finite for UNIGRAM */

    size_t n_merges;
    tern_merge *merges; /* by rank; a later one of two equal ones counts if last_merge_counts */
    bool last_merge_counts;
    bool closed_merges;  /* all merges are of tokens; characters without a token are replaced
                            before */
    bool ignore_merges;  /* a piece that is a token is taken whole */
    bool byte_fallback;  /* characters without a token become <0xNN> */
    bool fuse_unknown;   /* neighbouring unknown characters are one token */
    bool decodes_bytes;  /* texts of tokens are in the byte alphabet */
    bool decodes_spaces; /* U+2581 in texts of tokens is a space */
    bool drops_space;    /* decoding drops one space at the start */

    /* WORDPIECE. Either tokens that begin a word begin with U+2581 (GGUF), or tokens that continue
     * a word begin with `inside` (json). */
    bool marked_starts;
    bool joins_punctuation; /* decoding puts no space before . , ! ? and endings such as 's */
    tern_span inside;
    uint32_t longest_word; /* characters; a longer word is the unknown token */

    char pre[32]; /* tokenizer.ggml.pre, "" when GGUF has no name for it */
    size_t n_steps;
    tern_step steps[TERN_TOKENIZER_MAX_STEPS];

    bool leftmost_added; /* added tokens are found by place, then by length (json); else by length
                            (GGUF) */
    size_t n_added;
    tern_added_token *added; /* json files list them; those of GGUF files are known by their
                                types */

    int32_t bos, eos, unknown, padding; /* -1: none */
    bool add_bos, add_eos, add_space_prefix;
    int32_t ends[TERN_TOKENIZER_MAX_ENDS]; /* further tokens that end a text */
    size_t n_ends;
    tern_span chat_template;
    char *own_template; /* memory of chat_template, or NULL */
    tern_named_template templates[TERN_TOKENIZER_MAX_TEMPLATES];
    size_t n_templates;

    /* The memory that the spans point into: a GGUF file that outlives it, or the members below. */
    bool borrowed;
    tern_json json, config;
    char *made;     /* texts that are in no file */
    char *charsmap; /* bytes of a TERN_STEP_CHARSMAP that are in no file */
} tern_vocabulary;

/*
 * Reads a Hugging Face tokenizer.json or a plain JSON vocabulary (docs/tokenizers.md), and beside
 * it, where they exist, tokenizer_config.json (special tokens, chat templates), files of chat
 * templates, which count in place of those, and generation_config.json (what ends a text).
 * Everything that is not supported is refused with one line that names it:
 * TERN_ERR_TOKENIZER_MODEL, _PRE, _DATA; TERN_ERR_JSON, _IO, _NOMEM.
 */
TERN_MUST_CHECK tern_status tern_vocabulary_open(const char *path, tern_vocabulary **out,
                                                 tern_error *err);

/* Does the same for bytes[size] from malloc, which it takes over, in place of what is at `path`. */
TERN_MUST_CHECK tern_status tern_vocabulary_open_as(char *bytes, size_t size, const char *path,
                                                    tern_vocabulary **out, tern_error *err);

/* Does the same for such bytes without a path. It reads no files beside them. */
TERN_MUST_CHECK tern_status tern_vocabulary_parse(char *bytes, size_t size, const char *name,
                                                  tern_vocabulary **out, tern_error *err);

/*
 * Reads the keys tokenizer.* of a GGUF file; `file` must outlive the result. A tokenizer.json in
 * them says how texts become tokens, unless tern does not support a step of it and the other keys
 * say it, too. bitnet: a file that names no pre-tokenizer may have Llama 3's vocabulary. pre,
 * unless NULL, overrides the pre-tokenizer, and the tokenizer.json with it.
 */
TERN_MUST_CHECK tern_status tern_vocabulary_from_gguf(const tern_gguf *file, bool bitnet,
                                                      const char *pre, tern_vocabulary **out,
                                                      tern_error *err);

/* The same without a tokenizer.json, if the file has one beside the usual keys. */
bool tern_vocabulary_is_twice_in_gguf(const tern_gguf *file);
TERN_MUST_CHECK tern_status tern_vocabulary_from_gguf_keys(const tern_gguf *file, bool bitnet,
                                                           const char *pre, tern_vocabulary **out,
                                                           tern_error *err);

void tern_vocabulary_free(tern_vocabulary **v); /* NULL and *NULL are fine */

/* The text of the chat template of that name; size 0: there is none. */
tern_span tern_vocabulary_template(const tern_vocabulary *v, const char *name);

/*
 * Computes scores under which joining by score does what the merges do: a token gets minus the rank
 * of the first merge that makes it, or 0 if no merge makes it. scores[n_tokens].
 */
TERN_MUST_CHECK tern_status tern_vocabulary_rank_scores(const tern_vocabulary *v, float *scores,
                                                        tern_error *err);

#endif
