/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Free text with tags in it. Free text is read by the automaton of Knuth, Morris and Pratt for the
 * trigger: one rule for each number of its bytes that were just read. So the trigger cannot be
 * missed, and after it one of the tags must follow.
 */

#include <stdlib.h>
#include <string.h>

#include "runtime/text/grammar/grammar.h"

enum { MOST_TRIGGER = 64, MOST_TAGS = 1024 };

/* Tells which tags may still come. */
typedef enum stage { BEFORE, BETWEEN, AFTER, N_STAGES } stage;

typedef struct tagged {
    tern_exprs *x;
    const tern_grammar_tags *tags;
    const char *trigger;
    size_t size;                           /* bytes of the trigger */
    uint32_t text[N_STAGES][MOST_TRIGGER]; /* rules, by how many bytes of the trigger were just
                                              read */
    tern_schema_notes notes;
    bool narrow;                           /* as tern_schema_read has it */
    uint32_t calls;                        /* a rule: what follows the trigger in a tag */
} tagged;

/* Returns how many bytes of the trigger stand at the end when `byte` follows `n` of them. */
static size_t after_byte(const tagged *t, size_t n, uint8_t byte) {
    char seen[MOST_TRIGGER + 1];
    memcpy(seen, t->trigger, n);
    seen[n] = (char)byte;
    size_t kept = n + 1;
    while (memcmp(t->trigger, seen + n + 1 - kept, kept) != 0)
        kept--;
    return kept;
}

static const char *separator_of(const tern_grammar_tags *tags) {
    return tags->separator != NULL ? tags->separator : "";
}

/* The most tags that may follow the first one. */
static int32_t most_more(const tern_grammar_tags *tags) {
    return tags->single ? 0 : TERN_EXPR_UNLIMITED;
}

static uint32_t after_trigger(tagged *t, stage s) {
    if (s == AFTER)
        return TERN_EXPR_NEVER;
    const stage next = t->tags->single || t->tags->open != NULL ? AFTER : BETWEEN;
    return tern_expr_pair(t->x, tern_expr_rule_use(t->x, t->calls),
                          tern_expr_rule_use(t->x, t->text[next][0]));
}

static void define_text(tagged *t, stage s, size_t n) {
    tern_exprs *x = t->x;
    tern_expr_list choice = {.x = x};
    tern_range bytes[256];
    for (size_t to = 0; to <= n + 1; to++) {
        size_t n_bytes = 0;
        for (uint32_t byte = 0; byte < 256; byte++)
            if (after_byte(t, n, (uint8_t)byte) == to)
                bytes[n_bytes++] = (tern_range){byte, byte};
        if (n_bytes == 0)
            continue;
        const uint32_t then =
            to == t->size ? after_trigger(t, s) : tern_expr_rule_use(x, t->text[s][to]);
        tern_expr_add(&choice, tern_expr_pair(x, tern_expr_bytes(x, bytes, n_bytes), then));
    }
    if (s != BEFORE || !t->tags->required)
        tern_expr_add(&choice, TERN_EXPR_EMPTY);
    const uint32_t all = tern_expr_end_choice(&choice);
    tern_expr_rule_define(x, t->text[s][n], all);
}

static uint32_t schema_of(tagged *t, const char *schema, size_t size, const char *name) {
    return tern_schema_read(t->x, schema, size, name, &t->tags->schema, t->narrow, &t->notes);
}

/* The values of a tag. */
static uint32_t values_of(tagged *t, const tern_grammar_tag *tag) {
    if (!tag->has_arguments)
        return schema_of(t, tag->schema, tag->schema_size, tag->name);
    uint32_t *values = calloc(tag->n_arguments + 1, sizeof *values);
    if (values == NULL) {
        tern_exprs_fail(t->x, TERN_ERR_NOMEM, "%s: no memory", tag->name);
        return TERN_EXPR_NEVER;
    }
    for (size_t i = 0; i < tag->n_arguments && t->x->status == TERN_OK; i++) {
        const tern_grammar_argument *a = &tag->arguments[i];
        if (a->schema != NULL)
            values[i] = schema_of(t, a->schema, a->schema_size, tag->name);
    }
    const uint32_t all = tern_tag_arguments(t->x, tag, values);
    free(values);
    return all;
}

