/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prompt/prompt_cache.h"

#include <errno.h>
#include <unistd.h>

#include "tools/cli/output.h"

int prompt_cache_restore(const options *o, const loaded *l) {
    const char *path = options_text(o, OPT_PROMPT_CACHE);
    const bool read_only = options_switch(o, OPT_PROMPT_CACHE_RO);
    if (path == NULL && read_only) {
        complain("--prompt-cache-ro needs --prompt-cache FILE");
        return EXIT_USAGE;
    }
    if (path == NULL || (!read_only && access(path, F_OK) != 0 && errno == ENOENT))
        return EXIT_DONE;
    tern_error err = {0};
    return tern_session_restore(l->session, path, &err) == TERN_OK ? EXIT_DONE
                                                                   : complain_error(&err);
}

int prompt_cache_save(const options *o, const loaded *l) {
    const char *path = options_text(o, OPT_PROMPT_CACHE);
    tern_error err = {0};
    if (path == NULL || options_switch(o, OPT_PROMPT_CACHE_RO) ||
        tern_session_save(l->session, path, &err) == TERN_OK)
        return EXIT_DONE;
    return complain_error(&err);
}
