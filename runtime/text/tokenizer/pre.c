/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/pre.h"

#include <string.h>

#include "runtime/text/tokenizer/index.h"

#define CONTRACTION "'s|'t|'re|'ve|'m|'ll|'d"
#define LLAMA3(numbers)                                                                            \
    "(?i:" CONTRACTION ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers                                  \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

const char tern_pattern_gpt2[] =
    CONTRACTION "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

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
    [P_LLAMA3] = LLAMA3("\\p{N}{1,3}"),
    [P_QWEN2] = LLAMA3("\\p{N}"),
    [P_GPT2] = tern_pattern_gpt2,
    [P_PUNCT] = "[\\p{P}\\$\\+<=>\\^~\\|]+",
    [P_PUNCT_TICK] = "[\\p{P}\\$\\+<=>\\^~\\|`]+",
    [P_NUMBER] = "\\p{N}",
    [P_NUMBERS] = "\\p{N}+",
    [P_DIGITS3] = "[0-9][0-9][0-9]",
    [P_DIGIT] = "[0-9]",
};

/* docs/tokenizers.md says why falcon3 has this row. */
static const tern_pre_rule rules[] = {
    {"llama-bpe llama3 llama-v3", {P_LLAMA3}, true, true},
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
    if (name.size == 0 || name.size >= sizeof((tern_vocabulary *)NULL)->pre)
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

void tern_pre_add_steps(const tern_pre_rule *rule, tern_vocabulary *v) {
    for (size_t i = 0; i < TERN_PRE_MAX_PATTERNS && rule->patterns[i] != END; i++) {
        const char *text = pattern_text[rule->patterns[i]];
        v->steps[v->n_steps++] =
            (tern_step){.kind = TERN_STEP_SPLIT, .pattern = {text, strlen(text)}};
    }
    v->steps[v->n_steps++] = (tern_step){.kind = TERN_STEP_BYTES};
}

static bool steps_equal(const tern_step *a, const tern_step *b) {
    return a->kind == b->kind && a->behavior == b->behavior && a->invert == b->invert &&
           a->literal == b->literal && tern_spans_equal(a->pattern, b->pattern);
}

static bool matches(const tern_pre_rule *rule, const tern_vocabulary *v, size_t from) {
    tern_vocabulary other = {.n_steps = 0};
    tern_pre_add_steps(rule, &other);
    if (rule->ignore_merges != v->ignore_merges || v->n_steps - from != other.n_steps)
        return false;
    for (size_t i = 0; i < other.n_steps; i++)
        if (!steps_equal(&other.steps[i], &v->steps[from + i]))
            return false;
    return true;
}

void tern_pre_recognise(tern_vocabulary *v) {
    size_t from = 0; /* normalizers are passed over: GGUF has no names for them */
    while (from < v->n_steps &&
           (v->steps[from].kind == TERN_STEP_NORMALIZE || v->steps[from].kind == TERN_STEP_ADDED))
        from++;
    v->pre[0] = '\0';
    for (size_t i = 0; i < N_RULES && v->pre[0] == '\0'; i++) {
        if (!matches(&rules[i], v, from))
            continue;
        const size_t size = strcspn(rules[i].names, " ");
        memcpy(v->pre, rules[i].names, size);
        v->pre[size] = '\0';
    }
}
