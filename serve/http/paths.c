/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/paths.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

bool path_prefix_is_sound(const char *prefix) {
    const size_t n = strlen(prefix);
    if (prefix[0] != '/' || prefix[n - 1] == '/' || strstr(prefix, "//") != NULL)
        return false;
    for (const char *c = prefix; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("/-._~", *c) == NULL)
            return false;
    return true;
}

/* Returns what follows a beginning that ends where a part of the path ends; NULL: the path begins
 * otherwise. */
static char *behind(char *path, const char *beginning) {
    const size_t n = strlen(beginning);
    return strncmp(path, beginning, n) == 0 && (path[n] == '/' || path[n] == '\0') ? path + n
                                                                                   : NULL;
}

static void cut_slashes(char *path) {
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
}

/* Returns the path after the name of a deployment, which becomes a text of its own: its slash is
 * replaced by its end, and the path after it moves by a byte. */
static char *take_deployment(char *path, const char **deployment) {
    char *end = strchr(path, '/');
    if (end == NULL || end == path)
        return NULL;
    *deployment = memmove(path - 1, path, (size_t)(end - path));
    end[-1] = '\0';
    return end;
}

const char *path_meant(char *path, const char *prefix, const char **deployment) {
    *deployment = NULL;
    if (prefix != NULL && (path = behind(path, prefix)) == NULL)
        return "";
    cut_slashes(path);
    char *azure = behind(path, "/openai"), *named = NULL;
    if (azure != NULL && strncmp(azure, "/deployments/", 13) == 0)
        named = take_deployment(azure + 13, deployment);
    path = named != NULL ? named : azure != NULL && *azure != '\0' ? azure : path;
    return *path != '\0' ? path : "/";
}