/* A tag from byte `from` of its begin on: begin, value, end. */
static uint32_t tag_after(tagged *t, size_t i, size_t from) {
    const tern_grammar_tag *tag = &t->tags->tags[i];
    const uint32_t parts[] = {tern_tag_words(t->x, tag->begin + from), values_of(t, tag),
                              tern_tag_words(t->x, tag->end)};
    return tern_expr_sequence(t->x, parts, 3);
}

static uint32_t any_tag(tagged *t, size_t from) {
    tern_expr_list choice = {.x = t->x};
    for (size_t i = 0; i < t->tags->n_tags && t->x->status == TERN_OK; i++)
        tern_expr_add(&choice, tag_after(t, i, from));
    return tern_expr_end_choice(&choice);
}

/* One or more, with the separator between them. */
static uint32_t list_of(const tagged *t, uint32_t one) {
    tern_exprs *x = t->x;
    const uint32_t more = tern_expr_pair(x, tern_expr_word(x, separator_of(t->tags)), one);
    return tern_expr_pair(x, one, tern_expr_repeat(x, more, 0, most_more(t->tags)));
}

/* A tag, or a list of tags from its opening on: what follows the trigger. */
static uint32_t after_begin(tagged *t) {
    const tern_grammar_tags *tags = t->tags;
    tern_exprs *x = t->x;
    if (tags->open == NULL)
        return any_tag(t, t->size);
    const uint32_t item = tern_expr_rule_new(x, "tags of a list", strlen("tags of a list"));
    tern_expr_rule_define(x, item, any_tag(t, t->size + strlen(tags->open)));
    const uint32_t parts[] = {tern_expr_word(x, tags->open),
                              list_of(t, tern_expr_rule_use(x, item)),
                              tern_expr_word(x, tags->close)};
    return tern_expr_sequence(x, parts, 3);
}

static uint32_t with_text(tagged *t) {
    tern_exprs *x = t->x;
    for (stage s = BEFORE; s < N_STAGES; s++)
        for (size_t n = 0; n < t->size; n++)
            t->text[s][n] = tern_expr_rule_new(x, "free text", strlen("free text"));
    for (stage s = BEFORE; s < N_STAGES && x->status == TERN_OK; s++)
        for (size_t n = 0; n < t->size && x->status == TERN_OK; n++)
            define_text(t, s, n);
    tern_expr_rule_define(x, t->calls, after_begin(t));
    return x->status == TERN_OK ? tern_expr_rule_use(x, t->text[BEFORE][0]) : TERN_EXPR_NEVER;
}

static uint32_t without_text(tagged *t) {
    const tern_grammar_tags *tags = t->tags;
    tern_exprs *x = t->x;
    tern_expr_rule_define(x, t->calls, tags->open == NULL ? any_tag(t, 0) : after_begin(t));
    const uint32_t calls = tern_expr_rule_use(x, t->calls);
    const uint32_t all = tags->open == NULL
                             ? list_of(t, calls)
                             : tern_expr_pair(x, tern_expr_word(x, t->trigger), calls);
    return tags->required ? all : tern_expr_optional(x, all);
}

/* Tags, or a text that does not begin with the trigger. */
static uint32_t at_start(tagged *t) {
    tern_exprs *x = t->x;
    tern_expr_list choice = {.x = x};
    const tern_range any = {0, 255};
    const uint32_t rest = tern_expr_repeat(x, tern_expr_bytes(x, &any, 1), 0, TERN_EXPR_UNLIMITED);
    for (size_t n = 0; n < t->size; n++) {
        const uint8_t byte = (uint8_t)t->trigger[n];
        const tern_range others[] = {{0, byte - 1U}, {byte + 1U, 255}}; /* no byte is 0 or 255 */
        const uint32_t parts[] = {tern_expr_text(x, t->trigger, n), tern_expr_bytes(x, others, 2),
                                  rest};
        tern_expr_add(&choice, tern_expr_sequence(x, parts, 3));
        tern_expr_add(&choice, tern_expr_text(x, t->trigger, n));
    }
    tern_expr_add(&choice, without_text(t));
    return tern_expr_end_choice(&choice);
}

