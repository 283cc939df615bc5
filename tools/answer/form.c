/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/answer/form.h"

#include <stdlib.h>

#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"

enum { MOST_BYTES = 1 << 20 };

bool form_wanted(const options *o) {
    return options_given(o, OPT_JSON_SCHEMA) || options_given(o, OPT_GRAMMAR);
}

static int compile(const char *path, bool schema, form *f) {
    tern_error err = {0};
    const int read = file_read(path, MOST_BYTES, &f->text, &f->size);
    if (read != EXIT_DONE)
        return read;
    const char *name = file_shown(path);
    f->kind = schema ? "schema" : "grammar";
    const tern_status status =
        schema ? tern_grammar_from_schema(f->tokens, f->text, f->size, name, &f->params,
                                          &f->grammar, &err)
               : tern_grammar_from_gbnf(f->tokens, f->text, f->size, name, &f->grammar, &err);
    for (size_t i = 0; tern_grammar_note(f->grammar, i) != NULL; i++)
        complain("%s", tern_grammar_note(f->grammar, i));
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}

int form_open(const options *o, const loaded *l, size_t n, form *f) {
    *f = (form){.n = n};
    const bool schema = options_given(o, OPT_JSON_SCHEMA);
    const char *name = schema ? "--json-schema" : "--grammar";
    tern_error err = {0};
    if (!form_wanted(o))
        return EXIT_DONE;
    if (options_switch(o, OPT_IGNORE_EOS) || (schema && options_given(o, OPT_GRAMMAR))) {
        complain("%s: not together with %s", name,
                 schema ? "--grammar or --ignore-eos" : "--ignore-eos");
        return EXIT_USAGE;
    }
    if (l->tokenizer == NULL)
        return complain_error(&l->tokenizer_error);
    f->params.closed = schema && !options_switch(o, OPT_OPEN_OBJECTS);
    f->states = calloc(n + 1, sizeof *f->states);
    if (f->states == NULL) {
        complain("no memory for %zu answers", n);
        return EXIT_FAILED;
    }
    if (tern_grammar_tokens_new(l->tokenizer, l->info.n_vocab, &f->tokens, &err) != TERN_OK)
        return complain_error(&err);
    return compile(options_text(o, schema ? OPT_JSON_SCHEMA : OPT_GRAMMAR), schema, f);
}

void form_close(form *f) {
    for (size_t i = 0; f->states != NULL && i < f->n; i++)
        tern_grammar_state_free(&f->states[i]);
    free(f->states);
    free(f->text);
    tern_grammar_free(&f->grammar);
    tern_grammar_tokens_free(&f->tokens);
    *f = (form){0};
}

bool form_ask(form *f, size_t number, tern_request *request) {
    tern_error err = {0};
    if (f->grammar == NULL)
        return true;
    if (tern_grammar_state_new(f->grammar, 1, &f->states[number], &err) != TERN_OK) {
        (void)complain_error(&err);
        return false;
    }
    request->mask = tern_grammar_mask;
    request->user = f->states[number];
    return true;
}

bool form_mask(const form *f, size_t number, const tern_progress *progress, uint64_t *allowed,
               size_t words) {
    return tern_grammar_mask(f->states[number], progress, allowed, words);
}

const tern_error *form_error(const form *f, const one_answer *a) {
    const tern_error *own =
        f->grammar != NULL ? tern_grammar_state_error(f->states[a->number]) : NULL;
    return a->error != NULL && own != NULL ? own : a->error;
}

bool form_is_whole(form *f, const one_answer *a) {
    bool whole = false;
    if (f->grammar == NULL)
        return true;
    const tern_progress progress = {.tokens = a->tokens, .n = a->n_tokens};
    return a->error == NULL &&
           tern_grammar_follow(f->states[a->number], &progress, &whole, NULL) == TERN_OK && whole;
}

bool form_is_satisfied(const form *f, const one_answer *a, tern_error *why) {
    bool valid = true;
    if (f->grammar == NULL || tern_grammar_note(f->grammar, 0) == NULL || a->error != NULL)
        return true;
    return tern_schema_validate(f->text, f->size, a->text, a->text_size, &valid, why) != TERN_OK ||
           valid;
}

void form_end(form *f, size_t number) {
    if (f->grammar != NULL)
        tern_grammar_state_free(&f->states[number]);
}
