/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/grammars.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/text.h"

enum { MOST_KEPT = 16, MOST_KEY_BYTES = 1 << 18 };

typedef struct kept {
    char *key; /* [size] everything that the grammar was made of; NULL: the entry is free */
    size_t size;
    tern_grammar *grammar;
    uint64_t used; /* value of `uses` at its latest use */
} kept;

struct grammars {
    const tern_tokenizer *tokenizer;
    size_t n_vocab;
    pthread_mutex_t lock;        /* protects the members below */
    tern_grammar_tokens *tokens; /* NULL: not made yet */
    kept kept[MOST_KEPT];
    uint64_t uses;
};

tern_status grammars_open(const tern_tokenizer *tokenizer, size_t n_vocab, grammars **out,
                          tern_error *err) {
    grammars *g = calloc(1, sizeof *g);
    if (g == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for grammars");
    g->tokenizer = tokenizer;
    g->n_vocab = n_vocab;
    (void)pthread_mutex_init(&g->lock, NULL);
    *out = g;
    return TERN_OK;
}

/* Returns the sorted vocabulary. The first request that needs it makes it. */
static tern_status find_tokens(grammars *g, const tern_grammar_tokens **out, tern_error *err) {
    tern_status status = TERN_OK;
    (void)pthread_mutex_lock(&g->lock);
    if (g->tokens == NULL)
        status = tern_grammar_tokens_new(g->tokenizer, g->n_vocab, &g->tokens, err);
    *out = g->tokens;
    (void)pthread_mutex_unlock(&g->lock);
    return status;
}

static void forget(kept *k) {
    tern_grammar_free(&k->grammar);
    free(k->key);
    *k = (kept){0};
}

void grammars_free(grammars **g_) {
    grammars *g = *g_;
    if (g == NULL)
        return;
    for (size_t i = 0; i < MOST_KEPT; i++)
        forget(&g->kept[i]);
    tern_grammar_tokens_free(&g->tokens);
    (void)pthread_mutex_destroy(&g->lock);
    free(g);
    *g_ = NULL;
}

/* Returns the kept grammar with that key, shared; NULL: there is none. */
static tern_grammar *find(grammars *g, const text *key) {
    tern_grammar *found = NULL;
    (void)pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < MOST_KEPT && found == NULL && !key->failed; i++) {
        kept *k = &g->kept[i];
        if (k->key != NULL && k->size == key->size && memcmp(k->key, key->bytes, k->size) == 0) {
            k->used = ++g->uses;
            found = tern_grammar_share(k->grammar);
        }
    }
    (void)pthread_mutex_unlock(&g->lock);
    return found;
}

/* Keeps a grammar in place of the least recently used one. */
static void keep(grammars *g, text *key, tern_grammar *grammar) {
    size_t size;
    char *bytes = key->size <= MOST_KEY_BYTES ? text_take(key, &size) : NULL; /* NULL: no memory */
    if (bytes == NULL)
        return;
    (void)pthread_mutex_lock(&g->lock);
    kept *oldest = &g->kept[0];
    for (size_t i = 1; i < MOST_KEPT; i++)
        if (g->kept[i].used < oldest->used)
            oldest = &g->kept[i];
    forget(oldest);
    *oldest = (kept){bytes, size, tern_grammar_share(grammar), ++g->uses};
    (void)pthread_mutex_unlock(&g->lock);
}

/* ---- the three kinds ------------------------------------------------------------------------- */

/* The source of a grammar: tags, or text[size]. */
typedef struct recipe {
    const tern_grammar_tags *tags;
    const char *kind; /* of a text: "schema", "gbnf" or "pattern" */
    const char *text, *name;
    size_t size;
    tern_schema_params params; /* of a schema */
} recipe;

/* Adds a text to a key, with its size before it, so that different sources have different keys. */
static void add_text(text *key, const char *bytes, size_t size) {
    text_print(key, "%zu:", size);
    text_add(key, bytes, size);
}

/* Adds a word; one that is not there as an empty one, which says the same. */
static void add_word(text *key, const char *word) {
    add_text(key, word, word != NULL ? strlen(word) : 0);
}

