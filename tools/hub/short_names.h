/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_HUB_SHORT_NAMES_H
#define TERN_TOOLS_HUB_SHORT_NAMES_H

/*
 * Short names of models, such as "qwen3-0.6b": a small table, and before it a file of the user's,
 * tern/models in $XDG_CONFIG_HOME or ~/.config, with a line for each name:
 *
 *     NAME = OWNER/NAME:FILE      # of the Hugging Face Hub, as tern pull takes it
 *     NAME = /path/to/model.gguf  # a file; ~/ is the home folder
 */

#include <limits.h>
#include <stdbool.h>

#include "tools/hub/hub_name.h"

enum { SHORT_NAME_BYTES = 64 };

typedef struct short_name {
    char name[SHORT_NAME_BYTES];
    hub_name hub;        /* repo "": it stands for a file */
    char path[PATH_MAX]; /* the file; of the table's names, where get-model puts it, or "" */
    bool is_users;
} short_name;

/* Finds a name. Complains about lines of the user's file that are not understood, once. */
bool short_name_find(const char *text, short_name *out);

/* Calls `show` for each name: the user's, then those of the table that they do not replace. */
void short_names_each(void (*show)(void *user, const short_name *name), void *user);

/* The path of the model that a name stands for, if it is here; else false. Complains if there are
 * several. */
bool short_name_path(const short_name *name, char path[PATH_MAX]);

#endif
