/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/pre.h"

#include <string.h>

#include "runtime/text/tokenizer/index.h"

#define CONTRACTION "'s|'t|'re|'ve|'m|'ll|'d"
#define ONE "\\p{N}"
#define THREE "\\p{N}{1,3}"
#define SPACES "\\s+(?!\\S)|\\s+"
#define LINES "\\s*[\\r\\n]+|" SPACES
#define SIGNS " ?[^\\s\\p{L}\\p{N}]+"

/* Words of letters; those of GPT-4o and its kin end where small letters are followed by capital
 * ones. */
#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define WORD BEFORE "\\p{L}+"
#define CAPITAL(not ) "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}" not "]"
#define SMALL(not ) "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}" not "]"
#define CASED(not, ending)                                                                         \
    BEFORE CAPITAL(not ) "*" SMALL(not ) "+" ending                                                \
                                         "|" BEFORE CAPITAL(not ) "+" SMALL(not ) "*" ending
#define SUFFIX "(?i:" CONTRACTION ")?"

#define LLAMA3(numbers) "(?i:" CONTRACTION ")|" WORD "|" numbers "|" SIGNS "[\\r\\n]*|" LINES
#define GPT4O(numbers) CASED("", SUFFIX) "|" numbers "|" SIGNS "[\\r\\n/]*|" LINES

/* DeepSeek's: a sign and the ASCII letters after it, letters with marks, signs. Ends of lines stand
 * in its file as they are. */
#define ASCII_SIGN "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
#define MARKED(cr, lf) "[^" cr lf "\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
#define DEEPSEEK3(cr, lf)                                                                          \
    ASCII_SIGN MARKED(cr, lf) "| ?[\\p{P}\\p{S}]+[" cr lf "]*|\\s*[" cr lf "]+|" SPACES

const char tern_pattern_gpt2[] = CONTRACTION "| ?\\p{L}+| ?\\p{N}+|" SIGNS "|" SPACES;

enum {
    END,
    P_LLAMA3,
    P_QWEN2,
    P_QWEN35,
    P_GPT4O,
    P_GPT4O_ONE,
    P_TEKKEN,
    P_KIMI,
    P_BAILING,
    P_SEED,
    P_TURKISH,
    P_EXAONE_MOE,
    P_MINICPM5,
    P_JAIS2,
    P_GPT2,
    P_DEEPSEEK3,
    P_AFMOE,
    P_SPARK,
    P_CJK,
    P_AFMOE_CJK,
    P_YOUTU,
    P_LINE_END,
    P_DEEPSEEK_LETTERS,
    P_DEEPSEEK_SIGNS,
    P_DEEPSEEK_END,
    P_DEEPSEEK_CJK,
    P_CODER_LETTERS,
    P_CODER_SIGNS,
    P_BLOOM,
    P_LINE,
    P_SENTINEL,
    P_IMAGE,
    P_INDENT,
    P_SIGN,
    P_TAIL_THREES,
    P_AFMOE_NUMBERS,
    P_BEFORE_THREES,
    P_PUNCT,
    P_PUNCT_TICK,
    P_NUMBER,
    P_NUMBERS,
    P_NUMBERS3,
    P_DIGITS3,
    P_DIGIT,
};

