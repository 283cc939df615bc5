/* SPDX-License-Identifier: Apache-2.0 */
/* Receipts from and to files. */

#include "tools/receipt/receipt.h"

#ifdef TERN_HAVE_JANSSON

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/files.h"
#include "tools/out.h"

json_t *receipt_parse(const char *bytes, size_t size, tern_error *err) {
    json_error_t error;
    json_t *root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        (void)tern_fail(err, TERN_ERR_ARG, "line %d: %s", error.line, error.text);
    } else if (!json_is_object(root)) {
        (void)tern_fail(err, TERN_ERR_ARG, "not a JSON object");
        json_decref(root);
        root = NULL;
    }
    return root;
}

json_t *receipt_read(const char *path) {
    size_t size;
    tern_error err = {0};
    char *bytes;
    if (file_read(path, RECEIPT_MAX_BYTES, &bytes, &size) != EXIT_DONE) {
        return NULL;
    }
    json_t *root = receipt_parse(bytes, size, &err);
    free(bytes);
    if (root == NULL) {
        complain("%s: %s", path, err.message);
    }
    return root;
}

/* Writes and closes; false with errno set. */
static bool write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "wbe");
    if (f == NULL) {
        return false;
    }
    const bool written = fputs(text, f) >= 0 && fputs("\n", f) >= 0;
    const int error = errno;
    if (fclose(f) != 0 || !written) {
        errno = written ? errno : error;
        return false;
    }
    return true;
}

int receipt_save(const json_t *receipt, const char *path) {
    char *text = json_dumps(receipt, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    char *temporary = NULL;
    int status = EXIT_DONE;
    if (text == NULL || asprintf(&temporary, "%s.tmp-%ld", path, (long)getpid()) < 0) {
        complain("%s: no memory for the receipt", path);
        free(text);
        return EXIT_FAILED;
    }
    if (!write_text(temporary, text) || rename(temporary, path) != 0) {
        complain("%s: %s", path, strerror(errno));
        (void)unlink(temporary);
        status = EXIT_FAILED;
    }
    free(temporary);
    free(text);
    return status;
}

#endif
