/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_ADAPTERS_H
#define TERN_SERVE_INTERFACES_ADAPTERS_H

/* The adapters of a server's model, and their scales for requests that do not say them. Clients may
 * change these scales; each request takes them once, when it is read. */

#include <pthread.h>

#include "base/json_tree/text.h"
#include "base/json_tree/value.h"
#include "serve/http/refusal.h"
#include "tern/tern.h"

typedef struct adapter_scales {
    const tern_adapter_info *infos; /* [n] the model's */
    size_t n;
    pthread_mutex_t lock; /* guards scale */
    float scale[TERN_MOST_ADAPTERS];
} adapter_scales;

/* Takes the scales that the model was opened with. */
void adapter_scales_open(adapter_scales *s, const tern_model *model);
void adapter_scales_close(adapter_scales *s);

/* Adapters in use, as a list for a request of the engine. */
typedef struct adapter_uses {
    tern_adapter_use list[TERN_MOST_ADAPTERS];
    size_t n;
    bool said; /* false: nothing is known of them, and the model's own count */
} adapter_uses;

/* The scales that count now; and their replacement: those that are not named become 0. */
void adapter_scales_get(adapter_scales *s, adapter_uses *out);
void adapter_scales_set(adapter_scales *s, const adapter_uses *uses);

/* Reads [{"id": 0, "scale": 0.5}, ...], in llama.cpp's form. s NULL: a server without adapters.
 * False after a refusal, which names the field "lora". */
bool adapter_uses_read(const adapter_scales *s, const json_t *list, adapter_uses *out, refusal *r);

/* Writes the adapters and the scales that count now as a JSON array. */
void adapter_scales_write(adapter_scales *s, text *out);

#endif
