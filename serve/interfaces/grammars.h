/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_GRAMMARS_H
#define TERN_SERVE_INTERFACES_GRAMMARS_H

/*
 * Compiled grammars of a server's model. The latest ones are kept, with the masks that they
 * remember, for requests that ask for the same again. Any thread may use it.
 */

#include "tern/grammar.h"

typedef struct grammars grammars;

/* The tokenizer must outlive it. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status grammars_open(const tern_tokenizer *tokenizer, size_t n_vocab,
                                          grammars **out, tern_error *err);

/* Sets *g to NULL; NULL is fine. After all owners of its grammars. */
void grammars_free(grammars **g);

/* *out is the caller's, who frees it. The first of them sorts the vocabulary. Errors as those of
 * the functions of tern/grammar.h; TERN_ERR_ARG: the vocabulary ends no text. */
TERN_MUST_CHECK tern_status grammars_schema(grammars *g, const char *words, size_t size,
                                            const char *name, tern_grammar **out, tern_error *err);
TERN_MUST_CHECK tern_status grammars_gbnf(grammars *g, const char *words, size_t size,
                                          const char *name, tern_grammar **out, tern_error *err);
TERN_MUST_CHECK tern_status grammars_tags(grammars *g, const tern_grammar_tags *tags,
                                          tern_grammar **out, tern_error *err);

#endif
