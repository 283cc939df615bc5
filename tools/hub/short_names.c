/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/hub/short_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/in_file.h"
#include "tools/cli/output.h"
#include "tools/hub/hub_cache.h"

enum { MOST_BYTES = 1 << 20 }; /* of the user's file */

static const struct {
    const char *name, *hub;
    const char
        *fetched; /* the file that scripts/get-model makes; NULL: it does not know the name */
} table[] = {
    {"bitnet-2b", "microsoft/bitnet-b1.58-2B-4T-gguf", NULL},
    {"gemma3-270m", "ggml-org/gemma-3-270m-it-GGUF:Q8_0", "gemma-3-270m-q4_k_m.gguf"},
    {"gemma3-1b", "ggml-org/gemma-3-1b-it-GGUF:Q4_K_M", NULL},
    {"llama3.2-1b", "bartowski/Llama-3.2-1B-Instruct-GGUF:Instruct-Q4_K_M", NULL},
    {"llama3.2-3b", "bartowski/Llama-3.2-3B-Instruct-GGUF:Instruct-Q4_K_M", NULL},
    {"qwen3-0.6b", "Qwen/Qwen3-0.6B-GGUF", NULL},
    {"qwen3-1.7b", "Qwen/Qwen3-1.7B-GGUF", NULL},
    {"qwen3-4b", "Qwen/Qwen3-4B-GGUF:Q4_K_M", NULL},
    {"qwen3-8b", "Qwen/Qwen3-8B-GGUF:Q4_K_M", NULL},
    {"smollm2", "bartowski/SmolLM2-135M-Instruct-GGUF:Instruct-Q8_0",
     "SmolLM2-135M-Instruct.Q4_1.gguf"},
    {"smollm2-360m", "HuggingFaceTB/SmolLM2-360M-Instruct-GGUF", NULL},
    {"smollm2-1.7b", "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF", NULL},
};

/* ---- folders --------------------------------------------------------------------------------- */

/* Writes $first/rest, or $HOME/second/rest if that variable is not set; false: neither is. */
static bool place_of(const char *first, const char *second, const char *rest, char out[PATH_MAX]) {
    const char *folder = hub_variable(first), *home = hub_variable("HOME");
    if (folder == NULL && home == NULL)
        return false;
    const int n = folder != NULL ? snprintf(out, PATH_MAX, "%s/%s", folder, rest)
                                 : snprintf(out, PATH_MAX, "%s/%s/%s", home, second, rest);
    return n > 0 && n < PATH_MAX;
}

/* Writes the place where get-model keeps a file; "" if no variable says where. */
static void fetched_path(const char *file, char out[PATH_MAX]) {
    char rest[256];
    const char *cache = hub_variable("TERN_CACHE");
    (void)snprintf(rest, sizeof rest, "%smodels/%s", cache != NULL ? "" : "tern/", file);
    if (!place_of(cache != NULL ? "TERN_CACHE" : "XDG_CACHE_HOME", ".cache", rest, out))
        out[0] = '\0';
}

/* ---- names ----------------------------------------------------------------------------------- */

static void from_table(size_t i, short_name *out) {
    *out = (short_name){.is_users = false};
    (void)snprintf(out->name, sizeof out->name, "%s", table[i].name);
    (void)hub_name_read(table[i].hub, &out->hub);
    if (table[i].fetched != NULL)
        fetched_path(table[i].fetched, out->path);
}

/* Cuts blanks off both ends of a text. */
static char *trim(char *text) {
    text += strspn(text, " \t\r");
    for (size_t n = strlen(text); n > 0 && strchr(" \t\r", text[n - 1]) != NULL; n--)
        text[n - 1] = '\0';
    return text;
}

/* Reads "NAME = VALUE"; false: it is not of this form. */
static bool read_line(char *line, short_name *out) {
    char *sign = strchr(line, '=');
    if (sign == NULL)
        return false;
    *sign = '\0';
    const char *name = trim(line), *value = trim(sign + 1), *home = hub_variable("HOME");
    *out = (short_name){.is_users = true};
    if (name[0] == '\0' || strlen(name) >= sizeof out->name || strchr(name, '/') != NULL)
        return false;
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    if (value[0] == '/')
        return snprintf(out->path, sizeof out->path, "%s", value) < PATH_MAX;
    if (strncmp(value, "~/", 2) == 0 && home != NULL)
        return snprintf(out->path, sizeof out->path, "%s%s", home, value + 1) < PATH_MAX;
    return hub_name_read(value, &out->hub);
}

typedef void visit(void *user, const short_name *name);

/* Calls `show` for each name of the user's file. */
static void each_of_user(visit *show, void *user) {
    char path[PATH_MAX], *bytes, *rest = NULL;
    size_t size;
    unsigned number = 0;
    tern_error err = {0};
    short_name name;
    if (!place_of("XDG_CONFIG_HOME", ".config", "tern/models", path) || access(path, F_OK) != 0)
        return;
    if (tern_in_file_read(path, MOST_BYTES, &bytes, &size, &err) != TERN_OK) {
        (void)complain_error(&err);
        return;
    }
    for (char *line = bytes, *end; line != NULL; line = end != NULL ? end + 1 : rest) {
        end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        number++;
        line[strcspn(line, "#")] = '\0';
        line = trim(line);
        if (line[0] != '\0' && read_line(line, &name))
            show(user, &name);
        else if (line[0] != '\0')
            complain("%s:%u: it wants NAME = OWNER/NAME[:FILE], or NAME = /PATH", path, number);
    }
    free(bytes);
}

typedef struct search {
    const char *text;
    short_name *out;
    bool found;
} search;

static void compare(void *user, const short_name *name) {
    search *s = user;
    if (!s->found && strcmp(name->name, s->text) == 0) {
        *s->out = *name;
        s->found = true;
    }
}

bool short_name_find(const char *text, short_name *out) {
    search s = {.text = text, .out = out};
    if (strchr(text, '/') != NULL)
        return false;
    each_of_user(compare, &s);
    for (size_t i = 0; i < sizeof table / sizeof *table && !s.found; i++) {
        if (strcmp(table[i].name, text) == 0) {
            from_table(i, out);
            s.found = true;
        }
    }
    return s.found;
}

void short_names_each(visit *show, void *user) {
    short_name name, users;
    each_of_user(show, user);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        search s = {.text = table[i].name, .out = &users};
        each_of_user(compare, &s);
        if (!s.found) {
            from_table(i, &name);
            show(user, &name);
        }
    }
}

bool short_name_path(const short_name *name, char path[PATH_MAX]) {
    tern_error err = {0};
    if (name->path[0] != '\0' && (name->hub.repo[0] == '\0' || access(name->path, F_OK) == 0)) {
        memcpy(path, name->path, PATH_MAX);
        return access(path, F_OK) == 0;
    }
    if (name->hub.repo[0] == '\0')
        return false;
    const tern_status status = hub_cache_find(&name->hub, path, &err);
    if (status == TERN_ERR_NAME)
        (void)complain_error(&err);
    return status == TERN_OK;
}
