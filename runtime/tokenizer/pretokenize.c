/* SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/internal.h"

/*
 * Unicode White_Space, spelled out: what PCRE2 calls \s also holds U+180E, which left White_Space
 * in Unicode 6.3.
 */
#define SPACE                                                                                      \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}"             \
    "\\x{202f}\\x{205f}\\x{3000}"
#define LINE_END "\\x{d}\\x{a}"
#define LETTER "\\p{L}"
#define NUMBER "\\p{N}"
#define CONTRACTION "'s|'t|'re|'ve|'m|'ll|'d"
#define TRAILING_SPACE "[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+"

#define LLAMA3(numbers)                                                                            \
    "(?i:" CONTRACTION ")|[^" LINE_END LETTER NUMBER "]?" LETTER "+|" numbers                      \
    "| ?[^" SPACE LETTER NUMBER "]+[" LINE_END "]*|[" SPACE "]*[" LINE_END "]+|" TRAILING_SPACE
#define GPT2                                                                                       \
    CONTRACTION "| ?" LETTER "+| ?" NUMBER "+| ?[^" SPACE LETTER NUMBER "]+|" TRAILING_SPACE
#define PUNCTUATION "\\p{P}\\$+<=>\\^~|"

enum {
    END,
    P_LLAMA3,
    P_QWEN2,
    P_GPT2,
    P_PUNCT,
    P_PUNCT_TICK,
    P_NUMBER,
    P_NUMBERS,
    P_DIGITS3,
    P_DIGIT
};

static const char *const pattern_text[] = {
    [P_LLAMA3] = LLAMA3(NUMBER "{1,3}"),
    [P_QWEN2] = LLAMA3(NUMBER),
    [P_GPT2] = GPT2,
    [P_PUNCT] = "[" PUNCTUATION "]+",
    [P_PUNCT_TICK] = "[" PUNCTUATION "`]+",
    [P_NUMBER] = NUMBER,
    [P_NUMBERS] = NUMBER "+",
    [P_DIGITS3] = "[0-9][0-9][0-9]",
    [P_DIGIT] = "[0-9]",
};

/* docs/tokenizers.md says where each row comes from, and why falcon3 is the row that it is. */
static const tern_pre_rule rules[] = {
    {"llama3 llama-v3 llama-bpe", {P_LLAMA3}, true, true},
    {"dbrx smaug-bpe", {P_LLAMA3}, false, false},
    {"qwen2 deepseek-r1-qwen megrez stablelm2", {P_QWEN2}, false, false},
    {"gpt-2 phi-2 roberta-bpe mpt olmo jais jina-v1-en jina-v2-es jina-v2-de jina-v2-code gigachat",
     {P_GPT2},
     false,
     false},
    {"smollm starcoder refact command-r codeshell exaone minerva-7b",
     {P_NUMBER, P_GPT2},
     false,
     false},
    {"falcon", {P_PUNCT_TICK, P_GPT2, P_DIGITS3}, false, false},
    {"falcon3 falcon_e", {P_PUNCT_TICK, P_GPT2, P_DIGIT}, false, false},
    {"default", {P_PUNCT, P_GPT2, P_NUMBERS, P_DIGITS3}, false, false},
};

enum { N_RULES = sizeof rules / sizeof rules[0] };

struct tern_pretokenizer {
    size_t n;
    pcre2_code *codes[TERN_PRE_MAX_PATTERNS];
};

/* A match at one level is read before the next level runs, so one match data serves them all. */
struct tern_pretokenizer_scratch {
    pcre2_match_data *match;
    pcre2_match_context *context;
};

static bool names_include(const char *names, tern_span name) {
    while (*names != '\0') {
        const size_t size = strcspn(names, " ");
        if (tern_spans_equal((tern_span){names, size}, name))
            return true;
        names += size + (names[size] == ' ');
    }
    return false;
}

const tern_pre_rule *tern_pre_find(tern_span name) {
    if (name.size == 0 || name.size > TERN_PRE_MAX_NAME)
        return NULL;
    for (size_t i = 0; i < N_RULES; i++)
        if (names_include(rules[i].names, name))
            return &rules[i];
    return NULL;
}

