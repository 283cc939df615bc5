/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_INTERNAL_H
#define TERN_RUNTIME_TEXT_TOKENIZER_INTERNAL_H

/* Shared by the files of the tokenizer. Nothing here is for other files. */

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

/* Texts of WORDPIECE's tokens, without the marks that say whether they begin a word or go on in
 * it. */
typedef struct tern_word_pieces {
    tern_span *texts; /* [2][n_tokens] at the start of a word, inside a word; size 0: it cannot
                         stand there */
    tern_prefix_set start, inside; /* over the two halves of texts */
    size_t longest;                /* most characters of a word */
} tern_word_pieces;

struct tern_tokenizer {
    char *file;     /* name in messages */
    tern_gguf *own; /* the file that the texts lie in, if the tokenizer opened it itself */
    tern_vocabulary_kind kind;
    bool bitnet; /* tern_arch.bitnet_text of the model */
    bool add_bos, add_eos, add_space_prefix;
    bool ignore_merges, closed_merges, byte_fallback, fuse_unknown; /* as in tern_vocabulary */
    bool decodes_bytes, decodes_spaces, drops_space, leftmost_added;
    int32_t bos, eos, unknown;
    char pre[TERN_TOKENIZER_NAME_BYTES]; /* "" when it has no name */
    tern_span chat_template;             /* size 0: none */
    tern_span tool_template;             /* for chats with tools; size 0: chat_template */
    char *set_template;                  /* of a file that was set, for all chats; NULL: none */
    unsigned chat_format;                /* tern_chat_format_id that was set; 0: none */

    size_t n_tokens;
    tern_span *tokens; /* [n_tokens] texts, in the file or in text_bytes */
    tern_span *pieces; /* [n_tokens] bytes they stand for: in the file, in piece_bytes or static */
    uint8_t *types;    /* [n_tokens] tern_token_type */
    bool *ends;        /* [n_tokens] in the end-of-generation set */
    bool *outside;     /* [n_tokens] added tokens that the model itself does not know, or NULL:
                          none */
    char *text_bytes;  /* texts that are in no file */
    char *piece_bytes; /* bytes of the pieces that differ from the text */
    size_t max_piece;  /* bytes of the longest piece or token */
    size_t reach;      /* most bytes of text that a token can stand for; 0: not known */
    tern_span_index by_text;
    int32_t byte_tokens[256]; /* token of each byte, -1: none */

    /* Special tokens of a GGUF file (control, user-defined, unknown), longest first, then by id. */
    size_t n_special;
    int32_t *special;
    /* Added tokens of a tokenizer.json. */
    tern_added_set added, added_normalized;
    char **normalized_texts; /* [added_normalized.n] */

    bool marked_starts, joins_punctuation; /* as in tern_vocabulary */

    tern_pipeline *pipeline; /* NULL: SCORES, which has rules of its own */
    tern_merge_table merges; /* BPE */
    tern_extra_texts extra;  /* texts of merges that are not tokens: ids from n_tokens on */
    double *scores;          /* SCORES, UNIGRAM: [n_tokens] */
    tern_prefix_set greedy;  /* GREEDY: tokens that text may become */
    tern_trie trie;          /* UNIGRAM: the same */
    double unknown_score;    /* UNIGRAM: score of a character without a token */
    tern_word_pieces words;  /* WORDPIECE */
};

/* True if the architecture of that name has tern_arch.bitnet_text; false for NULL and unknown
 * names. */
bool tern_tokenizer_is_bitnet(const char *architecture);

/* Finds the token with that text; -1: none. */
int32_t tern_token_find(const tern_tokenizer *t, tern_span text);
int32_t tern_token_find_text(const tern_tokenizer *t, const char *text);

/* Does the same for the model's own tokens only. */
int32_t tern_token_find_own(const tern_tokenizer *t, tern_span text);

/* Finds out the bytes that each token stands for. */
TERN_MUST_CHECK tern_status tern_tokenizer_set_pieces(tern_tokenizer *t, tern_error *err);

/* Builds the table of merges; texts in them that are not tokens get ids from n_tokens on. */
TERN_MUST_CHECK tern_status tern_tokenizer_set_merges(tern_tokenizer *t, const tern_vocabulary *v,
                                                      tern_error *err);

