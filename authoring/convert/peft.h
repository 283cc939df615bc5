/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_PEFT_H
#define TERN_AUTHORING_CONVERT_PEFT_H

/*
 * Folders of adapters that PEFT saves: adapter_config.json and adapter_model.safetensors. They
 * become GGUF files in llama.cpp's form (docs/adapters.md), which also depend on the base model:
 * its architecture, and the order of the rows of q and k.
 */

#include "authoring/gguf_writer.h"
#include "runtime/model/parts/block.h"

/* The model that an adapter is for. */
typedef struct peft_base {
    const tern_arch *arch;
    tern_block_sizes sizes;
    uint32_t n_layer;
} peft_base;

/* True if the folder holds an adapter_config.json. */
bool peft_is_folder(const char *folder);

/* Copies what the folder calls its base model, if it fits; else "". TERN_ERR_IO, TERN_ERR_JSON. */
TERN_MUST_CHECK tern_status peft_base_name(const char *folder, char *name, size_t size,
                                           tern_error *err);

/* The base as a file or folder has it: a GGUF file, or a folder with a config.json. Errors of
 * tern_gguf_open, tern_config_read and hf_config_read. */
TERN_MUST_CHECK tern_status peft_base_read(const char *path, peft_base *out, tern_error *err);

/*
 * Writes the adapter; the writer is freed in any case. `name` is for general.name. *matrices: how
 * many it adds to. Everything in the folder is used or refused by name: TERN_ERR_IO, TERN_ERR_JSON,
 * TERN_ERR_KEY_*, TERN_ERR_CONFIG (DoRA, biases, modules to save, ...), TERN_ERR_TENSOR_*, and
 * errors of the writer.
 */
TERN_MUST_CHECK tern_status peft_write(const char *folder, const peft_base *base, const char *name,
                                       tern_gguf_writer **w, size_t *matrices, tern_error *err);

#endif
