/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TOKENIZER_INTERNAL_H
#define TERN_RUNTIME_TOKENIZER_INTERNAL_H

/* What the files of the tokenizer share. Nothing here is for other files. */

#include "runtime/tokenizer/tokenizer.h"

/* tokenizer.ggml.token_type, with the file's numbers. */
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
    /* Limits that keep every offset of an encoding below 2^31: a byte of text becomes at most three
     * (U+FFFD, U+2581) and each of those at most two (the byte alphabet). */
    TERN_TOKENIZER_MAX_TEXT = 1 << 28,
    TERN_TOKENIZER_MAX_TOKENS = 1 << 24,
    TERN_PRE_MAX_PATTERNS = 4,
    TERN_PRE_MAX_NAME = 31
};

/* ---- lookup of byte strings ------------------------------------------------------------------ */

/* Open addressing over entry numbers; the strings stay where they are. Empty when slots == NULL. */
typedef struct tern_span_index {
    uint32_t *slots; /* [mask + 1] entry number + 1, 0: free */
    size_t mask;
} tern_span_index;

bool tern_spans_equal(tern_span a, tern_span b);

/* Room for n entries; false when memory is short. */
bool tern_span_index_init(tern_span_index *index, size_t n);
void tern_span_index_free(tern_span_index *index);

/* Adds entry i; when an equal entry is there already, returns its number and changes nothing. */
size_t tern_span_index_add(tern_span_index *index, const tern_span *entries, size_t i);

/*
 * Number of the entry that equals head followed by tail (which may be empty), with a space between
 * when spaced; -1 if there is none.
 */
int32_t tern_span_index_find(const tern_span_index *index, const tern_span *entries, tern_span head,
                             tern_span tail, bool spaced);

/* ---- pre-tokenizers -------------------------------------------------------------------------- */

typedef struct tern_pre_rule {
    const char *names;                       /* "a b c", static storage */
    uint8_t patterns[TERN_PRE_MAX_PATTERNS]; /* applied in this order; 0 ends the list */
    bool ignore_merges;                      /* a piece that is a token is taken whole */
    bool add_bos;                            /* unless the file says otherwise */
} tern_pre_rule;

typedef struct tern_pretokenizer tern_pretokenizer;        /* compiled patterns, immutable */
typedef struct tern_pretokenizer_scratch tern_pre_scratch; /* what one call needs besides */

/* The rule of a name (at most TERN_PRE_MAX_NAME bytes), NULL if unknown. */
const tern_pre_rule *tern_pre_find(tern_span name);

/* All known names, separated by spaces, cut to fit; always terminated. capacity >= 1. */
void tern_pre_list(char *out, size_t capacity);

TERN_MUST_CHECK tern_status tern_pretokenizer_new(const tern_pre_rule *rule,
                                                  tern_pretokenizer **out);
void tern_pretokenizer_free(tern_pretokenizer **p);

tern_pre_scratch *tern_pre_scratch_new(void); /* NULL when memory is short */
void tern_pre_scratch_free(tern_pre_scratch *scratch);

typedef tern_status tern_piece_callback(void *user, tern_span piece);

/* Calls back for each piece of valid UTF-8 text, in order; together they are the text. */
TERN_MUST_CHECK tern_status tern_pretokenize(const tern_pretokenizer *p, tern_pre_scratch *scratch,
                                             tern_span text, tern_piece_callback *callback,
                                             void *user);

/* ---- the tokenizer ----------------------------------------------------------------------------
 */

struct tern_tokenizer {
    const char *file; /* name in messages, owned by the file */
    bool spm;         /* SentencePiece-style; else byte-level BPE */
    bool bitnet;      /* the architecture is bitnet-b1.58 or bitnet-25 */
    bool add_bos, add_eos, add_space_prefix, ignore_merges;
    int32_t bos, eos, unknown;
    char pre[TERN_PRE_MAX_NAME + 1]; /* "" for SPM */
    tern_span chat_template;         /* size 0: none */

    size_t n_tokens;
    tern_span *tokens; /* [n_tokens] text in the file */
    tern_span *pieces; /* [n_tokens] bytes they stand for: in the file, in piece_bytes, static */
    uint8_t *types;    /* [n_tokens] tern_token_type */
    bool *ends;        /* [n_tokens] in the end-of-generation set */
    char *piece_bytes; /* bytes of the pieces that differ from the text */
    size_t max_piece;  /* bytes of the longest piece or token */
    tern_span_index by_text;
    int32_t byte_tokens[256]; /* SPM: token of each byte, -1: none */

