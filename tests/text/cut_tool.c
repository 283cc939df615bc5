/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For e2e_pre_tokenizers. Reads one text per line, in hexadecimal, from standard input. Prints the
 * bytes of each piece that the pre-tokenizer of that name cuts it into. Usage: cut_tool NAME
 * With `--name FILE` it prints the name that GGUF has for the rules of a tokenizer.json.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/pipeline.h"
#include "runtime/text/tokenizer/pre.h"
#include "runtime/text/tokenizer/regex.h"
#include "tests/support/decode_hex.h"

static tern_status print_piece(void *user, tern_span piece) {
    (void)user;
    printf(" %zu", piece.size);
    return TERN_OK;
}

static int cut_lines(const tern_pipeline *p, tern_pipeline_scratch *scratch) {
    const tern_piece_sink sink = {.piece = print_piece};
    char *line = NULL;
    size_t capacity = 0;
    int status = 0;
    while (status == 0 && getline(&line, &capacity, stdin) >= 0) {
        const tern_span text = {line, decode_hex(line)};
        status = tern_pipeline_run(p, scratch, text, true, &sink) != TERN_OK;
        putchar('\n');
    }
    free(line);
    return status;
}

static int print_name(const char *path) {
    tern_vocabulary *v = NULL;
    tern_error err = {0};
    if (tern_vocabulary_open(path, &v, &err) != TERN_OK) {
        fprintf(stderr, "cut_tool: %s\n", err.message);
        return 1;
    }
    puts(v->pre);
    tern_vocabulary_free(&v);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--name") == 0)
        return print_name(argv[2]);
    const tern_pre_rule *rule =
        argc == 2 ? tern_pre_find((tern_span){argv[1], strlen(argv[1])}) : NULL;
    if (rule == NULL) {
        fprintf(stderr, "cut_tool: no such pre-tokenizer\n");
        return 1;
    }
    tern_vocabulary v = {.n_steps = 0};
    char why[TERN_REGEX_WHY_BYTES] = "no memory";
    tern_pipeline *p = NULL;
    tern_pre_add_steps(rule, &v); /* the last one writes bytes as characters; it is left out */
    tern_pipeline_scratch *scratch = tern_pipeline_scratch_new();
    int status = 1;
    if (tern_pipeline_new(v.steps, v.n_steps - 1, &p, why) == TERN_OK && scratch != NULL)
        status = cut_lines(p, scratch);
    else
        fprintf(stderr, "cut_tool: %s\n", why);
    tern_pipeline_scratch_free(scratch);
    tern_pipeline_free(&p);
    return status;
}
