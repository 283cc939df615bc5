/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_MANUAL_MANUAL_H
#define TERN_TOOLS_MANUAL_MANUAL_H

/*
 * Output generated from the tables of commands and options besides the help texts: the manual page,
 * completion for shells, the page about the environment. It is the same on every machine.
 */

#include <stdio.h>

#include "tools/cli/options.h"

void page_print_man(FILE *out);         /* tern(1), man macros */
void page_print_environment(FILE *out); /* docs/environment.md */
void page_print_bash(FILE *out);
void page_print_zsh(FILE *out);
void page_print_fish(FILE *out);

/* Prints the JSON Schema of a kind of document by its file name, "receipt.schema.json"; false for
 * other names. */
bool page_print_schema(FILE *out, const char *name);

/* ---- for the pages only ---------------------------------------------------------------------- */

/* The kind of an option's value, for completion. */
typedef enum page_value { PAGE_NO_VALUE, PAGE_WORDS, PAGE_FILE, PAGE_OTHER } page_value;
page_value page_value_of(const option_spec *spec);

/* Iterates over all flags of an option, including "--" and "-"; writes the next one to flag[]. */
typedef struct page_flags {
    const option_spec *spec;
    const char *lists[2]; /* names that are left */
    int state;
} page_flags;
page_flags page_flags_of(const option_spec *spec);
bool page_flags_next(page_flags *f, char flag[WORD_BYTES + 2]);

/* Prints text with a backslash before each character of `special`. */
void page_print_escaped(FILE *out, const char *text, const char *special);

#endif
