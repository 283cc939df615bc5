/* SPDX-License-Identifier: Apache-2.0 */
/* Completion for fish. */

#include <string.h>

#include "tools/manual/manual.h"

static void print_quoted(FILE *out, const char *text) {
    fputc('\'', out);
    page_print_escaped(out, text, "'\\");
    fputc('\'', out);
}

static void print_flags(FILE *out, const option_spec *spec) {
    char flag[WORD_BYTES + 2];
    page_flags flags = page_flags_of(spec);
    while (page_flags_next(&flags, flag))
        if (strncmp(flag, "--", 2) == 0)
            fprintf(out, " -l %s", flag + 2);
        else
            fprintf(out, " -%c %s", strlen(flag) == 2 ? 's' : 'o', flag + 1);
}

static void print_option(FILE *out, command_id command, const option_spec *spec) {
    fprintf(out, "complete -c tern -n '__fish_seen_subcommand_from %s'",
            command_describe(command)->name);
    print_flags(out, spec);
    switch (page_value_of(spec)) {
    case PAGE_NO_VALUE:
        break;
    case PAGE_WORDS:
        fprintf(out, " -x -a '%s'", spec->choices);
        break;
    case PAGE_FILE:
        fprintf(out, " -r -F");
        break;
    case PAGE_OTHER:
        fprintf(out, " -x");
        break;
    }
    fprintf(out, " -d ");
    print_quoted(out, spec->help);
    fputc('\n', out);
}

static void print_word(FILE *out, const char *condition, const char *name, const char *summary) {
    fprintf(out, "complete -c tern -f -n %s -a %s -d ", condition, name);
    print_quoted(out, summary);
    fputc('\n', out);
}

void page_print_fish(FILE *out) {
    fprintf(out, "# fish completion for tern, made by `tern completion fish`\n");
    print_word(out, "__fish_use_subcommand", "help", "help on a command, or on environment");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const command_spec *spec = command_describe((command_id)i);
        print_word(out, "__fish_use_subcommand", spec->name, spec->summary);
        print_word(out, "'__fish_seen_subcommand_from help'", spec->name, spec->summary);
    }
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (command_describe((command_id)i)->operands[0] == '\0') {
            fprintf(out, "complete -c tern -f -n '__fish_seen_subcommand_from %s'\n",
                    command_describe((command_id)i)->name);
        }
        for (int id = 0; id < OPT_COUNT; id++)
            if (option_applies((option_id)id, (command_id)i))
                print_option(out, (command_id)i, option_describe((option_id)id));
    }
}