/* Set up the search for tokens in a text, for UNIGRAM and WORDPIECE. Tokens that are not text are
 * left out. */
TERN_MUST_CHECK tern_status tern_tokenizer_set_unigram(tern_tokenizer *t, tern_error *err);
TERN_MUST_CHECK tern_status tern_tokenizer_set_words(tern_tokenizer *t, const tern_vocabulary *v,
                                                     tern_error *err);
void tern_word_pieces_free(tern_word_pieces *words);

/* Computes tern_tokenizer_reach. All other members must be set. */
size_t tern_tokenizer_find_reach(const tern_tokenizer *t);

/* ---- encoding ---------------------------------------------------------------------------------
 */

/* The best way found to cut a text up to one of its bytes. */
typedef struct tern_best_path {
    double score;
    int32_t start; /* start of its last token, -1: no way was found; later the end of the next
                      token */
    int32_t id;    /* id of its last token */
} tern_best_path;

/* One call of tern_tokenize or tern_chat_tokenize. */
typedef struct tern_encoder {
    const tern_tokenizer *t;
    int32_t *ids;
    size_t capacity, n; /* n goes on counting when ids is full */
    bool grows;         /* ids is from realloc and grows; _finish tells when memory is short */
    const tern_tokenize_limits *limits; /* NULL: none */
    size_t taken;                       /* bytes of texts so far */
    size_t untold;                      /* bytes of pieces since the last call of limits->goes_on */
    tern_merger merger;
    tern_best_path *paths; /* UNIGRAM; bytes in paths_capacity */
    size_t paths_capacity;
    tern_pipeline_scratch *scratch;
    char *fragment; /* text as valid UTF-8, or with visible spaces */
    size_t fragment_capacity;
} tern_encoder;

void tern_encoder_emit(tern_encoder *e, int32_t id);

/* Call before a text of so many bytes is encoded. TERN_ERR_CONTEXT: by its length alone it is too
 * long. */
TERN_MUST_CHECK tern_status tern_encoder_take(tern_encoder *e, size_t bytes);

/* Call before so many bytes of it are encoded. TERN_ERR_CONTEXT: there are too many tokens.
 * TERN_ERR_STATE: the caller does not want them any more. */
TERN_MUST_CHECK tern_status tern_encoder_pass(tern_encoder *e, size_t bytes);

/* True while the caller still wants the tokens. For the inside of long pieces. */
bool tern_encoder_goes_on(void *encoder);

/* Grows *buffer to at least need bytes; its contents are lost. False when memory is short. */
bool tern_scratch_reserve(void **buffer, size_t *capacity, size_t need);

/* Encodes text. Special tokens are recognised if `parse` is set (TERN_TOKENIZE_PARSE). No BOS or
 * EOS. */
TERN_MUST_CHECK tern_status tern_encode_text(tern_encoder *e, tern_span text, bool parse);

/*
 * Does the same for valid UTF-8 with a mark for each byte: control tokens are recognised where all
 * of their marks are 0.
 */
TERN_MUST_CHECK tern_status tern_encode_marked(tern_encoder *e, tern_span text,
                                               const uint8_t *marks);

/* Encode a piece that the pipeline made. */
TERN_MUST_CHECK tern_status tern_bpe_encode(tern_encoder *e, tern_span piece);
TERN_MUST_CHECK tern_status tern_greedy_encode(tern_encoder *e, tern_span piece);
TERN_MUST_CHECK tern_status tern_unigram_encode(tern_encoder *e, tern_span piece);
TERN_MUST_CHECK tern_status tern_words_encode(tern_encoder *e, tern_span piece);

/* True for a token that text may become, in a vocabulary of UNIGRAM or WORDPIECE. */
bool tern_token_is_text(const tern_tokenizer *t, size_t id);

/* Encodes a fragment without special tokens, by scores. prefix: a space belongs before it. */
TERN_MUST_CHECK tern_status tern_spm_encode(tern_encoder *e, tern_span fragment, bool prefix);

/* Ends a call: frees the scratch and, unless status is a failure, sets *n and checks capacity. */
TERN_MUST_CHECK tern_status tern_encoder_finish(tern_encoder *e, tern_status status, size_t *n,
                                                tern_error *err);

#endif
