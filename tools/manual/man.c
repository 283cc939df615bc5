/* SPDX-License-Identifier: Apache-2.0 */
/* tern(1), in the man macros that both groff and mandoc read. */

#include <string.h>

#include "tern/tern.h"
#include "tools/manual/manual.h"

enum { COLUMNS = 60 }; /* of a source line before escaping; 80 is only a matter of style */

#define MANUAL_DATE "2026-11-27" /* date of the last change of this page's form */

/* Prints text so that roff takes no character as a command and "-" can be copied. */
static void print_text(FILE *out, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else if ((text[i] == '.' || text[i] == '\'') && i == 0)
            fprintf(out, "\\&%c", text[i]);
        else if (text[i] == '\'')
            fputs("\\(aq", out);
        else if (text[i] == '`')
            fputs("\\(ga", out);
        else
            fputc(text[i], out);
}

/* Prints words on lines of at most COLUMNS; a line end counts as a space. */
static void print_words(FILE *out, const char *text) {
    size_t at = 0;
    text += strspn(text, " \n");
    while (*text != '\0') {
        const size_t n = strcspn(text, " \n");
        if (at > 0 && at + 1 + n > COLUMNS) {
            fputc('\n', out);
            at = 0;
        } else if (at > 0) {
            fputc(' ', out);
            at++;
        }
        print_text(out, text, n);
        at += n;
        text += n;
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}

/* Prints lines unchanged, without their common indent. */
static void print_lines(FILE *out, const char *text) {
    fputs(".PP\n.nf\n.RS 4\n", out);
    while (*text != '\0') {
        const size_t n = strcspn(text, "\n");
        const size_t indent = strspn(text, " ");
        print_text(out, text + indent, n - indent);
        fputc('\n', out);
        text += n + (text[n] == '\n');
    }
    fputs(".RE\n.fi\n", out);
}

static void print_bold(FILE *out, const char *text) {
    fputs("\\fB", out);
    print_text(out, text, strlen(text));
    fputs("\\fR", out);
}

static void print_command(FILE *out, command_id command) {
    const command_spec *spec = command_describe(command);
    fprintf(out, ".SS tern %s%s%s\n", spec->name, spec->operands[0] != '\0' ? " " : "",
            spec->operands);
    char text[256];
    (void)snprintf(text, sizeof text, "%c%s.", spec->summary[0] - ('a' - 'A'), spec->summary + 1);
    print_words(out, text);
    if (spec->details[0] != '\0') {
        fputs(".PP\n", out);
        print_words(out, spec->details);
    }
    if (help_places(spec, text, sizeof text) > 0) {
        fputs(".PP\n", out);
        print_words(out, text);
    }
    print_lines(out, spec->examples);
    fputs(".PP\nOptions:\n", out);
    char all[4096] = "";
    size_t n = 0;
    for (int id = 0; id < OPT_COUNT && n < sizeof all; id++) {
        const option_spec *option = option_describe((option_id)id);
        if (option_applies((option_id)id, command) && !option_is_idle(option)) {
            n += (size_t)snprintf(all + n, sizeof all - n, "%s--%s", n > 0 ? ", " : "",
                                  option->name);
        }
    }
    print_words(out, all);
}

static void print_option(FILE *out, const option_spec *spec) {
    char flag[WORD_BYTES + 2];
    page_flags flags = page_flags_of(spec);
    fputs(".TP\n", out);
    for (bool first = true; page_flags_next(&flags, flag); first = false) {
        fputs(first ? "" : ", ", out);
        print_bold(out, flag);
    }
    if (spec->argument != NULL)
        fprintf(out, " \\fI%s\\fR", spec->argument);
    char text[1024] = "\n";
    const size_t n = 1 + option_help(spec, text + 1, sizeof text - 1);
    if (option_is_idle(spec))
        (void)snprintf(text + n, sizeof text - n, "; without effect: %s", spec->remark);
    fputc('\n', out);
    print_words(out, text);
}

/* Prints a group's options under its heading, which begins with a capital. */
static void print_group(FILE *out, option_group group) {
    const char *title = option_group_title(group);
    fprintf(out, ".SS %c%s\n", title[0] - ('a' - 'A'), title + 1);
    if (group == GROUP_OTHERS)
        print_words(out, "These are accepted with a remark.");
    for (int id = 0; id < OPT_COUNT; id++)
        if (option_describe((option_id)id)->group == group)
            print_option(out, option_describe((option_id)id));
}

static void print_environment(FILE *out) {
    fputs(".SH ENVIRONMENT\n", out);
    print_words(out, "TERN_ and a long flag in capitals, with _ for -, sets the flag for every "
                     "command that takes it. A flag wins over the environment, the TERN_ variable "
                     "over the older names after it; an empty variable counts as not set; a value "
                     "that the flag would refuse is an error.");
    for (int id = 0; id < OPT_COUNT; id++) {
        const option_spec *spec = option_describe((option_id)id);
        char name[WORD_BYTES];
        if (option_is_repeated((option_id)id) || !option_variable(spec, name, sizeof name))
            continue;
        fputs(".TP\n", out);
        print_bold(out, name);
        const char *list = spec->variables;
        char older[WORD_BYTES];
        while (word_next(&list, older)) {
            fputs(", ", out);
            print_bold(out, older);
        }
        char text[512];
        char expected[256];
        option_expectation(spec, expected, sizeof expected);
        (void)snprintf(text, sizeof text, "\n--%s: %s", spec->name, expected);
        fputc('\n', out);
        print_words(out, text);
    }
    fputs(".TP\n\\fBNO_COLOR\\fR\nremarks of tern chat are not dim\n"
          ".TP\n\\fBXDG_STATE_HOME\\fR\nwhere tern chat keeps its history\n",
          out);
}

void page_print_man(FILE *out) {
    fprintf(out,
            ".\\\" made from the program's tables by `tern help man`\n"
            ".TH TERN 1 \"" MANUAL_DATE "\" \"tern %s\" \"User Commands\"\n"
            ".SH NAME\ntern \\- run ternary and other low\\-bit language models\n"
            ".SH SYNOPSIS\n\\fBtern\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n"
            ".br\n\\fBtern help\\fR [\\fICOMMAND\\fR|environment]\n"
            ".br\n\\fBtern \\-\\-version\\fR\n"
            ".SH DESCRIPTION\n",
            tern_version());
    print_words(out, "tern runs ternary (BitNet b1.58) and other low-bit language models from GGUF "
                     "files. The same model, prompt and seed give the same answer, bit for bit, on "
                     "every instruction set and for every number of threads.");
    fputs(".PP\n", out);
    print_words(out,
                "Options stand anywhere after the command. --name value and --name=value mean "
                "the same. -- ends the options. When an option is given twice the last one "
                "counts, except for those that may be repeated. Results go to standard output, "
                "everything else to standard error.");
    fputs(".SH COMMANDS\n", out);
    for (int i = 0; i < COMMAND_COUNT; i++)
        print_command(out, (command_id)i);
    fputs(".SH OPTIONS\n", out);
    print_words(out, "Not every command takes every option; a flag that is here twice means "
                     "something else for each command. Defaults are in brackets.");
    for (int group = GROUP_NONE + 1; group < GROUP_COUNT; group++)
        print_group(out, (option_group)group);
    print_environment(out);
    fputs(".SH FILES\n.TP\n\\fB~/.local/state/tern/history\\fR\n"
          "lines typed in tern chat, readable by their owner alone\n"
          ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 130 interrupted.\n",
          out);
}
