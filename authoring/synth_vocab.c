/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up vocabulary that works like a real one. Words are one to three syllables of a consonant
 * and a vowel; each word also occurs with a leading space. Every word is the merge of two earlier
 * tokens, and the order of the merges makes byte-pair encoding arrive at exactly those two.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/synth_internal.h"

static const char consonants[] = "bcdfghjklmnpqrstvwxyz";
static const char vowels[] = "aeiou";

enum {
    N_VOWELS = sizeof vowels - 1,
    N_SYLLABLES = (sizeof consonants - 1) * N_VOWELS, /* S: 105 */
    N_PAIRS = N_SYLLABLES * N_SYLLABLES,              /* words of two syllables */
    N_BYTES = 256,
    /* A space (2 bytes) and three syllables are 8 bytes; a merge has one more. Including stpcpy's
     * zero a token and its merge take at most 9 + 10. */
    WORD_TEXT_BYTES = 20,
    SPECIAL_TEXT_BYTES = 40
};

static const char space[] = "\xc4\xa0"; /* U+0120: 0x20 in the byte alphabet */

/* Joins a, b and c in vocab->text, which is large enough for all texts. */
static tern_span add_text(tern_synth_vocab *v, const char *a, const char *b, const char *c) {
    char *at = v->text + v->text_used;
    const size_t size = (size_t)(stpcpy(stpcpy(stpcpy(at, a), b), c) - at);
    v->text_used += size;
    return (tern_span){at, size};
}

static void add_token(tern_synth_vocab *v, tern_span text, int32_t type) {
    v->tokens[v->n_tokens] = text;
    v->types[v->n_tokens] = type;
    v->n_tokens++;
}

/* ---- bytes --------------------------------------------------------------------------------- */

/*
 * Code point of byte token id: the printable bytes 21-7E, A1-AC, AE-FF represent themselves, the
 * other 68 follow from U+0100 on.
 */
static unsigned byte_code_point(unsigned id) {
    if (id < 94)
        return 0x21 + id;
    if (id < 106)
        return 0xa1 + (id - 94);
    if (id < 188)
        return 0xae + (id - 106);
    return 0x100 + (id - 188);
}

static void add_byte(tern_synth_vocab *v, unsigned id) {
    const unsigned c = byte_code_point(id);
    char text[3] = {(char)c, '\0', '\0'};
    if (c >= 0x80) {
        text[0] = (char)(0xc0 | c >> 6);
        text[1] = (char)(0x80 | (c & 0x3f));
    }
    add_token(v, add_text(v, text, "", ""), 1);
}

/* ---- words --------------------------------------------------------------------------------- */

/* A word as the two tokens that are merged into it. */
typedef struct word {
    char left[8], right[8];
} word;

/* Appends syllable i to text. */
static void append_syllable(char *text, size_t i) {
    const size_t n = strlen(text);
    text[n] = consonants[i / N_VOWELS];
    text[n + 1] = vowels[i % N_VOWELS];
    text[n + 2] = '\0';
}

/*
 * Word i: the syllables first, then the pairs (a, b) in order of a*S + b, then triples. Byte-pair
 * encoding merges the pair of lower rank in a triple, or the left one if they are equal. The first
 * syllable of triples varies fastest, for variety.
 */
static word make_word(size_t i) {
    word w = {"", ""};
    if (i < N_SYLLABLES) {
        w.left[0] = consonants[i / N_VOWELS];
        w.right[0] = vowels[i % N_VOWELS];
        return w;
    }
    i -= N_SYLLABLES;
    if (i < N_PAIRS) {
        append_syllable(w.left, i / N_SYLLABLES);
        append_syllable(w.right, i % N_SYLLABLES);
        return w;
    }
    i -= N_PAIRS;
    const size_t a = i % N_SYLLABLES, b = i / N_SYLLABLES % N_SYLLABLES, c = i / N_PAIRS;
    append_syllable(w.left, a);
    append_syllable(a * N_SYLLABLES + b <= b * N_SYLLABLES + c ? w.left : w.right, b);
    append_syllable(w.right, c);
    return w;
}