    size_t n_special;
    int32_t
        *special; /* [n_special] control, user-defined, unknown; longest first, then lowest id */

    tern_span *merges; /* BPE: [n_merges] "left right" in the file */
    size_t n_merges;
    tern_span_index by_merge;
    tern_pretokenizer *pretokenizer;

    float *scores; /* SPM: [n_tokens] */
};

/* Token with that text, or -1. */
int32_t tern_token_find(const tern_tokenizer *t, tern_span text);
int32_t tern_token_find_text(const tern_tokenizer *t, const char *text);

/*
 * The parts of tern_tokenizer_new, in this order. Read tokens, types and scores and index the
 * texts; read the merges; decide what ends a text (those tokens become control tokens); collect
 * the special tokens; work out the bytes that each token stands for.
 */
TERN_MUST_CHECK tern_status tern_vocabulary_load(tern_tokenizer *t, const tern_gguf *file,
                                                 tern_error *err);
TERN_MUST_CHECK tern_status tern_vocabulary_load_merges(tern_tokenizer *t, const tern_gguf *file,
                                                        tern_error *err);
TERN_MUST_CHECK tern_status tern_vocabulary_set_special(tern_tokenizer *t, tern_error *err);
TERN_MUST_CHECK tern_status tern_vocabulary_set_pieces(tern_tokenizer *t, tern_error *err);

/* The byte alphabet of byte-level BPE: the character of a byte, the byte of a character or -1. */
uint32_t tern_byte_to_char(unsigned char byte);
int tern_char_to_byte(uint32_t code);

/* ---- merging ----------------------------------------------------------------------------------
 */

/*
 * Priority of joining left and right, which lie side by side in memory; smaller is earlier. False
 * when they must not be joined.
 */
typedef bool tern_merge_priority(const tern_tokenizer *t, tern_span left, tern_span right,
                                 double *priority);

typedef struct tern_symbol {
    int32_t start, size;    /* bytes; size 0: joined to another symbol */
    int32_t previous, next; /* symbol numbers, -1: none */
} tern_symbol;

typedef struct tern_merge_candidate {
    double priority;
    int32_t left, size; /* symbol number, bytes that both have together */
} tern_merge_candidate;

/* Scratch of one call. Symbol 0 always survives; follow `next` from it. */
typedef struct tern_merger {
    tern_symbol *symbols;
    tern_merge_candidate *heap;
    size_t symbol_capacity, heap_capacity, n_heap;
} tern_merger;

/*
 * Splits text (1 to INT32_MAX bytes) into characters and joins neighbours, best priority first and
 * leftmost among equals, until none can be joined. O(n log n). TERN_ERR_NOMEM is the only failure.
 */
TERN_MUST_CHECK tern_status tern_merge_text(tern_merger *m, const tern_tokenizer *t, tern_span text,
                                            tern_merge_priority *priority);
void tern_merger_free(tern_merger *m);

/* ---- encoding ---------------------------------------------------------------------------------
 */

/* One call of tern_tokenize or tern_chat_tokenize. */
typedef struct tern_encoder {
    const tern_tokenizer *t;
    int32_t *ids;
    size_t capacity, n; /* n counts on when ids is full */
    tern_merger merger;
    tern_pre_scratch *pre_scratch;
    char *fragment, *word; /* normalized fragment; piece in the byte alphabet */
    size_t fragment_capacity, word_capacity;
} tern_encoder;

void tern_encoder_emit(tern_encoder *e, int32_t id);

/* Grows *buffer to at least need bytes; its contents are lost. False when memory is short. */
bool tern_scratch_reserve(void **buffer, size_t *capacity, size_t need);

/* Tokens of text, special tokens recognised as the flag TERN_TOKENIZE_PARSE says; no BOS or EOS. */
TERN_MUST_CHECK tern_status tern_encode_text(tern_encoder *e, tern_span text, bool parse);

/* Tokens of a fragment without special tokens. prefix: a space belongs before it (SPM). */
TERN_MUST_CHECK tern_status tern_bpe_encode(tern_encoder *e, tern_span fragment);
TERN_MUST_CHECK tern_status tern_spm_encode(tern_encoder *e, tern_span fragment, bool prefix);

/* Ends a call: frees the scratch and, unless status is a failure, sets *n and checks capacity. */
TERN_MUST_CHECK tern_status tern_encoder_finish(tern_encoder *e, tern_status status, size_t *n,
                                                tern_error *err);

#endif