static void write_tag(text *key, const tern_grammar_tag *t) {
    add_word(key, t->begin);
    add_word(key, t->end);
    add_word(key, t->comma);
    add_text(key, t->schema, t->schema != NULL ? t->schema_size : 0);
    text_print(key, "%zu", t->n_arguments);
    for (size_t i = 0; i < t->n_arguments; i++) {
        const tern_grammar_argument *a = &t->arguments[i];
        text_print(key, "%d%d%d%zu", a->required, a->instead, a->after_key != NULL, a->n_words);
        add_text(key, a->begin, strlen(a->begin));
        add_text(key, a->schema, a->schema != NULL ? a->schema_size : 0);
        for (size_t k = 0; k < a->n_words; k++)
            add_text(key, a->words[k], strlen(a->words[k]));
    }
}

static void write_key(const recipe *r, text *key) {
    const tern_grammar_tags *t = r->tags;
    if (t == NULL) {
        text_print(key, "%s%d", r->kind, r->params.closed);
        add_text(key, r->name, strlen(r->name)); /* notes begin with it */
        add_text(key, r->text, r->size);
        return;
    }
    text_print(key, "tags%d%d%d%d%d%d", t->free_text, t->required, t->single, t->at_start,
               t->schema.closed, t->open != NULL);
    const char *const words[] = {t->trigger, t->separator, t->open, t->close};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        add_word(key, words[i]);
    if (t->form != NULL) {
        add_text(key, t->form->name, strlen(t->form->name));
        add_text(key, t->form->schema, t->form->schema_size);
    }
    for (size_t i = 0; i < t->n_tags; i++) {
        add_text(key, t->tags[i].name, strlen(t->tags[i].name)); /* notes begin with it */
        write_tag(key, &t->tags[i]);
    }
}

static tern_status compile(grammars *g, const recipe *r, tern_grammar **out, tern_error *err) {
    const tern_grammar_tokens *tokens;
    const tern_status status = find_tokens(g, &tokens, err);
    if (status != TERN_OK)
        return status;
    if (r->tags != NULL)
        return tern_grammar_from_tags(tokens, r->tags, out, err);
    if (strcmp(r->kind, "schema") == 0)
        return tern_grammar_from_schema(tokens, r->text, r->size, r->name, &r->params, out, err);
    if (strcmp(r->kind, "pattern") == 0)
        return tern_grammar_from_pattern(tokens, r->text, r->size, r->name, out, err);
    return tern_grammar_from_gbnf(tokens, r->text, r->size, r->name, out, err);
}

static tern_status make(grammars *g, const recipe *r, tern_grammar **out, tern_error *err) {
    tern_status status = TERN_OK;
    text key = {0};
    write_key(r, &key);
    *out = find(g, &key);
    if (*out == NULL) {
        status = compile(g, r, out, err);
        if (status == TERN_OK)
            keep(g, &key, *out);
    }
    text_free(&key);
    return status;
}

tern_status grammars_schema(grammars *g, const char *words, size_t size, const char *name,
                            const tern_schema_params *params, tern_grammar **out, tern_error *err) {
    const recipe r = {
        .kind = "schema", .text = words, .size = size, .name = name, .params = *params};
    return make(g, &r, out, err);
}

tern_status grammars_gbnf(grammars *g, const char *words, size_t size, const char *name,
                          tern_grammar **out, tern_error *err) {
    const recipe r = {.kind = "gbnf", .text = words, .size = size, .name = name};
    return make(g, &r, out, err);
}

tern_status grammars_pattern(grammars *g, const char *words, size_t size, const char *name,
                             tern_grammar **out, tern_error *err) {
    const recipe r = {.kind = "pattern", .text = words, .size = size, .name = name};
    return make(g, &r, out, err);
}

tern_status grammars_tags(grammars *g, const tern_grammar_tags *tags, tern_grammar **out,
                          tern_error *err) {
    const recipe r = {.tags = tags};
    return make(g, &r, out, err);
}
