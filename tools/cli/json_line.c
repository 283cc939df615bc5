/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/json_line.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "tools/cli/output.h"

int json_print(json_t *root) {
    char *line = json_memory_failed() ? NULL : json_dump(root, (json_style){.indent = 0});
    json_decref(root);
    if (line == NULL) {
        complain("no memory for JSON");
        return EXIT_FAILED;
    }
    /* Flushed at once, because a later failure must not leave half a line. */
    (void)(out_write(line, strlen(line)) && out_write("\n", 1) && out_flush());
    free(line);
    return EXIT_DONE;
}
