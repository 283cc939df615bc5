/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_GRAMMARS_H
#define TERN_SERVE_INTERFACES_GRAMMARS_H

/*
 * Compiled grammars for the server's model. The latest ones are kept, with the masks that they
 * cache, for requests that ask for the same again. Any thread may use it.
 */

#include "tern/grammar.h"

typedef struct grammars grammars;

/* The tokenizer must outlive it. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status grammars_open(const tern_tokenizer *tokenizer, size_t n_vocab,
                                          grammars **out, tern_error *err);

/* Sets *g to NULL; NULL is fine. All its grammars must have been freed by their owners. */
void grammars_free(grammars **g);

/* Each makes a grammar, or finds it among those that are kept. The caller frees *out. The first
 * call also sorts the vocabulary. Errors as in tern/grammar.h; TERN_ERR_ARG: the vocabulary has no
 * token that ends a text. */
TERN_MUST_CHECK tern_status grammars_schema(grammars *g, const char *words, size_t size,
                                            const char *name, const tern_schema_params *params,
                                            tern_grammar **out, tern_error *err);
TERN_MUST_CHECK tern_status grammars_gbnf(grammars *g, const char *words, size_t size,
                                          const char *name, tern_grammar **out, tern_error *err);
TERN_MUST_CHECK tern_status grammars_pattern(grammars *g, const char *words, size_t size,
                                             const char *name, tern_grammar **out, tern_error *err);
TERN_MUST_CHECK tern_status grammars_tags(grammars *g, const tern_grammar_tags *tags,
                                          tern_grammar **out, tern_error *err);

#endif
