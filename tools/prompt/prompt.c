/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prompt/prompt.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"
#include "tools/load/model_hint.h"

static const size_t prompt_limit = (size_t)1 << 28; /* bytes; a longer text is a mistake */

/* Reads the text of a file, or of standard input ("-"); drops one newline at the end. */
static int read_file(const char *path, prompt *p) {
    const int status = file_read(path, prompt_limit, &p->text, &p->size);
    if (status == EXIT_DONE && p->size > 0 && p->text[p->size - 1] == '\n')
        p->text[--p->size] = '\0';
    return status;
}

static int read_text(const options *o, prompt *p) {
    const char *text = options_text(o, OPT_PROMPT);
    const char *file = options_text(o, OPT_FILE);
    if (text == NULL && file == NULL && options_given(o, OPT_SERVER) && o->model_may_be_prompt)
        text = options_text(o, OPT_MODEL); /* -m alone names a server's model */
    if (text == NULL && file == NULL && isatty(STDIN_FILENO) == 1) {
        complain("no prompt: use -p TEXT, -f FILE, --tokens IDS or a pipe on standard input");
        return EXIT_USAGE;
    }
    if (text == NULL || strcmp(text, "-") == 0)
        return read_file(file != NULL ? file : "-", p);
    p->text = strdup(text);
    if (p->text == NULL) {
        complain("no memory for the prompt");
        return EXIT_FAILED;
    }
    p->size = strlen(text);
    return EXIT_DONE;
}

/* Reads "1,2,3" with optional spaces; the session checks the range of ids. */
static int parse_ids(const char *text, prompt *p) {
    p->ids = malloc((strlen(text) / 2 + 1) * sizeof *p->ids);
    if (p->ids == NULL) {
        complain("no memory for the tokens");
        return EXIT_FAILED;
    }
    const char *c = text;
    for (;;) {
        char *end;
        errno = 0;
        c += strspn(c, " ");
        const long id = isdigit((unsigned char)*c) ? strtol(c, &end, 10) : -1;
        if (id < 0 || id > INT32_MAX || errno != 0) {
            complain("--tokens wants numbers such as 1,2,3, not '%.40s'", c);
            return EXIT_USAGE;
        }
        p->ids[p->n++] = (int32_t)id;
        c = end + strspn(end, " ");
        if (*c == '\0')
            return EXIT_DONE;
        c += *c == ',';
    }
}

int prompt_complain(const tern_tokenizer *t, const tern_error *err) {
    if (err->status == TERN_ERR_TEMPLATE ||
        (err->status == TERN_ERR_TOKENIZER_DATA && strcmp(tern_chat_format(t), "none") == 0)) {
        complain("%s: --chat-template NAME says which one to use", err->message);
        return EXIT_FAILED;
    }
    return complain_error(err);
}

void prompt_tell_unseen(const tern_conversation *c, size_t i) {
    if (i < c->n)
        complain("the model does not see message %zu, of the role %.32s: its chat format has no "
                 "place for it",
                 i, c->messages[i].role);
}

/* Tokenizes the text with the chat format around it. */
static int tokenize_chat(const options *o, const loaded *l, prompt *p) {
    const char *system = options_text(o, OPT_SYSTEM);
    const tern_chat_message messages[] = {{.role = "system", .content = system},
                                          {.role = "user", .content = p->text}};
    const size_t first = system == NULL;
    const tern_conversation c = {.messages = messages + first, .n = 2 - first};
    tern_rendering seen;
    tern_error err = {0};
    if (tern_conversation_render(l->tokenizer, &c, &seen, &err) != TERN_OK)
        return prompt_complain(l->tokenizer, &err);
    prompt_tell_unseen(&c, seen.unseen);
    p->n = seen.n;
    p->ids = seen.ids;
    seen.ids = NULL;
    tern_rendering_free(&seen);
    return EXIT_DONE;
}

static int tokenize_text(const options *o, const loaded *l, prompt *p) {
    const unsigned parse = options_switch(o, OPT_SPECIAL) ? TERN_TOKENIZE_PARSE : 0;
    const unsigned flags = TERN_TOKENIZE_SPECIAL | parse;
    tern_error err = {0};
    size_t n = 0;
    if (tern_tokenize(l->tokenizer, p->text, p->size, flags, NULL, 0, &n, &err) != TERN_OK)
        return prompt_complain(l->tokenizer, &err);
    p->ids = malloc((n + 1) * sizeof *p->ids);
    if (p->ids == NULL) {
        complain("no memory for %zu tokens", n);
        return EXIT_FAILED;
    }
    if (n > 0 &&
        tern_tokenize(l->tokenizer, p->text, p->size, flags, p->ids, n, &p->n, &err) != TERN_OK)
        return prompt_complain(l->tokenizer, &err);
    return EXIT_DONE;
}

int prompt_tokenize(const options *o, const loaded *l, prompt *p) {
    if (l->tokenizer == NULL) {
        complain("%s; give the prompt as --tokens", l->tokenizer_error.message);
        return EXIT_FAILED;
    }
    return options_switch(o, OPT_CHAT) ? tokenize_chat(o, l, p) : tokenize_text(o, l, p);
}

/*
 * Checks that the prompt fits into the session, if there is one; a complaint says what would help.
 */
static int check_length(const loaded *l, const prompt *p) {
    const uint32_t context = l->session != NULL ? tern_session_context(l->session) : UINT32_MAX;
    if (p->n <= context)
        return EXIT_DONE;
    if (p->n <= l->info.n_ctx_train) {
        complain("the prompt has %zu tokens, the context %" PRIu32
                 " positions: --ctx makes more room, up to %" PRIu32,
                 p->n, context, l->info.n_ctx_train);
    } else {
        complain("the prompt has %zu tokens, the context %" PRIu32
                 " positions; the model was trained for %" PRIu32,
                 p->n, context, l->info.n_ctx_train);
    }
    return EXIT_FAILED;
}

int prompt_take(const options *o, prompt *p) {
    *p = (prompt){0};
    const char *tokens = options_text(o, OPT_TOKENS);
    if ((tokens != NULL) + options_given(o, OPT_PROMPT) + options_given(o, OPT_FILE) > 1) {
        complain("--prompt, --file and --tokens exclude each other");
        return EXIT_USAGE;
    }
    return tokens != NULL ? parse_ids(tokens, p) : read_text(o, p);
}

int prompt_read(const options *o, const loaded *l, prompt *p) {
    int status = prompt_take(o, p);
    if (status == EXIT_DONE && p->text != NULL)
        status = prompt_tokenize(o, l, p);
    return status == EXIT_DONE ? check_length(l, p) : status;
}

void prompt_free(prompt *p) {
    free(p->text);
    free(p->ids);
    *p = (prompt){0};
}
