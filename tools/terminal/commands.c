/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of a chat, which begin with '/'. */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "tools/answer/figures.h"
#include "tools/cli/near_word.h"
#include "tools/cli/output.h"
#include "tools/terminal/chat.h"

/*
 * A command. Its function gets the text after the name, which may be "", and returns false to end
 * the program. An argument in brackets is optional. Commands without help are other names of the
 * ones above.
 */
typedef struct chat_command_spec {
    const char *name, *argument, *help; /* argument "": it takes none */
    bool (*run)(chat *c, const char *argument);
} chat_command_spec;

static bool help(chat *c, const char *argument);

static bool clear(chat *c, const char *argument) {
    (void)argument;
    dialogue_clear(&c->dialogue, true);
    c->attempts = 0;
    chat_remark(c, "a new conversation");
    return true;
}

/* Forgets the older half of the conversation, rounded up. */
static bool trim(chat *c, const char *argument) {
    (void)argument;
    const size_t gone = (dialogue_exchanges(&c->dialogue) + 1) / 2;
    dialogue_forget(&c->dialogue, gone);
    c->attempts = 0;
    chat_remark(c, "%zu questions are forgotten, %zu are left", gone,
                dialogue_exchanges(&c->dialogue));
    return true;
}

/*
 * The file that an argument names, to be freed. Like a shell it removes surrounding quotes and
 * replaces an unquoted ~ by the home folder. NULL after a complaint.
 */
static char *file_argument(const char *argument) {
    const char *home = getenv("HOME");
    size_t n = strlen(argument);
    while (n > 0 && argument[n - 1] == ' ')
        n--;
    const bool quoted =
        n > 1 && (argument[0] == '"' || argument[0] == '\'') && argument[n - 1] == argument[0];
    const bool tilde = argument[0] == '~' && (n == 1 || argument[1] == '/') && home != NULL;
    const size_t skip = quoted || tilde ? 1 : 0;
    char *path;
    if (asprintf(&path, "%s%.*s", tilde ? home : "", (int)(n - skip - (quoted ? 1 : 0)),
                 argument + skip) < 0) {
        complain("no memory for the name of a file");
        return NULL;
    }
    return path;
}

static bool save_as(chat *c, const char *argument, tern_out_mode mode) {
    char *path = file_argument(argument);
    if (path == NULL || !chat_save(c, path, mode))
        c->failed = true;
    else
        chat_remark(c, "%zu messages saved in %s", c->dialogue.n, path);
    free(path);
    return true;
}

static bool save(chat *c, const char *argument) {
    return save_as(c, argument, TERN_OUT_NEW);
}

static bool save_over(chat *c, const char *argument) {
    return save_as(c, argument, TERN_OUT_REPLACE);
}

static bool load(chat *c, const char *argument) {
    char *path = file_argument(argument);
    if (path == NULL || !chat_load(c, path))
        c->failed = true;
    else
        chat_remark(c, "%zu messages", c->dialogue.n);
    free(path);
    return true;
}

static bool stats(chat *c, const char *argument) {
    (void)argument;
    if (c->server != NULL) {
        (void)fprintf(stderr, "%zu messages, answered by %s at %s\n", c->dialogue.n,
                      remote_model(c->server), remote_place(c->server));
        return true;
    }
    (void)fprintf(stderr, "%zu messages, %" PRIu32 " of %" PRIu32 " positions\n", c->dialogue.n,
                  tern_session_position(c->l.session), tern_session_context(c->l.session));
    if (c->answered) {
        (void)fprintf(stderr, "last answer: %zu tokens of the conversation were known | ",
                      c->answerer.latest.figures.n_shared);
        figures_print("", &c->answerer.latest, &c->l);
    }
    return true;
}

/* Answers again with the next seed. At temperature 0 the seed has no effect, so the answer will be
 * the same. */
static bool regen(chat *c, const char *argument) {
    (void)argument;
    if (!dialogue_drop(&c->dialogue, "assistant")) {
        complain("/regen: there is no answer yet");
        c->failed = true;
        return true;
    }
    c->attempts++;
    if (c->server == NULL && c->options.sampling.temperature == 0.0F)
        chat_remark(c, "the same answer: --temp is 0");
    (void)chat_answer(c);
    return true;
}

static bool settings(chat *c, const char *argument) {
    (void)argument;
    chat_print_settings(c);
    return true;
}

static bool leave(chat *c, const char *argument) {
    (void)c;
    (void)argument;
    return false;
}

static const chat_command_spec commands[] = {
    {"/help", "", "this list", help},
    {"/clear", "", "begin a new conversation", clear},
    {"/trim", "", "forget the older half of the conversation", trim},
    {"/regen", "", "answer the last question again, with the next seed", regen},
    {"/save", "FILE", "save the conversation", save},
    {"/save!", "FILE", "the same, in place of a file that exists", save_over},
    {"/load", "FILE", "go on with a saved conversation", load},
    {"/settings", "", "how tokens are picked, and who says so", settings},
    {"/set", "[NAME VALUE]", "pick tokens otherwise: /set temp 0.5; /set lists the names",
     chat_set},
    {"/seed", "[N]", "show the seed of the random numbers, or take another", chat_seed},
    {"/system", "[TEXT]", "show the system prompt, or take another; \"\": none", chat_system},
    {"/stats", "", "figures of the last answer", stats},
    {"/exit", "", "end (also Ctrl-D)", leave},
    {"/quit", "", NULL, leave},
    {"/bye", "", NULL, leave},
    {"/?", "", NULL, help},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static bool help(chat *c, const char *argument) {
    (void)c, (void)argument;
    for (int i = 0; i < COMMANDS && commands[i].help != NULL; i++) {
        (void)fprintf(stderr, "  %s %-*s %s\n", commands[i].name,
                      (int)(17 - strlen(commands[i].name)), commands[i].argument, commands[i].help);
    }
    (void)fprintf(stderr,
                  "A pasted text is one message, also with several lines. A \\ at the end of a\n"
                  "line goes on with the next one; lines of \"\"\" stand around a message of\n"
                  "several lines; // begins a message with a /.\n"
                  "Ctrl-C stops an answer, and leaves a line.\n");
    return true;
}

static void complain_unknown(const char *name) {
    const char *nearest = NULL;
    size_t best = 3; /* up to two mistakes */
    for (int i = 0; i < COMMANDS; i++) {
        const size_t distance = word_distance(name, commands[i].name);
        if (distance < best) {
            best = distance;
            nearest = commands[i].name;
        }
    }
    if (nearest != NULL)
        complain("unknown command '%.60s', did you mean %s?", name, nearest);
    else
        complain("unknown command '%.60s', see /help", name);
}

bool chat_command(chat *c, const char *line) {
    char name[WORD_BYTES];
    const size_t n = strcspn(line, " ");
    (void)snprintf(name, sizeof name, "%.*s", (int)(n < WORD_BYTES ? n : WORD_BYTES - 1), line);
    const char *argument = line + n + strspn(line + n, " ");
    for (int i = 0; i < COMMANDS; i++) {
        const chat_command_spec *spec = &commands[i];
        if (strcmp(spec->name, name) != 0)
            continue;
        if (spec->argument[0] != '[' && (spec->argument[0] == '\0') != (argument[0] == '\0')) {
            complain("usage: %s%s%s", name, spec->argument[0] != '\0' ? " " : "", spec->argument);
            c->failed = true;
            return true;
        }
        return spec->run(c, argument);
    }
    complain_unknown(name);
    c->failed = true;
    return true;
}
