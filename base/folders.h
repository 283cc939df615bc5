/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_FOLDERS_H
#define TERN_BASE_FOLDERS_H

#include <stdbool.h>

/* Makes the folders that lead to the last part of a path, those that are missing, for their owner
 * alone. The path is changed while it runs. False: errno says why. */
bool tern_make_parents(char *path);

#endif
