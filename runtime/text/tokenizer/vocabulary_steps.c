/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a tokenizer.json does before the model sees a text: normalizer and pre_tokenizer. */

#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/bert_rules.h"
#include "runtime/text/tokenizer/normalize.h"
#include "runtime/text/tokenizer/pre.h"
#include "runtime/text/tokenizer/regex.h"
#include "runtime/text/tokenizer/vocabulary_json.h"

enum { MAX_CONTENT_BYTES = 64 };

typedef struct tern_step_reader {
    tern_vocabulary *v;
    tern_error *err;
    const char *part; /* "normalizer" or "pre_tokenizer" */
} tern_step_reader;

/* Reads one kind of step from its object. */
typedef tern_status tern_read_step(const tern_step_reader *r, const tern_json_value *x);

typedef struct tern_step_name {
    const char *name;
    tern_read_step *read;
} tern_step_name;

static tern_span literal(const char *text) {
    return (tern_span){text, strlen(text)};
}

static tern_status refuse(const tern_step_reader *r, const char *what) {
    return tern_fail(r->err, TERN_ERR_TOKENIZER_PRE, "%s: %s: %s", r->v->file, r->part, what);
}

static tern_status add(const tern_step_reader *r, tern_step step) {
    if (r->v->n_steps == TERN_TOKENIZER_MAX_STEPS)
        return refuse(r, "too many steps");
    r->v->steps[r->v->n_steps++] = step;
    return TERN_OK;
}

/* Reads one step, or the steps of a Sequence (as deep as JSON may be), whose list has that name. */
static tern_status read_step(const tern_step_reader *r, const tern_json_value *x,
                             const tern_step_name *names, const char *list_name) {
    const tern_json_value *type = tern_json_get(x, "type");
    if (type == NULL || type->type != TERN_JSON_STRING)
        return refuse(r, "no type");
    if (tern_json_is_string(type, "Sequence")) {
        const tern_json_value *list = tern_json_get(x, list_name);
        if (list == NULL || list->type != TERN_JSON_ARRAY)
            return refuse(r, "a Sequence without its list");
        const tern_json_value *at = list + 1;
        for (uint32_t i = 0; i < list->count; i++, at += at->size) {
            const tern_status status = read_step(r, at, names, list_name);
            if (status != TERN_OK)
                return status;
        }
        return TERN_OK;
    }
    for (; names->name != NULL; names++)
        if (tern_json_is_string(type, names->name))
            return names->read(r, x);
    return tern_fail(r->err, TERN_ERR_TOKENIZER_PRE, "%s: %s '%.*s' is not supported", r->v->file,
                     r->part, TERN_SHOWN(type->text));
}

/* Reads {"Regex": ".."} or {"String": ".."} under "pattern". */
static tern_status read_pattern(const tern_step_reader *r, const tern_json_value *x,
                                tern_step *step) {
    const tern_json_value *pattern = tern_json_get(x, "pattern");
    const tern_json_value *regex = tern_json_get(pattern, "Regex");
    const tern_json_value *text = tern_json_get(pattern, "String");
    const tern_json_value *found = regex != NULL ? regex : text;
    if (found == NULL || found->type != TERN_JSON_STRING || found->text.size == 0)
        return refuse(r, "a pattern that is neither Regex nor String");
    step->literal = regex == NULL;
    step->pattern = found->text;
    return TERN_OK;
}

/* Reads a text under a name. It must be short, so that no step makes a text much longer. */
static tern_status read_content(const tern_step_reader *r, const tern_json_value *x,
                                const char *name, tern_span *out) {
    const tern_json_value *content = tern_json_get(x, name);
    if (content == NULL || content->type != TERN_JSON_STRING ||
        content->text.size > MAX_CONTENT_BYTES)
        return tern_fail(r->err, TERN_ERR_TOKENIZER_PRE,
                         "%s: %s: '%s' is not a text of at most %d bytes", r->v->file, r->part,
                         name, (int)MAX_CONTENT_BYTES);
    *out = content->text;
    return TERN_OK;
}

/* ---- normalizers ------------------------------------------------------------------------------
 */

static tern_status add_map(const tern_step_reader *r, tern_character_map map) {
    if (map == TERN_MAP_LOWERCASE && !tern_can_normalize())
        return refuse(r, "this build of tern has no lower case (library utf8proc)");
    return add(r, (tern_step){.kind = TERN_STEP_CHARACTERS, .map = map});
}

