/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/replay/recorded_form.h"

#include <stdlib.h>
#include <string.h>

#include "receipts/rules.h"

void recorded_form_close(recorded_form *form) {
    tern_grammar_state_free(&form->state);
    tern_grammar_free(&form->grammar);
    tern_grammar_tokens_free(&form->tokens);
}

static const char *text_of(const json_t *object, const char *name) {
    return json_string_value(json_object_get(object, name));
}

/* Reads the texts of an enumeration; NULL: there are none, or no memory. */
static const char **read_words(const json_t *list, size_t *n) {
    const char **words = calloc(json_array_size(list) + 1, sizeof *words);
    *n = words != NULL ? json_array_size(list) : 0;
    for (size_t i = 0; i < *n; i++)
        words[i] = json_string_value(json_array_get(list, i));
    return words;
}

static tern_grammar_argument read_argument(const json_t *a) {
    tern_grammar_argument read = {.begin = text_of(a, "begin"),
                                  .end = text_of(a, "end"),
                                  .schema = text_of(a, "schema"),
                                  .schema_size = json_string_length(json_object_get(a, "schema")),
                                  .after_key = text_of(a, "after_key"),
                                  .required = rule_flag(a, "required"),
                                  .instead = rule_flag(a, "instead")};
    read.words = read_words(json_object_get(a, "words"), &read.n_words);
    return read;
}

/* Reads a tag; false: no memory. */
static bool read_tag(const json_t *t, tern_grammar_tag *out) {
    const json_t *list = json_object_get(t, "arguments");
    tern_grammar_argument *arguments = calloc(json_array_size(list) + 1, sizeof *arguments);
    bool sound = arguments != NULL;
    for (size_t i = 0; i < json_array_size(list) && sound; i++) {
        arguments[i] = read_argument(json_array_get(list, i));
        sound = arguments[i].words != NULL;
    }
    *out = (tern_grammar_tag){.begin = text_of(t, "begin"),
                              .end = text_of(t, "end"),
                              .schema = text_of(t, "schema"),
                              .schema_size = json_string_length(json_object_get(t, "schema")),
                              .name = "form.calls",
                              .arguments = arguments,
                              .n_arguments = arguments != NULL ? json_array_size(list) : 0,
                              .comma = text_of(t, "comma"),
                              .has_arguments = list != NULL};
    return sound;
}

static void free_tags(tern_grammar_tag *tags, size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < tags[i].n_arguments; k++)
            free((void *)(uintptr_t)tags[i].arguments[k].words);
        free((void *)(uintptr_t)tags[i].arguments);
    }
    free(tags);
}

static tern_status compile_calls(const json_t *calls, const tern_schema_params *params,
                                 recorded_form *form, tern_error *err) {
    const json_t *schema = json_object_get(calls, "schema");
    const tern_grammar_tag text = {.schema = json_string_value(schema),
                                   .schema_size = json_string_length(schema),
                                   .name = "form.calls"};
    const json_t *list = json_object_get(calls, "tags");
    const char *separator = rule_text(calls, "separator");
    const size_t n = json_array_size(list);
    tern_grammar_tag *tags = calloc(n + 1, sizeof *tags);
    bool sound = tags != NULL;
    for (size_t i = 0; i < n && sound; i++)
        sound = read_tag(json_array_get(list, i), &tags[i]);
    if (!sound) {
        free_tags(tags, tags != NULL ? n : 0);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the replay");
    }
    const tern_grammar_tags all = {.tags = tags,
                                   .n_tags = n,
                                   .trigger = rule_text(calls, "trigger"),
                                   .separator = separator[0] != '\0' ? separator : NULL,
                                   .open = json_string_value(json_object_get(calls, "open")),
                                   .close = json_string_value(json_object_get(calls, "close")),
                                   .free_text = rule_flag(calls, "free_text"),
                                   .required = rule_flag(calls, "required"),
                                   .single = rule_flag(calls, "single"),
                                   .at_start = rule_flag(calls, "at_start"),
                                   .schema = *params,
                                   .form = schema != NULL ? &text : NULL};
    const tern_status status = tern_grammar_from_tags(form->tokens, &all, &form->grammar, err);
    free_tags(tags, n);
    return status;
}

static tern_status compile_form(const json_t *recorded, recorded_form *form, tern_error *err) {
    const json_t *given = json_object_get(recorded, "text");
    const char *kind = rule_text(recorded, "kind"), *words = json_string_value(given);
    const tern_schema_params params = {.closed = rule_flag(recorded, "closed")};
    if (strcmp(kind, "calls") == 0)
        return compile_calls(json_object_get(recorded, "calls"), &params, form, err);
    if (strcmp(kind, "schema") == 0)
        return tern_grammar_from_schema(form->tokens, words, json_string_length(given), "form.text",
                                        &params, &form->grammar, err);
    if (strcmp(kind, "pattern") == 0)
        return tern_grammar_from_pattern(form->tokens, words, json_string_length(given),
                                         "form.text", &form->grammar, err);
    return tern_grammar_from_gbnf(form->tokens, words, json_string_length(given), "form.text",
                                  &form->grammar, err);
}

tern_status recorded_form_open(const tern_model *model, const json_t *receipt, recorded_form *form,
                               tern_error *err) {
    const json_t *recorded = receipt_at(receipt, "form");
    const tern_tokenizer *tokenizer;
    tern_model_info info;
    if (recorded == NULL)
        return TERN_OK;
    tern_model_describe(model, &info);
    tern_status status = tern_model_tokenizer(model, &tokenizer, err);
    if (status == TERN_OK)
        status = tern_grammar_tokens_new(tokenizer, info.n_vocab, &form->tokens, err);
    if (status == TERN_OK)
        status = compile_form(recorded, form, err);
    return status == TERN_OK ? tern_grammar_state_new(form->grammar, 1, &form->state, err) : status;
}
