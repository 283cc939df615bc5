/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_GRAMMAR_H
#define TERN_GRAMMAR_H

/*
 * Output in a given form: texts of a grammar (GBNF), of a pattern or of a JSON Schema, token by
 * token.
 *
 *     tern_grammar_tokens_new(tokenizer, n_vocab, &tokens, &err);        once a model
 *     tern_grammar_from_schema(tokens, text, size, "schema", NULL, &grammar, &err);
 *     tern_grammar_state_new(grammar, 1, &state, &err);                  once a request
 *     request.mask = tern_grammar_mask, request.user = state
 *     ... at the request's end: tern_grammar_state_error, tern_grammar_follow; free the state
 *
 * A grammar is an automaton over bytes with a stack. Every token that a mask allows can be
 * continued to a whole text of the grammar, provided that each byte which a text may need is in
 * some token. Tokens that end a text are allowed exactly where the text is whole; control tokens
 * never. Masks depend on the tokens of an answer alone: not on guesses, other branches, load, or
 * what was cached.
 *
 * docs/structured-output.md says which schemas and grammars there are. A keyword that cannot be
 * enforced is told by tern_grammar_note. What makes no sense is refused when it is compiled:
 * TERN_ERR_GRAMMAR, and the message names the keyword and its place (a JSON pointer), or the line.
 *
 * Threads: tokens and grammars may be used by any number of threads at once; a state by one thread
 * at a time. Errors as in tern.h.
 */

#include "tern/engine.h"

TERN_API_BEGIN

/* The bytes of a vocabulary, sorted for masks; immutable. */
typedef struct tern_grammar_tokens tern_grammar_tokens;

/* A compiled grammar and what it remembers of masks. */
typedef struct tern_grammar tern_grammar;

/* The states of one request's branches in a grammar. */
typedef struct tern_grammar_state tern_grammar_state;

/*
 * n_vocab: rows of the model's head, at least the tokenizer's size; ids that the tokenizer does not
 * have are never allowed. The tokenizer must outlive it. Some 20 bytes for each token and each byte
 * of it. TERN_ERR_ARG: no token of the tokenizer ends a text. TERN_ERR_NULL, TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_grammar_tokens_new(const tern_tokenizer *tokenizer, size_t n_vocab,
                                                    tern_grammar_tokens **out, tern_error *err);
void tern_grammar_tokens_free(tern_grammar_tokens **tokens); /* after all its grammars */

/* ---- compiling ------------------------------------------------------------------------------
 *
 * `name` stands at the beginning of messages. Texts are not kept. `tokens` must outlive the
 * grammar. TERN_ERR_GRAMMAR (not supported, contradictory or too large), TERN_ERR_JSON (a schema
 * that is not JSON), TERN_ERR_NULL, TERN_ERR_NOMEM. Nobody's text takes more than bounded memory
 * and work.
 */

/* text[size] in llama.cpp's notation; the rule `root` is the whole text. */
TERN_MUST_CHECK tern_status tern_grammar_from_gbnf(const tern_grammar_tokens *tokens,
                                                   const char *text, size_t size, const char *name,
                                                   tern_grammar **out, tern_error *err);

/* The texts that match the regular expression text[size] as a whole (docs/structured-output.md has
 * what patterns may contain). */
TERN_MUST_CHECK tern_status tern_grammar_from_pattern(const tern_grammar_tokens *tokens,
                                                      const char *text, size_t size,
                                                      const char *name, tern_grammar **out,
                                                      tern_error *err);

typedef struct tern_schema_params {
    bool compact; /* no white space between the parts of a value. Otherwise at each place where
                     JSON allows it there may be one space, or a new line and up to 32 spaces;
                     before and after the whole value there is none */
    bool closed;  /* an object that names its properties has no others, unless additionalProperties
                     says so, and numbers have at most 16 digits before and after the point */
} tern_schema_params;

/*
 * The JSON texts that the schema text[size] allows; params may be NULL: zeros. Texts are held to
 * what a mask can enforce; for everything else tern_grammar_note has a note, and
 * tern_schema_validate checks a whole text. Keywords that JSON Schema does not know say nothing.
 */
TERN_MUST_CHECK tern_status tern_grammar_from_schema(const tern_grammar_tokens *tokens,
                                                     const char *text, size_t size,
                                                     const char *name,
                                                     const tern_schema_params *params,
                                                     tern_grammar **out, tern_error *err);

/* One of several values in a tag: begin, the value, end. */
typedef struct tern_grammar_argument {
    const char *begin, *end;
    const char *schema; /* [schema_size] of a JSON value; NULL: a text, as it is, that `end` ends */
    size_t schema_size;
    const char *const *words; /* [n_words] with the schema NULL: the texts that there may be; none:
                                 any */
    size_t n_words;
    const char *after_key; /* not NULL: after `begin` stand a name, 1 to 64 letters, digits, '_',
                              '-' and '.', and this, and it may come any number of times */
    bool required;
    bool instead; /* it is another way to write the one before it */
} tern_grammar_argument;

