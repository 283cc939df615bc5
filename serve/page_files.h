/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_PAGE_FILES_H
#define TERN_SERVE_PAGE_FILES_H

/*
 * The files of the page at /, exactly as in serve/page. cmake/PageFiles.cmake makes the table when
 * tern is built. Each file is served with its type, and with a tag by which a browser asks whether
 * the file has changed.
 */

#include <stddef.h>

typedef struct page_file {
    const char *name; /* such as "page.css"; "page.html" is the page itself */
    const char *type; /* such as "text/css; charset=utf-8" */
    const char *tag;  /* the beginning of its SHA-256, in quotes */
    const unsigned char *bytes;
    size_t size;
} page_file;

/* Sorted by name. */
extern const page_file page_files[];
extern const size_t n_page_files;

#endif
