/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_SIGN_H
#define TERN_RECEIPTS_SIGN_H

/*
 * Ed25519 signatures of receipts, by libsodium. The signed text is the line "tern receipt 1.0.0", a
 * newline, and the receipt's digest in hexadecimal, so that a signature stands for the content
 * however the JSON is written. A key is a file with one line: "tern-ed25519-secret-key" or
 * "tern-ed25519-public-key", a space, 64 hexadecimal digits (the secret key's are the seed of RFC
 * 8032). Builds without libsodium answer TERN_ERR_UNIMPLEMENTED where a signature is asked for or
 * present.
 */

#include "receipts/document.h"

/* Makes a key pair: `path` (mode 0600) and `path`.pub. Neither file may exist. */
TERN_MUST_CHECK tern_status sign_make_keys(const char *path, tern_error *err);

/* Checks that a file holds a secret key to sign with. Errors are those of the key file. */
TERN_MUST_CHECK tern_status sign_check_secret(const char *path, tern_error *err);

/* Adds "signature" to a receipt that has its digest. */
TERN_MUST_CHECK tern_status sign_receipt(json_t *receipt, const char *secret_key_path,
                                         tern_error *err);

/*
 * Adds a finding unless the receipt's signature is valid for its digest. With a public key file the
 * signature must be present and by that key; without one a missing signature is fine. Errors are
 * those of the key file.
 */
TERN_MUST_CHECK tern_status sign_check(const json_t *receipt, const char *public_key_path,
                                       receipt_findings *f, tern_error *err);

#endif