static tern_status add_form(const tern_step_reader *r, tern_normal_form form) {
    if (!tern_can_normalize())
        return refuse(r, "this build of tern has no Unicode normalization (library utf8proc)");
    return add(r, (tern_step){.kind = TERN_STEP_NORMALIZE, .form = form});
}

static tern_status read_lowercase(const tern_step_reader *r, const tern_json_value *x) {
    (void)x;
    return add_map(r, TERN_MAP_LOWERCASE);
}

static tern_status read_strip_accents(const tern_step_reader *r, const tern_json_value *x) {
    (void)x;
    return add_map(r, TERN_MAP_DROP_MARKS);
}

static tern_status read_nmt(const tern_step_reader *r, const tern_json_value *x) {
    (void)x;
    return add_map(r, TERN_MAP_NMT);
}

/* Reads a flag of BERT's normalizer; absent means true. */
static bool is_on(const tern_json_value *x, const char *name) {
    const tern_json_value *flag = tern_json_get(x, name);
    return flag == NULL || tern_json_is_true(flag);
}

static tern_status read_bert(const tern_step_reader *r, const tern_json_value *x) {
    const tern_json_value *accents = tern_json_get(x, "strip_accents");
    const tern_bert_rules rules = {.clean = is_on(x, "clean_text"),
                                   .han = is_on(x, "handle_chinese_chars"),
                                   .lowercase = is_on(x, "lowercase"),
                                   .accents = accents != NULL ? tern_json_is_true(accents)
                                                              : is_on(x, "lowercase")};
    if ((rules.lowercase || rules.accents) && !tern_can_normalize())
        return refuse(r, tern_no_bert);
    return tern_bert_add_normalizer(r->v, rules) ? TERN_OK : refuse(r, "too many steps");
}

/* Reads a map in base64. Without one nothing is replaced. */
static tern_status read_precompiled(const tern_step_reader *r, const tern_json_value *x) {
    const tern_json_value *map = tern_json_get(x, "precompiled_charsmap");
    if (!tern_can_normalize())
        return refuse(r, "this build of tern does not know whole characters (library utf8proc)");
    if (map == NULL || map->type != TERN_JSON_STRING || r->v->charsmap != NULL)
        return refuse(r, "Precompiled without its map, or a second one");
    size_t size;
    r->v->charsmap = malloc(map->text.size + 1);
    if (r->v->charsmap == NULL)
        return tern_fail(r->err, TERN_ERR_NOMEM, "%s: no memory for the vocabulary", r->v->file);
    if (!tern_base64_decode(map->text, r->v->charsmap, &size))
        return refuse(r, "Precompiled: the map is not base64");
    return add(r, (tern_step){.kind = TERN_STEP_CHARSMAP,
                              .content = {r->v->charsmap, size},
                              .by_character = true});
}

static tern_status read_nfc(const tern_step_reader *r, const tern_json_value *x) {
    (void)x;
    return add_form(r, TERN_NFC);
}

static tern_status read_nfd(const tern_step_reader *r, const tern_json_value *x) {
    (void)x;
    return add_form(r, TERN_NFD);
}

static tern_status read_nfkc(const tern_step_reader *r, const tern_json_value *x) {
    (void)x;
    return add_form(r, TERN_NFKC);
}

static tern_status read_nfkd(const tern_step_reader *r, const tern_json_value *x) {
    (void)x;
    return add_form(r, TERN_NFKD);
}

static tern_status read_prepend(const tern_step_reader *r, const tern_json_value *x) {
    tern_step step = {.kind = TERN_STEP_PREPEND, .where = TERN_PREPEND_ALWAYS};
    const tern_status status = read_content(r, x, "prepend", &step.content);
    return status == TERN_OK ? add(r, step) : status;
}

static tern_status read_replace(const tern_step_reader *r, const tern_json_value *x) {
    tern_step step = {.kind = TERN_STEP_REPLACE};
    tern_status status = read_pattern(r, x, &step);
    if (status == TERN_OK)
        status = read_content(r, x, "content", &step.content);
    return status == TERN_OK ? add(r, step) : status;
}

