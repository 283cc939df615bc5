/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_INTERNAL_H
#define TERN_RUNTIME_TEXT_TOKENIZER_INTERNAL_H

/* What the files of the tokenizer share. Nothing here is for other files. */

#include "runtime/text/tokenizer/added.h"
#include "runtime/text/tokenizer/index.h"
#include "runtime/text/tokenizer/merge.h"
#include "runtime/text/tokenizer/pipeline.h"
#include "runtime/text/tokenizer/tokenizer.h"
#include "runtime/text/tokenizer/trie.h"
#include "runtime/text/tokenizer/vocabulary.h"

enum {
    /* Limits that keep every offset of an encoding below 2^31: a byte of text becomes at most three
     * (U+FFFD, U+2581) and each of those at most two (the byte alphabet). */
    TERN_TOKENIZER_MAX_TEXT = 1 << 28,
    TERN_TOKENIZER_NAME_BYTES = 32,
    TERN_LONGEST_CHARACTER = 4 /* bytes */
};

/* Tokens of words by what they are in a text, without the marks that say which they are. */
typedef struct tern_word_pieces {
    tern_span *texts; /* [2][n_tokens] at the start of a word, inside of one; size 0: not there */
    tern_prefix_set start, inside; /* of the two halves */
    size_t longest;                /* characters of a word */
} tern_word_pieces;

struct tern_tokenizer {
    char *file;     /* name in messages */
    tern_gguf *own; /* what the texts lie in, when the tokenizer opened it itself */
    tern_vocabulary_kind kind;
    bool bitnet; /* tern_arch.bitnet_text of the model */
    bool add_bos, add_eos, add_space_prefix;
    bool ignore_merges, closed_merges, byte_fallback, fuse_unknown; /* as in tern_vocabulary */
    bool decodes_bytes, decodes_spaces, drops_space, leftmost_added;
    int32_t bos, eos, unknown;
    char pre[TERN_TOKENIZER_NAME_BYTES]; /* "" when it has no name */
    tern_span chat_template;             /* size 0: none */
    unsigned chat_format;                /* tern_chat_format_id that was set; 0: none */

    size_t n_tokens;
    tern_span *tokens; /* [n_tokens] text: in the file or in text_bytes */
    tern_span *pieces; /* [n_tokens] bytes they stand for: there, in piece_bytes, static */
    uint8_t *types;    /* [n_tokens] tern_token_type */
    bool *ends;        /* [n_tokens] in the end-of-generation set */
    bool *outside;     /* [n_tokens] not for the model to find, or NULL: none */
    char *text_bytes;  /* texts that are in no file */
    char *piece_bytes; /* bytes of the pieces that differ from the text */
    size_t max_piece;  /* bytes of the longest piece or token */
    size_t reach;      /* bytes of text that a token can stand for; 0: no number is known */
    tern_span_index by_text;
    int32_t byte_tokens[256]; /* token of each byte, -1: none */

    /* Special tokens of a GGUF file: control, user-defined, unknown; longest first, then lowest id
     */
    size_t n_special;
    int32_t *special;
    /* Added tokens of a tokenizer.json. */
    tern_added_set added, added_normalized;
    char **normalized_texts; /* [added_normalized.n] */

    bool marked_starts, joins_punctuation; /* as in tern_vocabulary */

    tern_pipeline *pipeline; /* NULL: SCORES, which has rules of its own */
    tern_merge_table merges; /* BPE */
    tern_extra_texts extra;  /* of merges that are of no tokens: ids from n_tokens on */
    double *scores;          /* SCORES, UNIGRAM: [n_tokens] */
    tern_prefix_set greedy;  /* GREEDY: tokens that text may become */
    tern_trie trie;          /* UNIGRAM: the same */
    double unknown_score;    /* UNIGRAM: of a character without a token */
    tern_word_pieces words;  /* WORDPIECE */
};

/* tern_arch.bitnet_text of the architecture of that name; false for NULL and unknown names. */
bool tern_tokenizer_is_bitnet(const char *architecture);

/* Token with that text, or -1. */
int32_t tern_token_find(const tern_tokenizer *t, tern_span text);
int32_t tern_token_find_text(const tern_tokenizer *t, const char *text);

/* The same for the model's own tokens only. */
int32_t tern_token_find_own(const tern_tokenizer *t, tern_span text);

/* Works out the bytes that each token stands for. */
TERN_MUST_CHECK tern_status tern_tokenizer_set_pieces(tern_tokenizer *t, tern_error *err);

