/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes receipts as files. */

#include "tools/record/receipt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "receipts/sign.h"
#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"

int receipt_check_key(const options *o) {
    const char *key = options_text(o, OPT_SIGN_KEY);
    const bool signs = options_given(o, OPT_RECEIPT) || options_given(o, OPT_RECORD);
    if (!signs && o->values[OPT_SIGN_KEY].source == OPTION_FLAG) {
        complain("--sign-key signs a receipt: use --receipt FILE too");
        return EXIT_USAGE;
    }
    if (!signs || key == NULL)
        return EXIT_DONE;
    tern_error err = {0};
    return sign_check_secret(key, &err) == TERN_OK ? EXIT_DONE : complain_error(&err);
}

json_t *receipt_read(const char *path) {
    size_t size;
    tern_error err = {0};
    char *bytes;
    if (file_read(path, RECEIPT_MAX_BYTES, &bytes, &size) != EXIT_DONE)
        return NULL;
    json_t *root = receipt_parse(bytes, size, path, &err);
    free(bytes);
    if (root == NULL)
        (void)complain_error(&err);
    return root;
}

int receipt_save(const json_t *receipt, const char *path, tern_out_mode mode) {
    char *text = json_dump(receipt, (json_style){.indent = 2});
    tern_out_file *file = NULL;
    tern_error err = {0};
    if (text == NULL || json_memory_failed()) {
        complain("%s: no memory for the receipt", path);
        free(text);
        return EXIT_FAILED;
    }
    tern_status status = tern_out_file_create(path, mode, &file, &err);
    if (status == TERN_OK)
        status = tern_out_file_write(file, text, strlen(text), &err);
    if (status == TERN_OK)
        status = tern_out_file_write(file, "\n", 1, &err);
    if (status == TERN_OK)
        status = tern_out_file_commit(&file, &err);
    else
        tern_out_file_discard(&file);
    free(text);
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}