static tern_status read_strip(const tern_step_reader *r, const tern_json_value *x) {
    return add(r, (tern_step){.kind = TERN_STEP_STRIP,
                              .left = tern_json_is_true(tern_json_get(x, "strip_left")),
                              .right = tern_json_is_true(tern_json_get(x, "strip_right"))});
}

static const tern_step_name normalizers[] = {
    {"BertNormalizer", read_bert},
    {"Precompiled", read_precompiled},
    {"Lowercase", read_lowercase},
    {"StripAccents", read_strip_accents},
    {"Nmt", read_nmt},
    {"NFC", read_nfc},
    {"NFD", read_nfd},
    {"NFKC", read_nfkc},
    {"NFKD", read_nfkd},
    {"Prepend", read_prepend},
    {"Replace", read_replace},
    {"Strip", read_strip},
    {NULL, NULL},
};

/* ---- pre-tokenizers ---------------------------------------------------------------------------
 */

static tern_status add_split(const tern_step_reader *r, const char *pattern,
                             tern_split_behavior behavior) {
    return add(
        r, (tern_step){.kind = TERN_STEP_SPLIT, .pattern = literal(pattern), .behavior = behavior});
}

static tern_status read_byte_level(const tern_step_reader *r, const tern_json_value *x) {
    const tern_json_value *use_regex = tern_json_get(x, "use_regex"); /* older files have none */
    tern_status status = TERN_OK;
    if (tern_json_is_true(tern_json_get(x, "add_prefix_space")))
        status = add(r, (tern_step){.kind = TERN_STEP_PREPEND,
                                    .where = TERN_PREPEND_UNLESS_THERE,
                                    .content = literal(" ")});
    if (status == TERN_OK && (use_regex == NULL || tern_json_is_true(use_regex)))
        status = add_split(r, tern_pattern_gpt2, TERN_SPLIT_ISOLATED);
    return status == TERN_OK ? add(r, (tern_step){.kind = TERN_STEP_BYTES}) : status;
}

/* Reads the behavior that x names; *out stays if it names none. */
static tern_status read_behavior(const tern_step_reader *r, const tern_json_value *x,
                                 tern_split_behavior *out) {
    static const char *const names[] = {
        [TERN_SPLIT_ISOLATED] = "Isolated",
        [TERN_SPLIT_REMOVED] = "Removed",
        [TERN_SPLIT_CONTIGUOUS] = "Contiguous",
        [TERN_SPLIT_WITH_PREVIOUS] = "MergedWithPrevious",
        [TERN_SPLIT_WITH_NEXT] = "MergedWithNext",
    };
    const tern_json_value *behavior = tern_json_get(x, "behavior");
    if (behavior == NULL)
        return TERN_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (tern_json_is_string(behavior, names[i])) {
            *out = (tern_split_behavior)i;
            return TERN_OK;
        }
    }
    return tern_fail(r->err, TERN_ERR_TOKENIZER_PRE, "%s: %s: behavior '%.*s' is not known",
                     r->v->file, r->part, TERN_SHOWN(behavior->text));
}

static tern_status read_split(const tern_step_reader *r, const tern_json_value *x) {
    tern_step step = {.kind = TERN_STEP_SPLIT,
                      .invert = tern_json_is_true(tern_json_get(x, "invert"))};
    tern_status status = read_pattern(r, x, &step);
    if (status == TERN_OK)
        status = read_behavior(r, x, &step.behavior);
    return status == TERN_OK ? add(r, step) : status;
}

static tern_status read_digits(const tern_step_reader *r, const tern_json_value *x) {
    const bool individual = tern_json_is_true(tern_json_get(x, "individual_digits"));
    return add_split(r, "\\p{N}", individual ? TERN_SPLIT_ISOLATED : TERN_SPLIT_CONTIGUOUS);
}

/* Punctuation of ASCII includes its symbols. */
static tern_status read_punctuation(const tern_step_reader *r, const tern_json_value *x) {
    tern_split_behavior behavior = TERN_SPLIT_ISOLATED;
    const tern_status status = read_behavior(r, x, &behavior);
    return status == TERN_OK
               ? add_split(r, "[\\p{P}\\x21-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7e]", behavior)
               : status;
}

