/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_ON_DEVICE_H
#define TERN_RUNTIME_MODEL_ON_DEVICE_H

/*
 * A model on a device other than the processor: its weights are copied there, in the layouts of the
 * processor, and runners make their passes there (runtime/engine/forward). The host still does
 * tokens, angles and sampling. Results have the same bits.
 */

#include "runtime/model/model.h"

/* Opens the device of that name for a model whose configuration is known. TERN_ERR_UNIMPLEMENTED:
 * its passes have steps that no device makes; errors of tern_device_open. */
TERN_MUST_CHECK tern_status tern_model_open_device(tern_model *m, const char *name,
                                                   tern_error *err);

/* Sends the weights. TERN_ERR_KERNEL: the device lacks a kernel for a tensor, which the message
 * names; TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_model_send_weights(tern_model *m, tern_error *err);

/* The device's kernel for the same use as `kernel`, one of the processor. `kernel` itself for a
 * model on the processor, and if the device has none. */
const tern_kernel_row *tern_model_kernel_there(const tern_model *m, const tern_kernel_row *kernel);

/* Checks that the device has the kernels for a cache of that format: TERN_ERR_KERNEL. TERN_OK for a
 * model on the processor. */
TERN_MUST_CHECK tern_status tern_model_check_cache(const tern_model *m, tern_format kv,
                                                   tern_error *err);

#endif
