/* SPDX-License-Identifier: Apache-2.0 */
/* Generates docs/environment.md. */

#include <string.h>

#include "tools/cli/environment_names.h"
#include "tools/manual/manual.h"

/* Acceptance criteria that a variable affects, by their numbers in docs/requirements.md. */
static const struct {
    option_id id;
    const char *criteria;
} bears_on[] = {
    {OPT_MODEL, "AC8"},
    {OPT_TEMPERATURE, "AC3, AC6"},
    {OPT_TOP_K, "AC3"},
    {OPT_TOP_P, "AC3"},
    {OPT_SEED, "AC3, AC6"},
    {OPT_THREADS, "AC6"},
    {OPT_DETERMINISTIC, "AC3, AC6"},
    {OPT_STRICT, "AC1, AC9"},
};

static const char *const criteria[] = {
    "AC1: products run on the quantized weights, none is expanded to floats (M111, M112)",
    "AC3: greedy, top-k and top-p with a seed give the same text in every run (M272)",
    "AC6: two whole runs at temperature 1 are identical (M273)",
    "AC8: everything needed is read from the model's metadata (M197)",
    "AC9: continuous integration fails unless real kernels ran (M317)",
};

static const char *criteria_of(const option_spec *spec) {
    for (size_t i = 0; i < sizeof bears_on / sizeof *bears_on; i++)
        if (option_describe(bears_on[i].id) == spec)
            return bears_on[i].criteria;
    return "";
}

/* Prints a table cell in Markdown, where | must be escaped. */
static void print_cell(FILE *out, const char *text) {
    page_print_escaped(out, text, "|");
    fputs(" | ", out);
}

static void print_names(FILE *out, const char *list) {
    char word[WORD_BYTES];
    for (bool first = true; word_next(&list, word); first = false)
        fprintf(out, "%s`%s`", first ? "" : ", ", word);
}

/* Prints the commands that take the option, or another row with the same flag. */
static void print_commands(FILE *out, const char *name) {
    bool first = true;
    for (int command = 0; command < COMMAND_COUNT; command++) {
        option_id id;
        if (option_find((command_id)command, name, strlen(name), &id) &&
            strcmp(option_describe(id)->name, name) == 0) { /* an alias has another variable */
            fprintf(out, "%s%s", first ? "" : ", ", command_describe((command_id)command)->name);
            first = false;
        }
    }
    fputs(" |\n", out);
}

static void print_row(FILE *out, const option_spec *spec, const char *variable) {
    char expected[256];
    option_expectation(spec, expected, sizeof expected);
    fprintf(out, "| `%s` | ", variable);
    print_names(out, spec->variables);
    fprintf(out, " | `--%s` | ", spec->name);
    print_cell(out, expected);
    print_cell(out, option_default(spec) != NULL ? option_default(spec) : "");
    print_cell(out, spec->help);
    print_cell(out, criteria_of(spec));
    print_commands(out, spec->name);
}

/* Prints a heading and a table of the group's variables; nothing if it has none. */
static void print_group(FILE *out, option_group group) {
    const char *title = option_group_title(group);
    bool first = true;
    for (int id = 0; id < OPT_COUNT; id++) {
        const option_spec *spec = option_describe((option_id)id);
        char variable[WORD_BYTES];
        if (spec->group != group || option_is_repeated((option_id)id) ||
            !option_variable(spec, variable, sizeof variable))
            continue;
        if (first)
            fprintf(
                out,
                "\n### %c%s\n"
                "| variable | older names | flag | values | default | meaning | AC | commands |\n"
                "|---|---|---|---|---|---|---|---|\n",
                title[0] - ('a' - 'A'), title + 1);
        first = false;
        print_row(out, spec, variable);
    }
}

/* Prints what the columns for defaults and acceptance criteria mean. */
static void print_criteria(FILE *out) {
    fprintf(out,
            "\nDefaults in these tables are those of the first command named where they differ. "
            "AC: acceptance criteria that the variable\nbears on "
            "([requirements.md](requirements.md)).\n\n");
    for (size_t i = 0; i < sizeof criteria / sizeof *criteria; i++)
        fprintf(out, "- %s\n", criteria[i]);
}

void page_print_environment(FILE *out) {
    fprintf(out,
            "# Environment\n\n"
            "This page is made from the program's table of options (`tern help environment.md`);"
            " a test fails when it is not up to\ndate. `tern help environment` prints the same "
            "for a terminal.\n\n"
            "`TERN_` and a long flag in capitals, with `_` for `-`, sets the flag for every "
            "command that takes it. A flag on the command\nline wins over the environment, the "
            "`TERN_` variable over older names, and of those the first. An empty variable counts"
            " as\nnot set. A value that the flag would refuse is an error (exit status 2), never"
            " ignored. Flags that belong to one call, such\nas `--prompt`, have no variable.\n\n"
            "A name that begins with `TERN_` and is not on this page is an error too, with the "
            "nearest name; what a container platform\nsets for a service called tern "
            "(`TERN_SERVICE_HOST`, `TERN_PORT=tcp://...`) is left alone, and so is what begins "
            "with `TERN_TEST_`,\n`TERN_FUZZ_`, `TERN_FAULTS_` or `TERN_EMULATE`: tests read "
            "those. Names that begin with none of `TERN_`, `BITNET_` and `IE_`\n(`PRECISION`, "
            "`AFFINITY`, `RAYON_NUM_THREADS`) are used by other programs as well: they count with "
            "a value that the flag takes;\nwith another one they are ignored, which `--verbose` "
            "says. What the environment says of precision is a hint,\nalso with `--strict` "
            "([strict.md](strict.md#hints)).\n\n");
    fprintf(out, "## Variables of flags\n");
    for (int group = GROUP_NONE + 1; group < GROUP_COUNT; group++)
        print_group(out, (option_group)group);
    print_criteria(out);
    fprintf(out, "\n## Variables without a flag\n| variable | values | meaning |\n|---|---|---|\n");
    const environment_name *other;
    for (size_t i = 0; (other = environment_other(i)) != NULL; i++)
        fprintf(out, "| `%s` | %s | %s |\n", other->name, other->values, other->meaning);
}
