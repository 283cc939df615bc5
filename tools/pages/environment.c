/* SPDX-License-Identifier: Apache-2.0 */
/* docs/environment.md. */

#include <string.h>

#include "tools/pages/pages.h"

/* Variables that no flag stands behind. */
static const struct {
    const char *name, *values, *meaning;
} others[] = {
    {"NO_COLOR", "any text", "`tern chat`: remarks are not dim"},
    {"XDG_STATE_HOME", "a folder",
     "`tern chat`: its history is in `tern/history` there, without it "
     "in `~/.local/state/tern/history`"},
    {"XDG_CACHE_HOME", "a folder",
     "without `TERN_CACHE`, whose folder is also that of `tools/get-model` and the tests (models are "
     "in `models` there): `tern` in this folder; without both `~/.cache/tern`"},
    {"TERN_CUDA_MODULE", "a file", "the CUDA module, in place of the one beside the library"},
    {"TERN_TEST_SMOLLM2", "a file", "the SmolLM2 model of the tests"},
    {"RUNS", "a number", "`make bench-model`: rounds of every measurement"},
    {"PROMPTS", "a file", "`make bench-model`: prompts to answer, one a line"},
};

/* Names that other programs know for things that tern does not have. */
static const struct {
    const char *names, *what;
} not_taken[] = {
    {"IE_HOT_REPLICATE IE_HOT_REPL_LIMIT_MB", "copies of weights for each socket"},
    {"IE_PREFETCH_DISTANCE IE_NT_RATIO", "how memory is read"},
    {"IE_DEDUP IE_DEDUP_STRICT IE_DEDUP_POLICY IE_DEDUP_CACHE_MB IE_DEDUP_DEBUG",
     "sharing equal parts of weights"},
};

/* Markdown of a cell: | would end it. */
static void print_cell(FILE *out, const char *text) {
    page_print_escaped(out, text, "|");
    fputs(" | ", out);
}

static void print_names(FILE *out, const char *list) {
    char word[WORD_BYTES];
    for (bool first = true; word_next(&list, word); first = false) {
        fprintf(out, "%s`%s`", first ? "" : ", ", word);
    }
}

/* Commands that take the option, or another row with the same flag. */
static void print_commands(FILE *out, const char *name) {
    bool first = true;
    for (int command = 0; command < COMMAND_COUNT; command++) {
        option_id id;
        if (option_find((command_id)command, name, strlen(name), &id) &&
            strcmp(option_describe(id)->name, name) == 0) { /* no alias: its variable differs */
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
    print_cell(out, spec->fallback != NULL ? spec->fallback : "");
    print_cell(out, spec->remark != NULL ? spec->remark : spec->help);
    print_commands(out, spec->name);
}

static void print_table(FILE *out, bool effective) {
    fprintf(out,
            "| variable | older names | flag | values | default | %s | commands |\n"
            "|---|---|---|---|---|---|---|\n",
            effective ? "meaning" : "why it has no effect");
    for (int id = 0; id < OPT_COUNT; id++) {
        const option_spec *spec = option_describe((option_id)id);
        char variable[WORD_BYTES];
        if ((spec->remark == NULL) == effective && !option_is_repeated((option_id)id) &&
            option_variable(spec, variable, sizeof variable)) {
            print_row(out, spec, variable);
        }
    }
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
            " ignored. Flags that belong to one call, such\nas `--prompt`, have no variable.\n\n");
    print_table(out, true);
    fprintf(out,
            "\nDefaults in this table are those of the first command named where they differ.\n"
            "\n## Accepted without effect\n"
            "Variables of other programs: values are checked, and a remark on standard error "
            "says why nothing changes.\n\n");
    print_table(out, false);
    fprintf(out, "\n## Variables without a flag\n| variable | values | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        fprintf(out, "| `%s` | %s | %s |\n", others[i].name, others[i].values, others[i].meaning);
    }
    fprintf(out, "\n## Older names that are not taken\n"
                 "These stand for things that tern does not have; they are not read.\n\n"
                 "| names | what they stand for |\n|---|---|\n");
    for (size_t i = 0; i < sizeof not_taken / sizeof *not_taken; i++) {
        fputs("| ", out);
        print_names(out, not_taken[i].names);
        fprintf(out, " | %s |\n", not_taken[i].what);
    }
}