/*
 * A part of a text that has a form: begin, a JSON value, end. In begin and end of a tag, the byte 1
 * stands for 1 to 16 letters, digits, '_' or '-'.
 */
typedef struct tern_grammar_tag {
    const char *begin, *end;
    const char *schema; /* [schema_size] of the value */
    size_t schema_size;
    const char *name; /* of the schema, in messages */

    /* In place of one value: values in this order, of which those that are not required may be left
     * out. The schema is not read. */
    const tern_grammar_argument *arguments; /* [n_arguments] */
    size_t n_arguments;
    const char *comma; /* between two of them; NULL: nothing */
    bool has_arguments;
} tern_grammar_tag;

typedef struct tern_grammar_tags {
    const tern_grammar_tag *tags; /* [n_tags] >= 1 */
    size_t n_tags;
    const char *trigger;   /* what every `begin` begins with; not empty. Free text ends where it
                              occurs: from there on one of the tags follows */
    const char *separator; /* between two tags without free text; NULL: nothing */
    bool free_text;        /* any bytes but the trigger may stand before, between and after tags */
    bool required;         /* at least one tag */
    bool single;           /* at most one */
    const char *open;      /* NULL: each tag stands by itself. Else they stand in a list: trigger,
                              open, tags with the separator between them, close; then every `begin`
                              begins with trigger and open, which later tags leave out */
    const char *close;     /* not NULL where open is not */
    bool at_start;         /* with free_text: tags are all of the text, or there are none. Only a
                              text that begins with the trigger has tags */
    tern_schema_params schema;
    const tern_grammar_tag *form; /* NULL, or in place of tags there may be a JSON value of its
                                     schema and nothing else, if none is required; its begin and
                                     end are not used. Free text there is none, then */
} tern_grammar_tags;

/* Texts with such parts: for calls of tools. */
TERN_MUST_CHECK tern_status tern_grammar_from_tags(const tern_grammar_tokens *tokens,
                                                   const tern_grammar_tags *tags,
                                                   tern_grammar **out, tern_error *err);

/* A sentence that names a place of the schema (a JSON pointer) and a keyword that texts of the
 * grammar are not held to; NULL: there are i notes at most. Lives as long as the grammar. */
const char *tern_grammar_note(const tern_grammar *grammar, size_t i);

/* Tells if text[size], a JSON value, satisfies a schema (*valid). If not, `why` says where.
 * TERN_ERR_JSON, TERN_ERR_NULL, TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_schema_validate(const char *schema, size_t schema_size,
                                                 const char *text, size_t size, bool *valid,
                                                 tern_error *why);

/* One more owner of a grammar; each of them frees it. Returns it. */
tern_grammar *tern_grammar_share(tern_grammar *grammar);
void tern_grammar_free(tern_grammar **grammar); /* sets it to NULL; NULL is fine */

/* Tells if text[size] begins a text of the grammar (*begins), and if it is one (*whole).
 * TERN_ERR_GRAMMAR when this takes more work or memory than it may. */
TERN_MUST_CHECK tern_status tern_grammar_check(tern_grammar *grammar, const char *text, size_t size,
                                               bool *begins, bool *whole, tern_error *err);

/* ---- masks --------------------------------------------------------------------------------- */

/* For the branches 0 .. branches - 1 of a request (0: one). The state is an owner of the grammar.
 * TERN_ERR_NULL, TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_grammar_state_new(tern_grammar *grammar, uint32_t branches,
                                                   tern_grammar_state **out, tern_error *err);
void tern_grammar_state_free(tern_grammar_state **state);

/*
 * A tern_mask_hook; user is a tern_grammar_state. Clears the bits of all tokens that may not follow
 * the answer tokens[n_prompt .. n). It looks at tokens that it has not seen, and begins again where
 * they are not those that it knows. False where nothing may follow, or after an error: then
 * tern_grammar_state_error says why.
 */
bool tern_grammar_mask(void *user, const tern_progress *progress, uint64_t *allowed, size_t words);

/* Why the latest mask was refused; NULL: it was not. TERN_ERR_GRAMMAR (more work, memory or depth
 * than a mask may take; tokens that are not of the grammar; no token for what must follow) or
 * TERN_ERR_NOMEM. Lives as long as the state. */
const tern_error *tern_grammar_state_error(const tern_grammar_state *state);

/* Tells if the answer so far is a whole text of the grammar (*whole). Errors as those of masks. */
TERN_MUST_CHECK tern_status tern_grammar_follow(tern_grammar_state *state,
                                                const tern_progress *progress, bool *whole,
                                                tern_error *err);

TERN_API_END

#endif
