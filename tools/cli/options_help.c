/* SPDX-License-Identifier: Apache-2.0 */
/* Help texts, generated from the tables. */

#include <string.h>

#include "tools/cli/near_word.h"
#include "tools/cli/options.h"

enum {
    COLUMNS = 98,
    INDENT = 30,
    IGNORED_INDENT = 6,
    GROUPED_FROM = 20 /* number of options from which on they are grouped */
};

/* Prints words from column `indent` on, breaking lines at COLUMNS and indenting new ones. */
static void print_wrapped(FILE *out, const char *text, int indent) {
    int at = indent;
    while (*text != '\0') {
        const int n = (int)strcspn(text, " ");
        if (at + 1 + n > COLUMNS) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', out);
            at++;
        }
        fprintf(out, "%.*s", n, text);
        at += n;
        text += n + (int)strspn(text + n, " ");
    }
    fputc('\n', out);
}

/* Prints the left column of an option, e.g. "  -n, --max-tokens N", padded to INDENT, or on its own
 * line if it is longer. */
static void print_flag(FILE *out, const option_spec *spec) {
    int at = spec->letter != 0 ? fprintf(out, "  -%c, --%s", spec->letter, spec->name)
                               : fprintf(out, "      --%s", spec->name);
    if (spec->argument != NULL)
        at += fprintf(out, " %s", spec->argument);
    if (at >= INDENT)
        at = fprintf(out, "\n") - 1;
    fprintf(out, "%*s", INDENT - at, "");
}

const char *option_default(const option_spec *spec) {
    return spec->shown != NULL ? spec->shown : spec->fallback;
}

size_t option_help(const option_spec *spec, char *text, size_t size) {
    const bool chooses = spec->type == OPTION_CHOICE;
    const char *value = option_default(spec);
    const int n =
        snprintf(text, size, "%s%s%s%s%s%s%s", spec->help, chooses ? ": " : "",
                 chooses ? spec->choices : "", spec->repeats ? "; may be repeated" : "",
                 value != NULL ? " [" : "", value != NULL ? value : "", value != NULL ? "]" : "");
    return (size_t)n < size ? (size_t)n : size - 1;
}

const char *option_group_title(option_group group) {
    static const char *const titles[GROUP_COUNT] = {
#define TITLE(id, title) [GROUP_##id] = (title),
        OPTION_GROUP_LIST(TITLE)
#undef TITLE
    };
    return titles[group];
}

static void print_option(FILE *out, const option_spec *spec) {
    char text[512];
    size_t n = option_help(spec, text, sizeof text);
    const char *list = spec->aliases;
    char word[WORD_BYTES];
    for (bool first = true; word_next(&list, word); first = false)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s--%s", first ? "; also " : ", ", word);
    print_flag(out, spec);
    print_wrapped(out, text, INDENT);
}

/* Prints the flags that have no effect, one after the other. */
static void print_ignored(FILE *out, command_id command) {
    char text[1024] = "";
    size_t n = 0;
    for (int id = 0; id < OPT_COUNT; id++) {
        const option_spec *spec = option_describe((option_id)id);
        if (option_applies((option_id)id, command) && option_is_idle(spec) && n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "--%s ", spec->name);
    }
    if (n == 0)
        return;
    fprintf(out,
            "\naccepted from scripts for other programs, with a remark and without effect:\n%*s",
            IGNORED_INDENT, "");
    print_wrapped(out, text, IGNORED_INDENT);
}

size_t help_places(const command_spec *spec, char *text, size_t size) {
    const char *names = spec->operands;
    char name[WORD_BYTES];
    size_t n = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < spec->n_places && n < size && word_next(&names, name); i++) {
        n += (size_t)snprintf(text + n, size - n, "%s%s is --%s", i == 0 ? "" : ", ", name,
                              option_describe(spec->places[i])->name);
    }
    if (n > 0 && n < size)
        n += (size_t)snprintf(text + n, size - n, ", where no flag says it.");
    return n;
}

static bool is_listed(option_id id, command_id command) {
    return option_applies(id, command) && !option_is_idle(option_describe(id));
}

static unsigned count_listed(command_id command) {
    unsigned n = 0;
    for (int id = 0; id < OPT_COUNT; id++)
        n += is_listed((option_id)id, command);
    return n;
}

static bool is_often_used(option_id id, command_id command) {
    return (option_describe(id)->often >> command & 1U) != 0;
}

static void print_often_used(FILE *out, command_id command) {
    fprintf(out, "\nmost used:\n");
    for (int id = 0; id < OPT_COUNT; id++)
        if (is_listed((option_id)id, command) && is_often_used((option_id)id, command))
            print_option(out, option_describe((option_id)id));
}

/* Prints the options of a group except the most used ones. */
static void print_group(FILE *out, command_id command, option_group group) {
    bool first = true;
    for (int id = 0; id < OPT_COUNT; id++) {
        const option_spec *spec = option_describe((option_id)id);
        if (spec->group != group || !is_listed((option_id)id, command) ||
            is_often_used((option_id)id, command))
            continue;
        if (first)
            fprintf(out, "\n%s:\n", option_group_title(group));
        first = false;
        print_option(out, spec);
    }
}

/* Prints few options as one list; many as the most used ones first, then the others by group. */
static void print_options(FILE *out, command_id command) {
    if (count_listed(command) >= GROUPED_FROM) {
        print_often_used(out, command);
        for (int group = GROUP_NONE + 1; group < GROUP_COUNT; group++)
            print_group(out, command, (option_group)group);
        return;
    }
    fprintf(out, "\noptions:\n");
    for (int id = 0; id < OPT_COUNT; id++)
        if (is_listed((option_id)id, command))
            print_option(out, option_describe((option_id)id));
}

void help_print_command(FILE *out, command_id command) {
    const command_spec *spec = command_describe(command);
    fprintf(out, "usage: tern %s [options]%s%s\n\n%s\n", spec->name,
            spec->operands[0] != '\0' ? " " : "", spec->operands, spec->summary);
    if (spec->details[0] != '\0')
        fprintf(out, "\n%s", spec->details);
    if (spec->alias != NULL)
        fprintf(out, "`tern %s` is the same command.\n", spec->alias);
    char places[128];
    if (help_places(spec, places, sizeof places) > 0)
        fprintf(out, "\n%s\n", places);
    print_options(out, command);
    print_ignored(out, command);
    fprintf(out, "\nexamples:\n%s", spec->examples);
    fprintf(out, "\nFlags can also be set by variables, see `tern help environment`.\n");
}

void help_print_program(FILE *out) {
    fprintf(out,
            "usage: tern COMMAND [options]\n\n"
            "Runs ternary (BitNet b1.58) and other low-bit language models on this machine.\n\n"
            "commands:\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const command_spec *spec = command_describe((command_id)i);
        fprintf(out, "  %-18s %s\n", spec->name, spec->summary);
    }
    fprintf(out,
            "  %-18s help on a command (`tern help run`), on `environment`, as `man` page\n\n"
            "examples:\n"
            "  tern run -p 'Once upon a time'\n"
            "  tern run model.gguf 'Once upon a time'\n"
            "  tern chat model.gguf\n"
            "  tern inspect model.gguf\n\n"
            "Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.\n",
            "help");
}
