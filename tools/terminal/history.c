/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "base/folders.h"
#include "tools/terminal/line.h"

bool history_path(char *path, size_t size) {
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    int n = -1;
    if (state != NULL && state[0] == '/') /* the XDG specification ignores relative paths */
        n = snprintf(path, size, "%s/tern/history", state);
    else if (home != NULL && home[0] == '/')
        n = snprintf(path, size, "%s/.local/state/tern/history", home);
    return n > 0 && (size_t)n < size && tern_make_parents(path);
}
