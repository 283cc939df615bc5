/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_PATHS_H
#define TERN_SERVE_HTTP_PATHS_H

/* Paths as clients write them, and the paths of routes that they mean. */

#include <stdbool.h>

/* True for a prefix of paths: "/a" or "/a/b", of letters, digits and the signs - . _ ~ */
bool path_prefix_is_sound(const char *prefix);

/*
 * Returns the path that is meant, which begins in `path` or is static; changes path's bytes. The
 * prefix is left out, and so are slashes at the end, and what Azure's clients put before the paths
 * of OpenAI: /openai, and /openai/deployments/NAME. *deployment becomes NAME, in `path`; NULL:
 * there is none. Returns "" if the path does not begin with the prefix. `prefix` NULL: there is
 * none.
 */
const char *path_meant(char *path, const char *prefix, const char **deployment);

#endif
