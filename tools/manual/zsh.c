/* SPDX-License-Identifier: Apache-2.0 */
/* Completion for zsh: a function that calls its _arguments. */

#include <string.h>

#include "tools/manual/manual.h"

/* Prints text inside '...' of zsh, where a quote must be written outside of them; `special`
 * characters get backslashes. */
static void print_quoted(FILE *out, const char *text, const char *special) {
    for (const char *c = text; *c != '\0'; c++)
        if (*c == '\'')
            fputs("'\\''", out);
        else
            fprintf(out, "%s%c", strchr(special, *c) != NULL ? "\\" : "", *c);
}

static void print_value(FILE *out, const option_spec *spec) {
    switch (page_value_of(spec)) {
    case PAGE_NO_VALUE:
        break;
    case PAGE_WORDS:
        fprintf(out, ":%s:(%s)", spec->argument, spec->choices);
        break;
    case PAGE_FILE:
        fprintf(out, ":%s:_files", spec->argument);
        break;
    case PAGE_OTHER:
        fputc(':', out);
        print_quoted(out, spec->argument, ":=");
        fprintf(out, ": ");
        break;
    }
}

/* Prints one argument of _arguments per flag: '*--stop=[help]:TEXT: '. */
static void print_option(FILE *out, const option_spec *spec) {
    char flag[WORD_BYTES + 2];
    page_flags flags = page_flags_of(spec);
    while (page_flags_next(&flags, flag)) {
        const bool value = spec->type != OPTION_SWITCH;
        fprintf(out, "            '%s%s%s[", spec->repeats ? "*" : "", flag,
                !value                        ? ""
                : strncmp(flag, "--", 2) == 0 ? "="
                                              : "+");
        print_quoted(out, spec->help, "[]:\\");
        fputc(']', out);
        print_value(out, spec);
        fprintf(out, "' \\\n");
    }
}

static void print_command(FILE *out, command_id command) {
    const command_spec *spec = command_describe(command);
    fprintf(out, "    %s)\n        _arguments -s \\\n", spec->name);
    for (int id = 0; id < OPT_COUNT; id++)
        if (option_applies((option_id)id, command))
            print_option(out, option_describe((option_id)id));
    fprintf(out, "            '*:%s:%s' ;;\n", spec->operands[0] != '\0' ? "file" : "nothing",
            spec->operands[0] != '\0' ? "_files" : " ");
}

void page_print_zsh(FILE *out) {
    fprintf(out, "#compdef tern\n"
                 "# zsh completion for tern, made by `tern completion zsh`\n"
                 "_tern() {\n"
                 "    local -a commands\n"
                 "    commands=(\n"
                 "        'help:help on a command, or on environment'\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const command_spec *spec = command_describe((command_id)i);
        fprintf(out, "        '%s:", spec->name);
        print_quoted(out, spec->summary, ":\\");
        fprintf(out, "'\n");
    }
    fprintf(out, "    )\n"
                 "    if ((CURRENT == 2)) || [[ $words[2] == help ]]; then\n"
                 "        _describe command commands\n"
                 "        return\n"
                 "    fi\n"
                 "    local command=$words[2]\n"
                 "    shift words\n"
                 "    ((CURRENT--))\n"
                 "    case $command in\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        print_command(out, (command_id)i);
    fprintf(out, "    esac\n"
                 "}\n"
                 "_tern \"$@\"\n");
}
