/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prompt/text_file.h"

#include <stdlib.h>

#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"

static const size_t text_limit = (size_t)1 << 30; /* bytes; a longer text is a mistake */

/* The first call counts the ids, the second one writes them. */
static int tokenize(const loaded *l, text_file *t) {
    tern_error err = {0};
    if (tern_tokenize(l->tokenizer, t->bytes, t->size, TERN_TOKENIZE_SPECIAL, NULL, 0, &t->n,
                      &err) != TERN_OK)
        return complain_error(&err);
    t->ids = calloc(t->n + 1, sizeof *t->ids);
    if (t->ids == NULL) {
        complain("no memory for %zu tokens", t->n);
        return EXIT_FAILED;
    }
    if (t->n > 0 && tern_tokenize(l->tokenizer, t->bytes, t->size, TERN_TOKENIZE_SPECIAL, t->ids,
                                  t->n, &t->n, &err) != TERN_OK)
        return complain_error(&err);
    return EXIT_DONE;
}

int text_file_read(const options *o, const loaded *l, text_file *t) {
    t->path = options_text(o, OPT_FILE);
    if (t->path == NULL) {
        complain("no text: name its file after the model, or use -f FILE, - for standard input");
        return EXIT_USAGE;
    }
    if (l->tokenizer == NULL)
        return complain_error(&l->tokenizer_error);
    const int status = file_read(t->path, text_limit, &t->bytes, &t->size);
    return status == EXIT_DONE ? tokenize(l, t) : status;
}

size_t text_file_window(const options *o, const loaded *l) {
    enum { USUAL = 512 };
    const uint64_t ctx = options_integer(o, OPT_CONTEXT);
    if (ctx > 0)
        return ctx;
    const size_t trained = tern_model_default_context(l->model);
    return trained < USUAL ? trained : USUAL;
}

int32_t text_file_leading_token(const tern_tokenizer *t) {
    int32_t first = -1;
    size_t n = 0;
    tern_error err = {0};
    const int32_t bos = tern_token_bos(t);
    int32_t ids[4]; /* BOS and EOS, at most */
    if (tern_tokenize(t, "", 0, TERN_TOKENIZE_SPECIAL, ids, 4, &n, &err) == TERN_OK && n > 0)
        first = ids[0];
    return first == bos ? bos : -1;
}

void text_file_free(text_file *t) {
    free(t->bytes);
    free(t->ids);
}
