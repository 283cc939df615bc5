/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_HUB_HUB_NAME_H
#define TERN_TOOLS_HUB_HUB_NAME_H

/* Names of models of the Hugging Face Hub: OWNER/NAME[@REVISION][:FILE]. */

#include <stdbool.h>
#include <stddef.h>

enum { HUB_REPO_BYTES = 200, HUB_REVISION_BYTES = 128, HUB_FILE_BYTES = 512 };

typedef struct hub_name {
    char repo[HUB_REPO_BYTES];         /* OWNER/NAME */
    char revision[HUB_REVISION_BYTES]; /* a branch, a tag or a commit; "main" if none was given */
    char file[HUB_FILE_BYTES];         /* a file, or a part of its name; "": none was given */
} hub_name;

/*
 * Reads a name, or an address of the Hub's pages and files: https://huggingface.co/OWNER/NAME,
 * also with /tree/REVISION, /blob/REVISION/FILE or /resolve/REVISION/FILE, and the short
 * hf.co/OWNER/NAME:FILE. False: the text is neither. No part of a valid name leads out of a folder.
 */
bool hub_name_read(const char *text, hub_name *out);

enum { HUB_WHOLE_BYTES = HUB_REPO_BYTES + HUB_REVISION_BYTES + HUB_FILE_BYTES + 2 };

/* Writes a name as hub_name_read takes it. */
void hub_name_write(const hub_name *name, char out[HUB_WHOLE_BYTES]);

/* The part of OWNER/NAME after the slash. */
const char *hub_short_name(const hub_name *name);

/* True if a file's name in a repository is a path below it: no "..", no control characters. */
bool hub_file_is_sound(const char *file);

/* True if a text is 40 lower-case hexadecimal digits. */
bool hub_is_commit(const char *text);

/* True for a GGUF model; of a split model only for the first part. Not for what lies beside models:
 * projectors of images (mmproj) and tables of importance (imatrix). */
bool hub_is_model(const char *file);

/* For a first part "...-00001-of-0000N.gguf": hub_parts returns N, and hub_part writes the name of
 * part i of 1 .. N to out. An unsplit file has one part, itself. */
unsigned hub_parts(const char *file);
void hub_part(const char *file, unsigned i, char out[HUB_FILE_BYTES]);

/*
 * Finds which of files[n] `wanted` means: the file with exactly that name, otherwise all models
 * whose names contain it, ignoring case; "" means all models. Returns how many, and the first of
 * them in *found.
 */
size_t hub_choose(const char *const *files, size_t n, const char *wanted, size_t *found);

#endif