/* A pattern of a rule, as the models' own files spell it: tern_pre_recognise compares texts. */
static const struct pattern {
    const char *text;
    bool whole; /* it matches every character: nothing is between matches */
} patterns[] = {
    [P_LLAMA3] = {LLAMA3(THREE), true},
    [P_QWEN2] = {LLAMA3(ONE), true},
    [P_QWEN35] = {"(?i:" CONTRACTION ")|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|" ONE
                  "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES,
                  true},
    [P_GPT4O] = {GPT4O(THREE), true},
    [P_GPT4O_ONE] = {GPT4O(ONE), true},
    [P_TEKKEN] = {CASED("", "") "|" ONE "|" SIGNS "[\\r\\n/]*|" LINES, true},
    [P_KIMI] = {"[\\p{Han}]+|" CASED("&&[^\\p{Han}]", SUFFIX) "|" THREE "|" SIGNS
                                                              "[\\r\\n]*|" LINES,
                true},
    [P_BAILING] = {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|" ONE "|" SIGNS
                   "+[\\r\\n]*|\\s*[\\r\\n]|" SPACES,
                   true},
    [P_SEED] = {"(?i:" CONTRACTION ")|" WORD "|" ONE
                "{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|" SPACES,
                true},
    [P_TURKISH] = {WORD "|" ONE "|" SIGNS "[\\r\\n]*|" LINES, true},
    [P_EXAONE_MOE] = {"(?i:" CONTRACTION
                      ")|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|" ONE "|" SIGNS
                      "[\\r\\n/]?|\\s*[\\r\\n]|" SPACES,
                      true},
    [P_MINICPM5] = {LLAMA3("\\p{N}+"), true},
    [P_JAIS2] =
        {"(?i:" CONTRACTION ")|" WORD "|" THREE "|" SIGNS
         "[\\r\\n]*|\\s*[\\r\\n]+|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|"
         "\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}",
         true},
    [P_GPT2] = {tern_pattern_gpt2, true},
    [P_DEEPSEEK3] = {DEEPSEEK3("\r", "\n"), false},
    [P_AFMOE] = {DEEPSEEK3("\\r", "\\n"), false},
    [P_SPARK] = {ASCII_SIGN MARKED("\r", "\n") "| ?[\\p{P}\\p{S}]+|[\r\n]|" SPACES, false},
    [P_CJK] = {"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", false},
    [P_AFMOE_CJK] = {"[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f"
                     "\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f"
                     "\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f"
                     "\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+",
                     false},
    [P_YOUTU] = {"[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018"
                 "\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+|["
                 "\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
                 false},
    [P_LINE_END] = {"[\r\n]", false},
    [P_DEEPSEEK_LETTERS] =
        {"\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-"
         "\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-"
         "\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-"
         "\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-"
         "\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-"
         "\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-"
         "\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-"
         "\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-"
         "\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-"
         "\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-"
         "\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-"
         "\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-"
         "\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+",
         false},
    [P_DEEPSEEK_SIGNS] = {"\\s?[!-/"
                          ":-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
                          false},
    [P_DEEPSEEK_END] = {"\\s+$", false},
    [P_DEEPSEEK_CJK] = {"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", false},
    [P_CODER_LETTERS] = {"\\s?\\p{L}+", false},
    [P_CODER_SIGNS] = {"\\s?\\p{P}+", false},
    [P_BLOOM] = {" ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+", false},
    [P_LINE] = {"[^\\n]+|[\\n]+", true},
    [P_SENTINEL] = {"<sentinel:[0-9]+>", false},
    [P_IMAGE] = {"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", false},
    [P_INDENT] = {"([\\t\\n]|    |  )", false},
    [P_SIGN] = {"[\\p{P}!-/:-@\\[-`{-~]", false},
    [P_TAIL_THREES] = {"\\d{1,3}(?=(?:\\d{3})*\\b)", false},
    [P_AFMOE_NUMBERS] = {"\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))", false},
    [P_BEFORE_THREES] = {"(?=(\\d{3})+(?!\\d))", false},
    [P_PUNCT] = {"[\\p{P}\\$\\+<=>\\^~\\|]+", false},
    [P_PUNCT_TICK] = {"[\\p{P}\\$\\+<=>\\^~\\|`]+", false},
    [P_NUMBER] = {ONE, false},
    [P_NUMBERS] = {"\\p{N}+", false},
    [P_NUMBERS3] = {THREE, false},
    [P_DIGITS3] = {"[0-9][0-9][0-9]", false},
    [P_DIGIT] = {"[0-9]", false},
};