/* Builds the table of merges; texts in them that are not tokens get ids from n_tokens on. */
TERN_MUST_CHECK tern_status tern_tokenizer_set_merges(tern_tokenizer *t, const tern_vocabulary *v,
                                                      tern_error *err);

/* What the two kinds look for in a text. Tokens that are not text are not among it. */
TERN_MUST_CHECK tern_status tern_tokenizer_set_unigram(tern_tokenizer *t, tern_error *err);
TERN_MUST_CHECK tern_status tern_tokenizer_set_words(tern_tokenizer *t, const tern_vocabulary *v,
                                                     tern_error *err);
void tern_word_pieces_free(tern_word_pieces *words);

/* tern_tokenizer_reach, worked out when all else is there. */
size_t tern_tokenizer_find_reach(const tern_tokenizer *t);

/* ---- encoding ---------------------------------------------------------------------------------
 */

/* The best way to cut a text up to one of its bytes. */
typedef struct tern_best_path {
    double score;
    int32_t start; /* of its last token, -1: there is no way; afterwards the end of the next one */
    int32_t id;    /* of its last token */
} tern_best_path;

/* One call of tern_tokenize or tern_chat_tokenize. */
typedef struct tern_encoder {
    const tern_tokenizer *t;
    int32_t *ids;
    size_t capacity, n; /* n counts on when ids is full */
    bool grows;         /* ids is from realloc and grows; finish says when memory is short */
    const tern_tokenize_limits *limits; /* NULL: there are none */
    size_t taken;                       /* bytes of texts so far */
    size_t untold;                      /* of pieces, since the last call of limits->goes_on */
    tern_merger merger;
    tern_best_path *paths; /* UNIGRAM; bytes in paths_capacity */
    size_t paths_capacity;
    tern_pipeline_scratch *scratch;
    char *fragment; /* with valid UTF-8, or visible spaces */
    size_t fragment_capacity;
} tern_encoder;

void tern_encoder_emit(tern_encoder *e, int32_t id);

/* A text is going to be worked on: TERN_ERR_CONTEXT when its length says that it is too long. */
TERN_MUST_CHECK tern_status tern_encoder_take(tern_encoder *e, size_t bytes);

/* So many bytes of it are worked on now: TERN_ERR_CONTEXT with too many tokens, TERN_ERR_STATE when
 * nobody wants them any more. */
TERN_MUST_CHECK tern_status tern_encoder_pass(tern_encoder *e, size_t bytes);

/* Whether somebody still wants it; for the inside of long pieces. */
bool tern_encoder_goes_on(void *encoder);

/* Grows *buffer to at least need bytes; its contents are lost. False when memory is short. */
bool tern_scratch_reserve(void **buffer, size_t *capacity, size_t need);

/* Tokens of text, special tokens recognised as the flag TERN_TOKENIZE_PARSE says; no BOS or EOS. */
TERN_MUST_CHECK tern_status tern_encode_text(tern_encoder *e, tern_span text, bool parse);

/*
 * The same for valid UTF-8 with a mark for each byte: control tokens are recognised where all of
 * their marks are 0.
 */
TERN_MUST_CHECK tern_status tern_encode_marked(tern_encoder *e, tern_span text,
                                               const uint8_t *marks);

/* Tokens of a piece that the pipeline made. */
TERN_MUST_CHECK tern_status tern_bpe_encode(tern_encoder *e, tern_span piece);
TERN_MUST_CHECK tern_status tern_greedy_encode(tern_encoder *e, tern_span piece);
TERN_MUST_CHECK tern_status tern_unigram_encode(tern_encoder *e, tern_span piece);
TERN_MUST_CHECK tern_status tern_words_encode(tern_encoder *e, tern_span piece);

/* A token of a file that text may become: a vocabulary of UNIGRAM or WORDPIECE. */
bool tern_token_is_text(const tern_tokenizer *t, size_t id);

/* Tokens of a fragment without special tokens, by scores. prefix: a space belongs before it. */
TERN_MUST_CHECK tern_status tern_spm_encode(tern_encoder *e, tern_span fragment, bool prefix);

/* Ends a call: frees the scratch and, unless status is a failure, sets *n and checks capacity. */
TERN_MUST_CHECK tern_status tern_encoder_finish(tern_encoder *e, tern_status status, size_t *n,
                                                tern_error *err);

#endif
