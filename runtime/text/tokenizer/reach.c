/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/internal.h"

/*
 * Finds the most bytes of a text that one token can stand for. With that number, the size of a text
 * alone can show that it is too long for a context. There is no such number where a text may
 * vanish: white space that is stripped, characters without a token, or a run of them that becomes
 * one unknown token.
 */

static bool has_all_bytes(const tern_tokenizer *t) {
    for (size_t i = 0; i < 256; i++)
        if (t->byte_tokens[i] < 0)
            return false;
    return true;
}

/* True if each character of the byte alphabet is a token. Then no byte vanishes. */
static bool has_alphabet(const tern_tokenizer *t) {
    for (unsigned byte = 0; byte < 256; byte++) {
        const uint32_t code = tern_byte_to_char((unsigned char)byte);
        const char two[] = {(char)(0xC0 | code >> 6), (char)(0x80 | (code & 0x3F))};
        const char one = (char)code;
        const tern_span character = {code < 0x80 ? &one : two, code < 0x80 ? 1 : 2};
        if (tern_token_find_own(t, character) < 0)
            return false;
    }
    return true;
}

/* True if each character of a text ends up in a token of its own, or in one whose text has it. */
static bool keeps_all(const tern_tokenizer *t) {
    const bool bytes = has_all_bytes(t);
    switch (t->kind) {
    case TERN_VOCABULARY_BYTE_BPE:
        return t->extra.n == 0 && has_alphabet(t);
    case TERN_VOCABULARY_TEXT_BPE:
        return t->extra.n == 0 && t->closed_merges &&
               ((t->byte_fallback && bytes) || (t->unknown >= 0 && !t->fuse_unknown));
    case TERN_VOCABULARY_SCORES:
    case TERN_VOCABULARY_GREEDY:
        return bytes || t->unknown >= 0;
    case TERN_VOCABULARY_UNIGRAM:
        return t->byte_fallback && bytes;
    case TERN_VOCABULARY_WORDPIECE:
        break;
    }
    return false;
}

/* True if an added token takes the white space beside it, however much there is. */
static bool strips(const tern_added_set *set) {
    for (size_t i = 0; i < set->n; i++)
        if (set->tokens[i].lstrip || set->tokens[i].rstrip)
            return true;
    return false;
}

/* Bytes of the longest token, in the form in which text is compared with it. */
static size_t longest_text(const tern_tokenizer *t) {
    size_t longest = TERN_LONGEST_CHARACTER;
    for (size_t i = 0; i < t->n_tokens; i++)
        longest = t->tokens[i].size > longest ? t->tokens[i].size : longest;
    return longest;
}

size_t tern_tokenizer_find_reach(const tern_tokenizer *t) {
    if (!keeps_all(t) || strips(&t->added) || strips(&t->added_normalized))
        return 0;
    /* Text in the byte alphabet is longer than the bytes that it stands for. The pieces are these
     * bytes. */
    const bool in_bytes = t->kind == TERN_VOCABULARY_BYTE_BPE && t->max_piece > 0;
    const size_t longest = in_bytes ? t->max_piece : longest_text(t);
    return longest * (t->pipeline != NULL ? tern_pipeline_shrinks(t->pipeline) : 1);
}

size_t tern_tokenizer_reach(const tern_tokenizer *t) {
    return t->reach;
}
