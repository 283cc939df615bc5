/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For tests/tokenizers/parity.py. Reads one text per line, in hexadecimal, from standard input.
 * Prints its ids, a tab, and the text that the ids give back, again in hexadecimal. Usage:
 * tokenize_tool FILE [--parse] [--special] [--pre NAME]
 * With --ends it reads nothing and prints the ids that end a text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tern/tern.h"
#include "tests/support/decode_hex.h"

static int fail(const char *message) {
    fprintf(stderr, "tokenize_tool: %s\n", message);
    return 1;
}

static int handle_line(const tern_tokenizer *t, char *line, unsigned flags, tern_error *err) {
    const size_t size = decode_hex(line);
    size_t n, text_size;
    if (tern_tokenize(t, line, size, flags, NULL, 0, &n, err) != TERN_OK)
        return fail(err->message);
    if (tern_tokenizer_reach(t) > 0 && n * tern_tokenizer_reach(t) < size)
        return fail("a text with fewer tokens than tern_tokenizer_reach says it must have");
    int32_t *ids = malloc((n + 1) * sizeof *ids);
    if (ids == NULL || tern_tokenize(t, line, size, flags, ids, n, &n, err) != TERN_OK ||
        tern_detokenize(t, ids, n, false, NULL, 0, &text_size, err) != TERN_OK)
        return fail(err->message);
    char *text = malloc(text_size + 1);
    if (text == NULL ||
        tern_detokenize(t, ids, n, false, text, text_size, &text_size, err) != TERN_OK)
        return fail(err->message);
    for (size_t i = 0; i < n; i++)
        printf("%s%d", i > 0 ? " " : "", (int)ids[i]);
    putchar('\t');
    for (size_t i = 0; i < text_size; i++)
        printf("%02x", (unsigned char)text[i]);
    putchar('\n');
    free(text);
    free(ids);
    return 0;
}

static int handle_input(const tern_tokenizer *t, unsigned flags) {
    tern_error err = {0};
    char *line = NULL;
    size_t capacity = 0;
    int status = 0;
    while (status == 0 && getline(&line, &capacity, stdin) >= 0)
        status = handle_line(t, line, flags, &err);
    free(line);
    return status;
}

static int print_ends(const tern_tokenizer *t) {
    for (int32_t id = 0; (size_t)id < tern_tokenizer_size(t); id++)
        if (tern_token_ends_text(t, id))
            printf("%d\n", (int)id);
    return 0;
}

int main(int argc, char **argv) {
    const char *pre = NULL;
    unsigned flags = 0;
    bool ends = false;
    if (argc < 2)
        return fail("which file?");
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--parse") == 0)
            flags |= TERN_TOKENIZE_PARSE;
        else if (strcmp(argv[i], "--special") == 0)
            flags |= TERN_TOKENIZE_SPECIAL;
        else if (strcmp(argv[i], "--ends") == 0)
            ends = true;
        else if (strcmp(argv[i], "--pre") == 0 && i + 1 < argc)
            pre = argv[++i];
        else
            return fail("unknown argument");
    tern_error err = {0};
    tern_tokenizer *t = NULL;
    if (tern_tokenizer_open(argv[1], pre, &t, &err) != TERN_OK)
        return fail(err.message);
    const int status = ends ? print_ends(t) : handle_input(t, flags);
    tern_tokenizer_free(&t);
    return status;
}
