/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_PAGE_FILES_H
#define TERN_SERVE_PAGE_FILES_H

/*
 * The files of the page at /, as they lie in serve/page: cmake/PageFiles.cmake makes the table of
 * them when tern is built. Whoever serves one says what kind of file it is, and its tag, by which a
 * browser asks whether it has changed.
 */

#include <stddef.h>

typedef struct page_file {
    const char *name; /* as "page.css"; "page.html" is the page itself */
    const char *type; /* as "text/css; charset=utf-8" */
    const char *tag;  /* the begin of its SHA-256, in quotes */
    const unsigned char *bytes;
    size_t size;
} page_file;

/* Sorted by name. */
extern const page_file page_files[];
extern const size_t n_page_files;

#endif
