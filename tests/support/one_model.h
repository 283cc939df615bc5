/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_SUPPORT_ONE_MODEL_H
#define TERN_TESTS_SUPPORT_ONE_MODEL_H

/* A source for a server with one model, which the test opens and closes. */

#include "serve/server.h"

static inline tern_status one_model_measure(void *user, size_t i, bool beside, uint64_t *bytes,
                                            tern_error *err) {
    (void)user, (void)i, (void)beside, (void)err;
    *bytes = 0;
    return TERN_OK;
}

static inline uint64_t one_model_saved(void *user) {
    (void)user;
    return 0;
}

static inline tern_status one_model_open(void *user, size_t i, model_setup *out, tern_error *err) {
    (void)i, (void)err;
    *out = *(const model_setup *)user;
    return TERN_OK;
}

static inline void one_model_close(void *user, size_t i) {
    (void)user, (void)i;
}

static inline model_source one_model(model_setup *with) {
    return (model_source){with, one_model_measure, one_model_saved, one_model_open,
                          one_model_close, NULL};
}

#endif
