/* SPDX-License-Identifier: Apache-2.0 */
/* tern completion: the script that a shell reads to complete tern's commands and options. */

#include <string.h>

#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/manual/manual.h"

int cmd_completion(const options *o) {
    static const struct {
        const char *name;
        void (*print)(FILE *out);
    } shells[] = {{"bash", page_print_bash}, {"zsh", page_print_zsh}, {"fish", page_print_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(o->operands[0], shells[i].name) == 0) {
            shells[i].print(stdout);
            return EXIT_DONE;
        }
    }
    complain("completion is for one of: bash zsh fish, not '%.40s'", o->operands[0]);
    return EXIT_USAGE;
}
