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

static tern_grammar_tag read_tag(const json_t *t) {
    const json_t *schema = json_object_get(t, "schema");
    return (tern_grammar_tag){.begin = json_string_value(json_object_get(t, "begin")),
                              .end = json_string_value(json_object_get(t, "end")),
                              .schema = json_string_value(schema),
                              .schema_size = json_string_length(schema),
                              .name = "form.calls"};
}

static tern_status compile_calls(const json_t *calls, recorded_form *form, tern_error *err) {
    const json_t *list = json_object_get(calls, "tags");
    const char *separator = rule_text(calls, "separator");
    tern_grammar_tag *tags = calloc(json_array_size(list), sizeof *tags);
    if (tags == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the replay");
    for (size_t i = 0; i < json_array_size(list); i++)
        tags[i] = read_tag(json_array_get(list, i));
    const tern_grammar_tags all = {.tags = tags,
                                   .n_tags = json_array_size(list),
                                   .trigger = rule_text(calls, "trigger"),
                                   .separator = separator[0] != '\0' ? separator : NULL,
                                   .open = json_string_value(json_object_get(calls, "open")),
                                   .close = json_string_value(json_object_get(calls, "close")),
                                   .free_text = rule_flag(calls, "free_text"),
                                   .required = rule_flag(calls, "required"),
                                   .single = rule_flag(calls, "single")};
    const tern_status status = tern_grammar_from_tags(form->tokens, &all, &form->grammar, err);
    free(tags);
    return status;
}

static tern_status compile_form(const json_t *recorded, recorded_form *form, tern_error *err) {
    const json_t *given = json_object_get(recorded, "text");
    const char *kind = rule_text(recorded, "kind"), *words = json_string_value(given);
    if (strcmp(kind, "calls") == 0)
        return compile_calls(json_object_get(recorded, "calls"), form, err);
    if (strcmp(kind, "schema") == 0)
        return tern_grammar_from_schema(form->tokens, words, json_string_length(given), "form.text",
                                        NULL, &form->grammar, err);
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
