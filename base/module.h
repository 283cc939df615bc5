/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_MODULE_H
#define TERN_BASE_MODULE_H

/* Finds modules: files that are opened when what they do is asked for. */

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes the path of a module: what the environment variable `variable` says where it is set, else
 * the first of the places that exists. Places are relative to the file that holds this code: beside
 * a library, and beside the program in a build; where an installed program has its libraries. So
 * the tree may be moved. False: there is none.
 */
bool tern_module_find(const char *variable, const char *const *places, size_t n, char *path,
                      size_t size);

#endif