/* Splits into words. Text between words is removed. */
static tern_status read_whitespace(const tern_step_reader *r, const tern_json_value *x) {
    (void)x;
#define WORDS TERN_REGEX_RUST_WORD
    return add(r, (tern_step){.kind = TERN_STEP_SPLIT,
                              .pattern = literal("[" WORDS "]+|[^\\s" WORDS "]+"),
                              .behavior = TERN_SPLIT_REMOVED,
                              .invert = true});
#undef WORDS
}

static tern_status read_whitespace_split(const tern_step_reader *r, const tern_json_value *x) {
    (void)x;
    return add_split(r, "\\s", TERN_SPLIT_REMOVED);
}

static tern_status read_delimiter_split(const tern_step_reader *r, const tern_json_value *x) {
    tern_step step = {.kind = TERN_STEP_SPLIT, .behavior = TERN_SPLIT_REMOVED, .literal = true};
    const tern_status status = read_content(r, x, "delimiter", &step.pattern);
    if (status == TERN_OK && step.pattern.size == 0)
        return refuse(r, "an empty delimiter");
    return status == TERN_OK ? add(r, step) : status;
}

/* Spaces become the replacement, one is put in front, and each begins a piece. */
static tern_status read_metaspace(const tern_step_reader *r, const tern_json_value *x) {
    const tern_json_value *scheme = tern_json_get(x, "prepend_scheme");
    const tern_json_value *old = tern_json_get(x, "add_prefix_space");
    const tern_json_value *split = tern_json_get(x, "split");
    tern_span mark;
    tern_status status = read_content(r, x, "replacement", &mark);
    if (status == TERN_OK && mark.size == 0)
        return refuse(r, "an empty replacement");
    const bool never = scheme != NULL ? tern_json_is_string(scheme, "never")
                                      : old != NULL && !tern_json_is_true(old);
    const bool first = tern_json_is_string(scheme, "first");
    if (scheme != NULL && !never && !first && !tern_json_is_string(scheme, "always"))
        return refuse(r, "a prepend_scheme that is not known");
    if (status == TERN_OK)
        status = add(r, (tern_step){.kind = TERN_STEP_REPLACE,
                                    .pattern = literal(" "),
                                    .literal = true,
                                    .content = mark});
    if (status == TERN_OK && !never)
        status = add(
            r, (tern_step){.kind = TERN_STEP_PREPEND,
                           .where = first ? TERN_PREPEND_FIRST_OF_TEXT : TERN_PREPEND_UNLESS_THERE,
                           .content = mark});
    if (status == TERN_OK && (split == NULL || tern_json_is_true(split)))
        status = add(r, (tern_step){.kind = TERN_STEP_SPLIT,
                                    .pattern = mark,
                                    .literal = true,
                                    .behavior = TERN_SPLIT_WITH_NEXT});
    return status;
}

static tern_status read_bert_words(const tern_step_reader *r, const tern_json_value *x) {
    (void)x;
    return add(r, (tern_step){.kind = TERN_STEP_WORDS});
}

static const tern_step_name pre_tokenizers[] = {
    {"BertPreTokenizer", read_bert_words},
    {"ByteLevel", read_byte_level},
    {"Split", read_split},
    {"Digits", read_digits},
    {"Punctuation", read_punctuation},
    {"Whitespace", read_whitespace},
    {"WhitespaceSplit", read_whitespace_split},
    {"CharDelimiterSplit", read_delimiter_split},
    {"Metaspace", read_metaspace},
    {NULL, NULL},
};

/* ---- both -------------------------------------------------------------------------------------
 */

tern_status tern_json_read_steps(tern_vocabulary *v, tern_error *err) {
    const tern_json_value *normalizer = tern_json_get(v->json.values, "normalizer");
    const tern_json_value *pre = tern_json_get(v->json.values, "pre_tokenizer");
    const tern_step_reader first = {v, err, "normalizer"}, second = {v, err, "pre_tokenizer"};
    bool normalized = false;
    for (size_t i = 0; i < v->n_added; i++)
        normalized |= v->added[i].normalized;
    tern_status status = TERN_OK;
    if (normalizer != NULL)
        status = read_step(&first, normalizer, normalizers, "normalizers");
    if (status == TERN_OK && normalized)
        status = add(&first, (tern_step){.kind = TERN_STEP_ADDED});
    if (status == TERN_OK && pre != NULL)
        status = read_step(&second, pre, pre_tokenizers, "pretokenizers");
    return status;
}
