/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_HF_READING_H
#define TERN_AUTHORING_CONVERT_HF_READING_H

/* A config.json while it is read, for the files that read its parts. */

#include "authoring/convert/hf_config.h"
#include "base/json.h"

/* *err keeps the first error. */
typedef struct hf_reading {
    const char *path;
    const tern_json_value *root;
    tern_status status;
    tern_error *err;
} hf_reading;

void hf_fail_key(hf_reading *r, tern_status status, const char *key, const char *what);

/* Fails with what the value is, and why that is refused. */
void hf_refuse_value(hf_reading *r, tern_status status, const char *key, const tern_json_value *v,
                     const char *why);

/* A whole number from 1 on. A fallback > 0 replaces a missing key. */
uint32_t hf_read_count(hf_reading *r, const char *key, uint32_t fallback);

/* A number of an object. A fallback that is not NAN replaces a missing one. */
double hf_read_real(hf_reading *r, const tern_json_value *object, const char *key, double fallback);

bool hf_has_key(const hf_reading *r, const char *key);

/* Base and scaling of the angles, and the part of a head that turns; in hf_rope.c. */
void hf_read_rope(hf_reading *r, hf_config *c);

/* The member of rope_parameters for a kind of layers, or NULL; in hf_rope.c. */
const tern_json_value *hf_rope_of_kind(const hf_reading *r, const char *kind);

/* True if layers of the second kind turn by a base of their own; in hf_rope.c. */
bool hf_has_own_bases(const tern_arch *arch);

/* A window of all layers, if the class has windows and this one hides anything; in hf_kinds.c. */
void hf_read_window(hf_reading *r, hf_config *c);

/* Layers of two kinds: which ones have a window, its width, and the base of their rope; in
 * hf_kinds.c. */
void hf_read_kinds(hf_reading *r, hf_config *c);

#endif
