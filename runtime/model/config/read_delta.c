/* SPDX-License-Identifier: Apache-2.0 */

/* The numbers of gated delta nets, and which layers they are. Files give them names that other
 * programs chose for state spaces. */

#include <stdio.h>

#include "runtime/model/config/internal.h"

enum {
    MAX_STATES = 1024, /* of a layer */
    MAX_STATE_DIM = 512,
    MAX_TAPS = 16,
    MAX_PERIOD = 1024,
    MAX_CHANNELS = 65535 /* as for every row that matrices make or read */
};

/* Leaves out the blocks at the end that predict further tokens. */
static tern_status leave_out_predictors(const tern_gguf *file, tern_config *c, tern_error *err) {
    char key[TERN_KEY_BYTES];
    snprintf(key, sizeof key, "%s.nextn_predict_layers", c->arch->name);
    if (tern_gguf_find(file, key) == NULL)
        return TERN_OK;
    const tern_status status = tern_gguf_u32(file, key, &c->n_predictors, err);
    if (status == TERN_OK && c->n_predictors >= c->n_layer)
        return tern_fail(err, TERN_ERR_CONFIG, "%s: key %s is %u, of %u blocks in all",
                         tern_gguf_name(file), key, c->n_predictors, c->n_layer);
    c->n_layer -= status == TERN_OK ? c->n_predictors : 0;
    return status;
}

/* A file may say of each layer whether it is a delta net: it must be as the period says. */
static tern_status check_flags(const tern_gguf *file, const tern_config *c, tern_error *err) {
    const tern_gguf_value *flags;
    char key[TERN_KEY_BYTES];
    if (c->n_layer < c->period)
        return tern_fail(err, TERN_ERR_CONFIG,
                         "%s: key %s.full_attention_interval is %u: none of %u layers attends",
                         tern_gguf_name(file), c->arch->name, c->period, c->n_layer);
    snprintf(key, sizeof key, "%s.attention.recurrent_layers", c->arch->name);
    if (tern_gguf_find(file, key) == NULL)
        return TERN_OK;
    const tern_status status = tern_gguf_array(file, key, TERN_GGUF_BOOL, &flags, err);
    for (uint32_t i = 0; status == TERN_OK && i < c->n_layer; i++)
        if (flags->count < c->n_layer || (flags->data[i] != 0) != tern_config_is_delta(c, i))
            return tern_fail(err, TERN_ERR_CONFIG,
                             "%s: key %s is not supported: not every %u-th layer alone attends",
                             tern_gguf_name(file), key, c->period);
    return status;
}

static tern_status check_sizes(const tern_gguf *file, const tern_config *c, uint32_t inner,
                               tern_error *err) {
    const tern_delta_sizes *d = &c->delta;
    if (d->n_states % d->n_keys != 0)
        return tern_fail(err, TERN_ERR_HEADS, "%s: %u states cannot share %u heads of q and k",
                         tern_gguf_name(file), d->n_states, d->n_keys);
    if (inner != tern_delta_inner(d))
        return tern_fail(err, TERN_ERR_CONFIG,
                         "%s: key %s.ssm.inner_size is %u, not %u states of %u",
                         tern_gguf_name(file), c->arch->name, inner, d->n_states, d->state_dim);
    if (tern_delta_channels(d) > MAX_CHANNELS)
        return tern_fail(err, TERN_ERR_CONFIG,
                         "%s: %zu channels of a delta net exceed %u, which tern can compute",
                         tern_gguf_name(file), tern_delta_channels(d), (unsigned)MAX_CHANNELS);
    return TERN_OK;
}

tern_status tern_config_deltas(const tern_gguf *file, tern_config *c, tern_error *err) {
    const tern_arch *a = c->arch;
    tern_delta_sizes *d = &c->delta;
    uint32_t inner;
    tern_status s;
    if (!tern_block_is_delta(a, 1))
        return TERN_OK;
    d->grouped = a->second->grouped;
    if ((s = tern_config_u32(file, a, "full_attention_interval", a->second->period, 1, MAX_PERIOD,
                             &c->period, err)) ||
        (s = tern_config_u32(file, a, "ssm.conv_kernel", 0, 1, MAX_TAPS, &d->n_taps, err)) ||
        (s = tern_config_u32(file, a, "ssm.state_size", 0, 1, MAX_STATE_DIM, &d->state_dim, err)) ||
        (s = tern_config_u32(file, a, "ssm.group_count", 0, 1, MAX_STATES, &d->n_keys, err)) ||
        (s = tern_config_u32(file, a, "ssm.time_step_rank", 0, 1, MAX_STATES, &d->n_states, err)) ||
        (s = tern_config_u32(file, a, "ssm.inner_size", 0, 1, MAX_CHANNELS, &inner, err)) ||
        (s = check_sizes(file, c, inner, err)) || (s = leave_out_predictors(file, c, err)))
        return s;
    return check_flags(file, c, err);
}