void tern_pre_list(char *out, size_t capacity) {
    size_t used = 0;
    for (size_t i = 0; i < N_RULES; i++) {
        const size_t size = strlen(rules[i].names);
        if (size + 2 > capacity - used)
            break;
        if (used > 0)
            out[used++] = ' ';
        memcpy(out + used, rules[i].names, size);
        used += size;
    }
    out[used] = '\0';
}

/* The patterns are constants, so the only way to fail is memory. JIT is a bonus: not everywhere. */
static pcre2_code *compile(const char *pattern) {
    int number;
    PCRE2_SIZE offset;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_UCP, &number, &offset, NULL);
    if (code != NULL)
        (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    return code;
}

tern_status tern_pretokenizer_new(const tern_pre_rule *rule, tern_pretokenizer **out) {
    tern_pretokenizer *p = calloc(1, sizeof *p);
    if (p == NULL)
        return TERN_ERR_NOMEM;
    for (size_t i = 0; i < TERN_PRE_MAX_PATTERNS && rule->patterns[i] != END; i++) {
        p->codes[i] = compile(pattern_text[rule->patterns[i]]);
        if (p->codes[i] == NULL) {
            tern_pretokenizer_free(&p);
            return TERN_ERR_NOMEM;
        }
        p->n = i + 1;
    }
    *out = p;
    return TERN_OK;
}

void tern_pretokenizer_free(tern_pretokenizer **p) {
    if (*p == NULL)
        return;
    for (size_t i = 0; i < (*p)->n; i++)
        pcre2_code_free((*p)->codes[i]);
    free(*p);
    *p = NULL;
}

tern_pre_scratch *tern_pre_scratch_new(void) {
    tern_pre_scratch *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->match = pcre2_match_data_create(1, NULL);
    s->context = pcre2_match_context_create(NULL);
    if (s->match == NULL || s->context == NULL) {
        tern_pre_scratch_free(s);
        return NULL;
    }
    /* No pattern backtracks more than once over a run, but a run may be the whole text. */
    pcre2_set_match_limit(s->context, UINT32_MAX);
    pcre2_set_depth_limit(s->context, UINT32_MAX);
    return s;
}

void tern_pre_scratch_free(tern_pre_scratch *scratch) {
    if (scratch == NULL)
        return;
    pcre2_match_data_free(scratch->match);
    pcre2_match_context_free(scratch->context);
    free(scratch);
}

typedef struct tern_split {
    const tern_pretokenizer *p;
    tern_pre_scratch *scratch;
    tern_piece_callback *callback;
    void *user;
} tern_split;

/*
 * Splits piece by pattern `level` and hands matches and what lies between them to the next level
 * (depth: at most TERN_PRE_MAX_PATTERNS). Each pattern sees a piece as if it were a whole text.
 */
static tern_status split(const tern_split *s, size_t level, tern_span piece) {
    if (piece.size == 0)
        return TERN_OK;
    if (level == s->p->n)
        return s->callback(s->user, piece);
    for (size_t at = 0; at < piece.size;) {
        const int found = pcre2_match(s->p->codes[level], (PCRE2_SPTR)piece.data, piece.size, at,
                                      PCRE2_NO_UTF_CHECK, s->scratch->match, s->scratch->context);
        if (found < 0 && found != PCRE2_ERROR_NOMATCH)
            return TERN_ERR_NOMEM;
        const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(s->scratch->match);
        const size_t start = found < 0 ? piece.size : bounds[0];
        const size_t end = found < 0 ? piece.size : bounds[1];
        tern_status status = split(s, level + 1, (tern_span){piece.data + at, start - at});
        if (status == TERN_OK)
            status = split(s, level + 1, (tern_span){piece.data + start, end - start});
        if (status != TERN_OK)
            return status;
        at = end;
    }
    return TERN_OK;
}

tern_status tern_pretokenize(const tern_pretokenizer *p, tern_pre_scratch *scratch, tern_span text,
                             tern_piece_callback *callback, void *user) {
    const tern_split s = {p, scratch, callback, user};
    return split(&s, 0, text);
}
