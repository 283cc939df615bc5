/* SPDX-License-Identifier: Apache-2.0 */
/* Completion for bash. */

#include "tools/manual/manual.h"

/* Prints the beginning of a case, "  --kv)": all flags of an option as one pattern. */
static void print_case(FILE *out, const option_spec *spec) {
    char flag[WORD_BYTES + 2];
    page_flags flags = page_flags_of(spec);
    fprintf(out, "        ");
    for (bool first = true; page_flags_next(&flags, flag); first = false)
        fprintf(out, "%s%s", first ? "" : "|", flag);
    switch (page_value_of(spec)) {
    case PAGE_WORDS:
        fprintf(out, ") words='%s' ;;\n", spec->choices);
        break;
    case PAGE_FILE:
        fprintf(out, ") files=1 ;;\n");
        break;
    case PAGE_NO_VALUE:
    case PAGE_OTHER:
        fprintf(out, ") return ;;\n");
        break;
    }
}

static void print_command(FILE *out, command_id command) {
    char flag[WORD_BYTES + 2];
    fprintf(out, "    %s)\n        words='", command_describe(command)->name);
    bool first = true;
    for (int id = 0; id < OPT_COUNT; id++) {
        if (option_applies((option_id)id, command)) {
            page_flags flags = page_flags_of(option_describe((option_id)id));
            for (; page_flags_next(&flags, flag); first = false)
                fprintf(out, "%s%s", first ? "" : " ", flag);
        }
    }
    fprintf(out, "'\n        case $before in\n");
    for (int id = 0; id < OPT_COUNT; id++) {
        const option_spec *spec = option_describe((option_id)id);
        if (option_applies((option_id)id, command) && spec->type != OPTION_SWITCH)
            print_case(out, spec);
    }
    fprintf(out, "        *) [[ $word == -* ]] || files=1 ;;\n        esac ;;\n");
}

void page_print_bash(FILE *out) {
    fprintf(out, "# bash completion for tern, made by `tern completion bash`\n"
                 "_tern() {\n"
                 "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
                 "    local words='' files=''\n"
                 "    COMPREPLY=()\n"
                 "    if [[ $word == = ]]; then\n"
                 "        word=''\n"
                 "    elif [[ $before == = ]]; then\n"
                 "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
                 "    fi\n"
                 "    if ((COMP_CWORD == 1)); then\n"
                 "        set -- first\n"
                 "    else\n"
                 "        set -- \"${COMP_WORDS[1]}\"\n"
                 "    fi\n"
                 "    case $1 in\n"
                 "    first|help)\n"
                 "        words='help");
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, " %s", command_describe((command_id)i)->name);
    fprintf(out, " environment man --version' ;;\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        print_command(out, (command_id)i);
    fprintf(out, "    esac\n"
                 "    if [[ -n $files ]]; then\n"
                 "        compopt -o filenames 2>/dev/null\n"
                 "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
                 "    else\n"
                 "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
                 "    fi\n"
                 "}\n"
                 "complete -F _tern tern\n");
}