/* docs/tokenizers.md says why falcon3 has the row of its own. */
static const tern_pre_rule rules[] = {
    {"llama-bpe llama3 llama-v3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
     {P_LLAMA3},
     true,
     true},
    {"dbrx smaug-bpe chatglm-bpe glm4", {P_LLAMA3}, false, false},
    {"qwen2 deepseek-r1-qwen megrez stablelm2 kormo f2llmv2 hunyuan solar-open grok-2",
     {P_QWEN2},
     false,
     false},
    {"qwen35", {P_QWEN35}, false, false},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", {P_GPT4O}, false, false},
    {"granite-embed-multi-97m", {P_GPT4O}, true, false},
    {"tiny_aya cohere2moe", {P_TAIL_THREES, P_GPT4O}, false, false},
    {"youtu", {P_YOUTU, P_GPT4O_ONE}, true, false},
    {"tekken", {P_TEKKEN}, true, true},
    {"kimi-k2", {P_KIMI}, false, false},
    {"bailingmoe bailingmoe2 llada-moe", {P_BAILING}, false, false},
    {"seed-coder", {P_SEED}, false, false},
    {"ufakzeka", {P_TURKISH}, false, false},
    {"exaone-moe", {P_EXAONE_MOE}, false, false},
    {"minicpm5", {P_NUMBERS3, P_MINICPM5}, true, false},
    {"jais-2", {P_JAIS2}, false, false},
    {"laguna", {P_LINE, P_QWEN2}, false, false},
    {"deepseek-llm",
     {P_LINE_END, P_DEEPSEEK_LETTERS, P_DEEPSEEK_SIGNS, P_DEEPSEEK_END, P_DEEPSEEK_CJK, P_NUMBERS},
     false,
     false},
    {"deepseek-coder",
     {P_LINE_END, P_CODER_LETTERS, P_CODER_SIGNS, P_DEEPSEEK_CJK, P_NUMBER},
     false,
     false},
    {"deepseek-v3 hunyuan-dense joyai-llm hy_v4", {P_NUMBERS3, P_CJK, P_DEEPSEEK3}, false, false},
    {"spark2_5", {P_NUMBERS3, P_CJK, P_SPARK, P_NUMBER}, false, false},
    {"afmoe", {P_AFMOE_NUMBERS, P_AFMOE_CJK, P_AFMOE}, false, false},
    {"poro-chat bloom gpt3-finnish", {P_BLOOM}, false, false},
    {"viking", {P_BLOOM, P_NUMBER}, false, false},
    {"superbpe", {P_NUMBERS, P_BEFORE_THREES}, false, false},
    {"chameleon", {P_SENTINEL, P_IMAGE, P_INDENT, P_NUMBER, P_SIGN, P_GPT2}, false, true},
    {"gpt-2 phi-2 roberta-bpe mpt olmo jais jina-v1-en jina-v2-es jina-v2-de jina-v2-code jina-es "
     "jina-de gigachat a.x-4.0 mellum modern-bert exaone4 trillion granite-docling",
     {P_GPT2},
     false,
     false},
    {"smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
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

void tern_pre_add_steps(const tern_pre_rule *rule, tern_vocabulary *v) {
    for (size_t i = 0; i < TERN_PRE_MAX_PATTERNS && rule->patterns[i] != END; i++) {
        const char *text = patterns[rule->patterns[i]].text;
        v->steps[v->n_steps++] =
            (tern_step){.kind = TERN_STEP_SPLIT, .pattern = {text, strlen(text)}};
    }
    v->steps[v->n_steps++] = (tern_step){.kind = TERN_STEP_BYTES};
}

/* True for a pattern that matches every character. */
static bool matches_all(tern_span text) {
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (patterns[i].whole &&
            tern_spans_equal(text, (tern_span){patterns[i].text, strlen(patterns[i].text)}))
            return true;
    return false;
}

/* True if a step keeps matches and drops the rest, of which there is none. */
static bool drops_nothing(const tern_step *step) {
    return step->behavior == TERN_SPLIT_REMOVED && step->invert && matches_all(step->pattern);
}

/* True if a step does what that of a rule does. */
static bool steps_equal(const tern_step *rule, const tern_step *step) {
    return rule->kind == step->kind && rule->literal == step->literal &&
           tern_spans_equal(rule->pattern, step->pattern) &&
           ((rule->behavior == step->behavior && rule->invert == step->invert) ||
            drops_nothing(step));
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
