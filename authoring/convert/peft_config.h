/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_PEFT_CONFIG_H
#define TERN_AUTHORING_CONVERT_PEFT_CONFIG_H

/* The adapter_config.json of a PEFT folder: what changes the products of an adapter is read, or
 * refused by name. */

#include <stdbool.h>

#include "base/json.h"

typedef struct peft_config {
    tern_json document;
    double alpha;
    bool rooted;                     /* products are divided by the rank's root */
    const tern_json_value *patterns; /* alpha of modules by the ends of their names; or NULL */
} peft_config;

/* Free *out in any case. TERN_ERR_IO, TERN_ERR_JSON, TERN_ERR_KEY_MISSING, TERN_ERR_KEY_TYPE,
 * TERN_ERR_CONFIG. */
TERN_MUST_CHECK tern_status peft_config_read(const char *path, peft_config *out, tern_error *err);
void peft_config_free(peft_config *c);

/* Copies the name of the base model; "" where there is none that fits. */
TERN_MUST_CHECK tern_status peft_config_base(const char *path, char *name, size_t size,
                                             tern_error *err);

/* The factor of a module's product: alpha / rank, or alpha / sqrt(rank). */
double peft_config_scale(const peft_config *c, const char *module, uint32_t rank);

#endif