/* n words, the second half of them with a leading space. */
static void add_words(tern_synth_vocab *v, size_t n) {
    const size_t n_plain = n - n / 2;
    for (size_t i = 0; i < n; i++) {
        word w = make_word(i < n_plain ? i : i - n_plain);
        char plain[sizeof w.left + sizeof w.right];
        snprintf(plain, sizeof plain, "%s%s", w.left, w.right);
        const bool spaced = i >= n_plain;
        const char *left = spaced ? space : w.left, *right = spaced ? plain : w.right;
        add_token(v, add_text(v, left, right, ""), 1);
        v->merges[v->n_merges++] = add_text(v, left, " ", right);
    }
}

/* ---- special tokens ------------------------------------------------------------------------ */

static void add_llama3_special(tern_synth_vocab *v, size_t i) {
    static const char *const names[] = {
        [0] = "<|begin_of_text|>", [1] = "<|end_of_text|>", [6] = "<|start_header_id|>",
        [7] = "<|end_header_id|>", [9] = "<|eot_id|>",
    };
    if (i < sizeof names / sizeof names[0] && names[i] != NULL) {
        add_token(v, (tern_span){names[i], strlen(names[i])}, 3);
        return;
    }
    char number[24]; /* reserved tokens are numbered without counting the named ones */
    snprintf(number, sizeof number, "%zu", i < 6 ? i - 2 : i == 8 ? 4 : i - 5);
    add_token(v, add_text(v, "<|reserved_special_token_", number, "|>"), 3);
}

static void add_chatml_special(tern_synth_vocab *v, size_t i) {
    static const char *const names[] = {
        "<|endoftext|>",  "<|im_start|>",    "<|im_end|>",       "<repo_name>",
        "<reponame>",     "<file_sep>",      "<filename>",       "<gh_stars>",
        "<issue_start>",  "<issue_comment>", "<issue_closed>",   "<jupyter_start>",
        "<jupyter_text>", "<jupyter_code>",  "<jupyter_output>", "<jupyter_script>",
        "<empty_output>",
    };
    add_token(v, (tern_span){names[i], strlen(names[i])}, 3);
}

/* ---- the whole ----------------------------------------------------------------------------- */

tern_status tern_synth_vocab_new(tern_synth_tokens kind, size_t n_tokens, size_t n_special,
                                 tern_synth_vocab *out, tern_error *err) {
    tern_synth_vocab v = {0};
    const size_t n_words = n_tokens - n_special - N_BYTES;
    v.tokens = calloc(n_tokens, sizeof *v.tokens);
    v.types = calloc(n_tokens, sizeof *v.types);
    v.merges = calloc(n_words, sizeof *v.merges);
    v.text = malloc(n_tokens * WORD_TEXT_BYTES + n_special * SPECIAL_TEXT_BYTES);
    if (v.tokens == NULL || v.types == NULL || v.merges == NULL || v.text == NULL) {
        tern_synth_vocab_free(&v);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a vocabulary of %zu tokens", n_tokens);
    }
    for (size_t i = 0; kind == TERN_SYNTH_CHATML && i < n_special; i++)
        add_chatml_special(&v, i);
    for (unsigned id = 0; id < N_BYTES; id++)
        add_byte(&v, id);
    add_words(&v, n_words);
    for (size_t i = 0; kind == TERN_SYNTH_LLAMA3 && i < n_special; i++)
        add_llama3_special(&v, i);
    *out = v;
    return TERN_OK;
}

void tern_synth_vocab_free(tern_synth_vocab *vocab) {
    free(vocab->tokens);
    free(vocab->types);
    free(vocab->merges);
    free(vocab->text);
    *vocab = (tern_synth_vocab){0};
}
