/* SPDX-License-Identifier: Apache-2.0 */
/* How a chat goes on from here: /set, /seed and /system. */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_tree/write.h"
#include "tools/cli/output.h"
#include "tools/prompt/prompt.h"
#include "tools/terminal/chat.h"

enum { NAME_BYTES = 64 };

static bool fail(chat *c) {
    c->failed = true;
    return true;
}

/* ---- the system prompt ----------------------------------------------------------------------- */

/* Warns if the chat format has no place for the system message, which is then left out. */
static void tell_dropped(const chat *c) {
    const tern_chat_message messages[] = {c->dialogue.messages[0],
                                          {.role = "user", .content = "?"}};
    const tern_conversation begin = {.messages = messages, .n = 2};
    size_t unseen;
    if (tern_conversation_drops(c->l.tokenizer, &begin, &unseen, NULL) == TERN_OK)
        prompt_tell_unseen(&begin, unseen);
}

bool chat_set_system(chat *c, const char *words) {
    if (!dialogue_set_system(&c->dialogue, words, strlen(words))) {
        complain("no memory for the system prompt");
        return false;
    }
    if (dialogue_system(&c->dialogue) != NULL && c->server == NULL)
        tell_dropped(c);
    return true;
}

bool chat_system(chat *c, const char *argument) {
    if (argument[0] != '\0' && !chat_set_system(c, strcmp(argument, "\"\"") == 0 ? "" : argument))
        return fail(c);
    const char *system = dialogue_system(&c->dialogue);
    if (argument[0] != '\0')
        chat_remark(c, system != NULL ? "the system prompt is set" : "no system prompt");
    else
        remark("  %-18s %s\n", "system", system != NULL ? system : "none");
    return true;
}

/* ---- how tokens are picked ------------------------------------------------------------------- */

void chat_print_settings(const chat *c) {
    if (c->server != NULL) {
        char *fields = json_dump(c->fields, (json_style){0});
        (void)fprintf(stderr, "  %-18s %s\n", "sent", fields != NULL ? fields : "");
        free(fields);
        return;
    }
    sampling_print(&c->options.chosen, stderr);
    (void)fprintf(stderr, "  %-18s %" PRIu64 "\n", "seed", c->options.sampling.seed);
}

/* Reads a decimal number; complains otherwise. */
static bool read_number(const char *command, const char *digits, uint64_t least, uint64_t most,
                        uint64_t *number) {
    char *end = NULL;
    errno = 0;
    *number = isdigit((unsigned char)digits[0]) ? strtoull(digits, &end, 10) : 0;
    if (end != NULL && *end == '\0' && errno == 0 && *number >= least && *number <= most)
        return true;
    complain("%s wants a number from %" PRIu64 " to %" PRIu64 ", not '%.60s'", command, least, most,
             digits);
    return false;
}

bool chat_seed(chat *c, const char *argument) {
    uint64_t number = c->options.sampling.seed;
    if (argument[0] != '\0' && !read_number("/seed", argument, 0, UINT64_MAX, &number))
        return fail(c);
    c->options.sampling.seed = number;
    chat_remark(c, "seed %" PRIu64, number);
    return true;
}

static bool set_length(chat *c, const char *value) {
    uint64_t most;
    const option_spec *spec = option_describe(OPT_CHAT_TOKENS);
    if (!read_number("/set max-tokens", value, 1, spec->max, &most))
        return fail(c);
    c->options.request.max_tokens = most;
    if (c->server != NULL)
        json_object_set_new(c->fields, "max_tokens", json_unsigned(most));
    chat_remark(c, "answers have at most %" PRIu64 " tokens", most);
    return true;
}

static bool set_wrap(chat *c, const char *value) {
    const bool on = strcmp(value, "on") == 0;
    if (!on && strcmp(value, "off") != 0) {
        complain("/set wrap wants on or off, not '%.60s'", value);
        return fail(c);
    }
    c->wrap.on = on && c->terminal && wrap_is_possible(STDOUT_FILENO);
    chat_remark(c, on ? "words are kept whole" : "lines are printed as they come");
    return true;
}

static bool set_sampling(chat *c, const char *name, const char *value) {
    tern_error err = {0};
    sampling_parameter which;
    if (!sampling_set(&c->options.chosen, name, value, &which, &err)) {
        (void)complain_error(&err);
        return fail(c);
    }
    sampling_apply(&c->options.chosen, &c->options.sampling);
    if (c->server != NULL)
        remote_set_sampling(c->fields, which, c->options.chosen.values[which]);
    chat_remark(c, "%s %g", option_describe(sampling_option(which))->name,
                c->options.chosen.values[which]);
    return true;
}

/* Prints what may be set, and how tokens are picked now. */
static void print_names(const chat *c) {
    chat_print_settings(c);
    (void)fprintf(stderr, "names of /set: seed, system, max-tokens, wrap");
    for (int p = 0; p < SAMPLING_COUNT; p++) {
        const option_id id = sampling_option((sampling_parameter)p);
        (void)fprintf(stderr, ", %s", option_describe(id)->name);
    }
    (void)fputc('\n', stderr);
}

bool chat_set(chat *c, const char *argument) {
    static const struct {
        const char *name;
        bool (*set)(chat *c, const char *value);
    } others[] = {{"seed", chat_seed},
                  {"system", chat_system},
                  {"wrap", set_wrap},
                  {"max-tokens", set_length},
                  {"max_tokens", set_length}};
    char name[NAME_BYTES];
    const size_t n = strcspn(argument, " =");
    const char *value = argument + n + strspn(argument + n, " =");
    (void)snprintf(name, sizeof name, "%.*s", (int)(n < NAME_BYTES ? n : NAME_BYTES - 1), argument);
    if (n == 0) {
        print_names(c);
        return true;
    }
    if (*value == '\0') {
        complain("usage: /set NAME VALUE");
        return fail(c);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, name) == 0)
            return others[i].set(c, value);
    return set_sampling(c, name, value);
}