/* Tags alone, or a value of the form alone. */
static uint32_t tags_or_form(tagged *t) {
    const tern_grammar_tag *form = t->tags->form;
    tern_exprs *x = t->x;
    tern_grammar_tags required = *t->tags;
    required.required = true;
    const tern_grammar_tags *asked = t->tags;
    t->tags = &required;
    const uint32_t calls = without_text(t);
    t->tags = asked;
    if (asked->required || x->status != TERN_OK)
        return calls;
    const uint32_t value = tern_schema_read(x, form->schema, form->schema_size, form->name,
                                            &asked->schema, t->narrow, &t->notes);
    return tern_expr_either(x, calls, value);
}

static tern_status check(const tern_grammar_tags *tags, tern_error *err) {
    if (tags == NULL || tags->tags == NULL || tags->n_tags == 0 || tags->trigger == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_grammar_from_tags: no tags, or no trigger");
    if ((tags->open == NULL) != (tags->close == NULL))
        return tern_fail(err, TERN_ERR_NULL, "tern_grammar_from_tags: a list has both ends");
    if (tags->form != NULL && (tags->form->schema == NULL || tags->form->name == NULL))
        return tern_fail(err, TERN_ERR_NULL, "tern_grammar_from_tags: a form without a schema");
    const size_t size = strlen(tags->trigger);
    if (size == 0 || size > MOST_TRIGGER || tags->n_tags > MOST_TAGS)
        return tern_fail(err, TERN_ERR_ARG,
                         "%zu tags after a trigger of %zu bytes: at most %d "
                         "after 1 to %d",
                         tags->n_tags, size, MOST_TAGS, MOST_TRIGGER);
    for (size_t i = 0; i < tags->n_tags; i++) {
        const tern_grammar_tag *tag = &tags->tags[i];
        if (tag->begin == NULL || tag->end == NULL || tag->name == NULL ||
            (tag->has_arguments ? tag->arguments == NULL && tag->n_arguments > 0
                                : tag->schema == NULL))
            return tern_fail(err, TERN_ERR_NULL, "tag %zu is not complete", i);
        if (strncmp(tag->begin, tags->trigger, size) != 0)
            return tern_fail(err, TERN_ERR_ARG, "tag %zu does not begin with the trigger %s", i,
                             tags->trigger);
        if (tags->open != NULL && strncmp(tag->begin + size, tags->open, strlen(tags->open)) != 0)
            return tern_fail(err, TERN_ERR_ARG, "tag %zu does not begin with %s%s", i,
                             tags->trigger, tags->open);
    }
    return TERN_OK;
}

static tern_status compile_tags(const tern_grammar_tokens *tokens, const tern_grammar_tags *tags,
                                bool *narrow, tern_grammar **out, tern_error *err) {
    tern_exprs x;
    tern_exprs_start(&x, "tags", err);
    const uint32_t root = tern_expr_rule_new(&x, "the whole text", strlen("the whole text"));
    tagged t = {.x = &x,
                .tags = tags,
                .trigger = tags->trigger,
                .size = strlen(tags->trigger),
                .narrow = *narrow};
    t.calls = tern_expr_rule_new(&x, "tags", strlen("tags"));
    const uint32_t all = tags->form != NULL ? tags_or_form(&t)
                         : !tags->free_text ? without_text(&t)
                         : tags->at_start   ? at_start(&t)
                                            : with_text(&t);
    tern_expr_rule_define(&x, root, all);
    *narrow = t.notes.narrowed;
    return tern_grammar_make(tokens, &x, &t.notes, out, err);
}

tern_status tern_grammar_from_tags(const tern_grammar_tokens *tokens, const tern_grammar_tags *tags,
                                   tern_grammar **out, tern_error *err) {
    bool narrow = true;
    tern_status status = check(tags, err);
    if (status != TERN_OK)
        return status;
    if (tokens == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_grammar_from_tags: NULL argument");
    status = compile_tags(tokens, tags, &narrow, out, err);
    if (status != TERN_ERR_GRAMMAR || !narrow)
        return status;
    narrow = false;
    return compile_tags(tokens, tags, &narrow, out, err);
}
