/* SPDX-License-Identifier: Apache-2.0 */
/* tern tokenize: converts text to token ids and back, without a model's weights. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tern/tern.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"
#include "tools/commands/commands.h"
#include "tools/load/loader.h"

static const size_t input_limit = (size_t)1 << 28; /* bytes; the limit of a tokenizer */

/* A text and its tokens: one is given, the other is computed. */
typedef struct conversion {
    const options *o;
    const tern_tokenizer *t;
    char *text;
    size_t size;
    int32_t *ids;
    size_t n;
} conversion;

/* ---- input ------------------------------------------------------------------------------------
 */

static int read_input(const options *o, char **bytes, size_t *size) {
    const char *text = options_text(o, OPT_PROMPT), *file = options_text(o, OPT_FILE);
    if (text != NULL && file != NULL) {
        complain("--prompt and --file exclude each other");
        return EXIT_USAGE;
    }
    if (text == NULL && file == NULL && isatty(STDIN_FILENO) == 1) {
        complain("no text: use -p TEXT, -f FILE or a pipe on standard input");
        return EXIT_USAGE;
    }
    if (text == NULL || strcmp(text, "-") == 0)
        return file_read(file != NULL ? file : "-", input_limit, bytes, size);
    *bytes = strdup(text);
    *size = strlen(text);
    if (*bytes == NULL) {
        complain("no memory for the text");
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

/* ---- conversion -------------------------------------------------------------------------------
 */

static int no_memory(void) {
    complain("no memory for the tokens");
    return EXIT_FAILED;
}

static int make_ids(conversion *c) {
    const unsigned flags =
        (options_switch(c->o, OPT_ADD_SPECIAL) ? (unsigned)TERN_TOKENIZE_SPECIAL : 0) |
        (options_switch(c->o, OPT_SPECIAL) ? (unsigned)TERN_TOKENIZE_PARSE : 0);
    size_t capacity = c->size / 2 + 16; /* most texts have fewer; others are tokenized twice */
    for (;;) {
        tern_error err = {0};
        c->ids = malloc(capacity * sizeof *c->ids);
        if (c->ids == NULL)
            return no_memory();
        const tern_status status =
            tern_tokenize(c->t, c->text, c->size, flags, c->ids, capacity, &c->n, &err);
        if (status == TERN_OK)
            return EXIT_DONE;
        if (status != TERN_ERR_BUFFER || c->n <= capacity)
            return complain_error(&err);
        free(c->ids);
        capacity = c->n;
    }
}

/* Reads numbers separated by anything but letters: 1 2 3, 1,2,3, [1, 2, 3]. */
static int parse_ids(conversion *c) {
    c->ids = malloc((c->size / 2 + 1) * sizeof *c->ids);
    if (c->ids == NULL)
        return no_memory();
    const size_t tokens = tern_tokenizer_size(c->t);
    for (size_t at = 0; at < c->size;) {
        const char *rest = c->text + at;
        if (strchr(" ,;[]\t\r\n", *rest) != NULL && *rest != '\0') {
            at++;
            continue;
        }
        char *end;
        const unsigned long long id =
            *rest >= '0' && *rest <= '9' ? strtoull(rest, &end, 10) : tokens;
        if (id >= tokens) {
            const size_t shown = strcspn(rest, " ,;[]\t\r\n");
            complain("--ids wants numbers below %zu, the tokens of %s, not '%.*s'", tokens,
                     tern_tokenizer_file(c->t), (int)(shown < 40 ? shown : 40), rest);
            return EXIT_FAILED;
        }
        c->ids[c->n++] = (int32_t)id;
        at = (size_t)(end - c->text);
    }
    return EXIT_DONE;
}

static int make_text(conversion *c) {
    const bool skip = options_switch(c->o, OPT_SKIP_SPECIAL);
    tern_error err = {0};
    const int parsed = parse_ids(c);
    if (parsed != EXIT_DONE)
        return parsed;
    c->text = NULL;
    if (tern_detokenize(c->t, c->ids, c->n, skip, NULL, 0, &c->size, &err) != TERN_OK)
        return complain_error(&err);
    c->text = malloc(c->size + 1);
    if (c->text == NULL)
        return no_memory();
    if (c->size > 0 &&
        tern_detokenize(c->t, c->ids, c->n, skip, c->text, c->size, &c->size, &err) != TERN_OK)
        return complain_error(&err);
    return EXIT_DONE;
}

/* ---- output -----------------------------------------------------------------------------------
 */

static int print_json(const conversion *c) {
    json_t *ids = json_array(), *pieces = json_array();
    for (size_t i = 0; i < c->n; i++) {
        size_t size;
        const char *piece = tern_token_bytes(c->t, c->ids[i], true, &size);
        json_array_append_new(ids, json_integer(c->ids[i]));
        json_array_append_new(pieces, json_text(piece, size));
    }
    const char *file = tern_tokenizer_file(c->t);
    json_t *root = json_object();
    json_object_set_new(root, "text", json_text(c->text, c->size));
    json_object_set_new(root, "tokens", ids);
    json_object_set_new(root, "pieces", pieces);
    json_object_set_new(root, "tokenizer", json_text(file, strlen(file)));
    return json_print(root);
}

/* Prints a piece on one line: newlines, backslashes and control characters are escaped. */
static void print_piece(const char *piece, size_t size) {
    for (size_t i = 0; i < size; i++) {
        const unsigned char byte = (unsigned char)piece[i];
        if (byte == '\n')
            out_print("\\n");
        else if (byte == '\\')
            out_print("\\\\");
        else if (byte < 0x20 || byte == 0x7F)
            out_print("\\x%02x", byte);
        else
            out_write(piece + i, 1);
    }
}

static void print_pieces(const conversion *c) {
    for (size_t i = 0; i < c->n; i++) {
        size_t size;
        const char *piece = tern_token_bytes(c->t, c->ids[i], true, &size);
        out_print("%" PRId32 "\t", c->ids[i]);
        print_piece(piece, size);
        out_print("\n");
    }
}

static int print_result(const conversion *c) {
    if (options_switch(c->o, OPT_JSON))
        return print_json(c);
    if (options_switch(c->o, OPT_PIECES)) {
        print_pieces(c);
    } else if (options_switch(c->o, OPT_IDS)) {
        out_write(c->text, c->size);
        if (options_switch(c->o, OPT_LINES))
            out_print("\n");
    } else {
        for (size_t i = 0; i < c->n; i++)
            out_print("%s%" PRId32, i > 0 ? " " : "", c->ids[i]);
        out_print("\n");
    }
    return EXIT_DONE;
}

/* ---- the command ------------------------------------------------------------------------------
 */

/* text[size] has a terminator, or a newline in its place. */
static int convert(const options *o, const tern_tokenizer *t, char *text, size_t size) {
    conversion c = {.o = o, .t = t, .text = text, .size = size};
    const bool ids = options_switch(o, OPT_IDS);
    int status = ids ? make_text(&c) : make_ids(&c);
    if (status == EXIT_DONE)
        status = print_result(&c);
    if (ids && c.text != text)
        free(c.text);
    free(c.ids);
    return status;
}

static int convert_lines(const options *o, const tern_tokenizer *t, char *bytes, size_t size) {
    int status = EXIT_DONE;
    for (size_t at = 0; at < size && status == EXIT_DONE;) {
        const char *end = memchr(bytes + at, '\n', size - at);
        const size_t length = end != NULL ? (size_t)(end - bytes) - at : size - at;
        status = convert(o, t, bytes + at, length);
        at += length + 1;
    }
    return status;
}

int cmd_tokenize(const options *o) {
    tern_tokenizer *t = NULL;
    char *bytes = NULL;
    size_t size = 0;
    if (options_switch(o, OPT_PIECES) && options_switch(o, OPT_JSON)) {
        complain("--json has the pieces already; --pieces cannot be added");
        return EXIT_USAGE;
    }
    int status = read_input(o, &bytes, &size);
    if (status == EXIT_DONE)
        status = loader_open_tokenizer(o, &t);
    if (status == EXIT_DONE) {
        status = options_switch(o, OPT_LINES) ? convert_lines(o, t, bytes, size)
                                              : convert(o, t, bytes, size);
    }
    free(bytes);
    tern_tokenizer_free(&t);
    return status;
}
