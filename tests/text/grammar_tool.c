/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Masks for tests in Python. Usage: grammar_tool TOKENIZER. Reads one command per line from
 * standard input, with texts in hexadecimal, and answers each with one line:
 *
 *     schema HEX    compile it, without white space; "ok" or "no MESSAGE"
 *     spaced HEX    the same with white space
 *     closed HEX    without white space; objects that name their properties have no others
 *     notes         what texts of the latest grammar are not held to, with tabs between
 *     valid HEX HEX if the second text satisfies the schema that is the first: "yes" or "no WHY"
 *     gbnf HEX
 *     mask ID ...   after these tokens of the latest grammar: "HEX WHOLE MICROSECONDS", the allowed
 *                   tokens as bits of bytes, lowest first; or "no MESSAGE"
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tern/grammar.h"
#include "tests/support/decode_hex.h"

typedef struct tool {
    tern_grammar_tokens *tokens;
    size_t n_vocab;
    tern_grammar *grammar;
    tern_grammar_state *state;
    uint64_t *allowed;
    int32_t *ids;
    size_t n_ids, capacity;
    tern_error err;
} tool;

static void compile(tool *t, const char *command, char *hex) {
    const tern_schema_params params = {.compact = strcmp(command, "spaced") != 0,
                                       .closed = strcmp(command, "closed") == 0};
    const size_t size = decode_hex(hex);
    tern_grammar_state_free(&t->state);
    tern_grammar_free(&t->grammar);
    const tern_status status =
        strcmp(command, "gbnf") == 0
            ? tern_grammar_from_gbnf(t->tokens, hex, size, "gbnf", &t->grammar, &t->err)
            : tern_grammar_from_schema(t->tokens, hex, size, "schema", &params, &t->grammar,
                                       &t->err);
    if (status == TERN_OK && tern_grammar_state_new(t->grammar, 1, &t->state, &t->err) == TERN_OK)
        puts("ok");
    else
        printf("no %s\n", t->err.message);
}

static void notes(const tool *t) {
    for (size_t i = 0; tern_grammar_note(t->grammar, i) != NULL; i++)
        printf("%s%s", i > 0 ? "\t" : "", tern_grammar_note(t->grammar, i));
    puts("");
}

static void validate(tool *t, char *hex) {
    bool valid = false;
    char *second = strchr(hex, ' ');
    if (second == NULL) {
        puts("no two texts");
        return;
    }
    *second++ = '\0';
    const size_t schema_size = decode_hex(hex), size = decode_hex(second);
    const tern_status status =
        tern_schema_validate(hex, schema_size, second, size, &valid, &t->err);
    if (status == TERN_OK && valid)
        puts("yes");
    else
        printf("no %s\n", t->err.message);
}

static bool read_ids(tool *t, char *text) {
    char *end = text;
    for (t->n_ids = 0;; t->n_ids++) {
        const long id = strtol(text, &end, 10);
        if (end == text)
            return true;
        text = end;
        if (t->n_ids == t->capacity) {
            t->capacity = 2 * t->capacity + 64;
            int32_t *grown = realloc(t->ids, t->capacity * sizeof *grown);
            if (grown == NULL)
                return false;
            t->ids = grown;
        }
        t->ids[t->n_ids] = (int32_t)id;
    }
}

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void mask(tool *t, char *ids) {
    const size_t words = (t->n_vocab + 63) / 64;
    bool whole = false;
    if (t->state == NULL || !read_ids(t, ids)) {
        puts("no grammar, or no memory");
        return;
    }
    const tern_progress p = {.tokens = t->ids, .n = t->n_ids};
    memset(t->allowed, 0xff, words * sizeof *t->allowed);
    const double begin = now();
    if (!tern_grammar_mask(t->state, &p, t->allowed, words)) {
        printf("no %s\n", tern_grammar_state_error(t->state)->message);
        return;
    }
    const double seconds = now() - begin;
    if (tern_grammar_follow(t->state, &p, &whole, &t->err) != TERN_OK) {
        printf("no %s\n", t->err.message);
        return;
    }
    for (size_t i = 0; i < words * 8; i++)
        printf("%02x", (unsigned)(t->allowed[i / 8] >> (8 * (i % 8)) & 0xff));
    printf(" %d %.2f\n", whole, 1e6 * seconds);
}

static void handle(tool *t, char *line) {
    char *rest = strchr(line, ' ');
    char nothing[] = "";
    line[strcspn(line, "\n")] = '\0';
    if (rest != NULL)
        *rest++ = '\0';
    if (strcmp(line, "mask") == 0)
        mask(t, rest != NULL ? rest : nothing);
    else if (strcmp(line, "notes") == 0)
        notes(t);
    else if (strcmp(line, "valid") == 0)
        validate(t, rest != NULL ? rest : nothing);
    else
        compile(t, line, rest != NULL ? rest : nothing);
    (void)fflush(stdout);
}

int main(int argc, char **argv) {
    tool t = {.n_vocab = 0};
    tern_tokenizer *tokenizer = NULL;
    char *line = NULL;
    size_t capacity = 0;
    if (argc != 2 || tern_tokenizer_open(argv[1], NULL, &tokenizer, &t.err) != TERN_OK) {
        fprintf(stderr, "grammar_tool: %s\n", argc != 2 ? "TOKENIZER" : t.err.message);
        return 2;
    }
    t.n_vocab = tern_tokenizer_size(tokenizer);
    t.allowed = calloc(t.n_vocab / 64 + 1, sizeof *t.allowed);
    if (t.allowed == NULL ||
        tern_grammar_tokens_new(tokenizer, t.n_vocab, &t.tokens, &t.err) != TERN_OK) {
        fprintf(stderr, "grammar_tool: %s\n", t.err.message);
        return 1;
    }
    while (getline(&line, &capacity, stdin) >= 0)
        handle(&t, line);
    free(line);
    free(t.allowed);
    free(t.ids);
    tern_grammar_state_free(&t.state);
    tern_grammar_free(&t.grammar);
    tern_grammar_tokens_free(&t.tokens);
    tern_tokenizer_free(&tokenizer);
    return 0;
}
