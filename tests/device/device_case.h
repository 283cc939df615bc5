/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_DEVICE_DEVICE_CASE_H
#define TERN_TESTS_DEVICE_DEVICE_CASE_H

/*
 * Every operation of a device against the reference, bit for bit. The same checks run on the
 * processor, on the emulated CUDA device and on a real one.
 */

#include "tern/device.h"
#include "tests/support/check.h"

/* The device and the stream that the checks run on. */
typedef struct device_run {
    tern_device *d;
    tern_device_stream *stream;
} device_run;

/* Opens a stream on an open device. Errors fail the running test. */
device_run device_run_new(tern_device *d);
void device_run_free(device_run *r);

/* Copies bytes to new device memory; allocates bytes of device memory; releases device memory. */
void *device_put(const device_run *r, const void *from, size_t bytes);
void device_get(const device_run *r, void *to, const void *from, size_t bytes);
void device_drop(const device_run *r, void *memory);

/* Copies a buffer of the host to the device. */
void *device_put_buffer(const device_run *r, const check_buffer *b);
/* Downloads floats from the device and compares them; releases both. */
void device_expect_floats(const device_run *r, const char *what, const check_buffer *want,
                          void *memory);

/* Fails the test unless the status is TERN_OK. */
void device_expect_ok(tern_status status, const tern_error *err);

/* Calls an entry of the device, which must succeed; the last argument is &err. */
#define DEVICE_CALL(r, entry, ...)                                                                 \
    do {                                                                                           \
        tern_error err = {0};                                                                      \
        device_expect_ok((r)->d->ops->entry((r)->d, __VA_ARGS__, &err), &err);                     \
    } while (0)

/* True if the table has such a kernel that runs on the device. */
bool device_has_row(const device_run *r, tern_op op, tern_format format, tern_layout layout);

/* gemv and gemm of all formats that the device has kernels for. Returns the number of products. */
size_t device_check_products(const device_run *r);
/* Several products in one call, with and without a bias, for one token and for several. */
void device_check_multiply(const device_run *r);
/* Long rows: ternary sums of 65,408 columns. */
void device_check_long_products(const device_run *r);
void device_check_quantize(const device_run *r);
void device_check_norms(const device_run *r); /* rmsnorm, softmax */
void device_check_elementwise(const device_run *r);
void device_check_exp(const device_run *r); /* the whole range of exp, through a gate */
void device_check_rope(const device_run *r);
void device_check_attend(const device_run *r);
void device_check_attend_long(const device_run *r);
void device_check_attend_prompt(const device_run *r);
void device_check_pages(const device_run *r); /* attention and stores over page tables */
void device_check_rounding(const device_run *r);
void device_check_embed(const device_run *r);
void device_check_store(const device_run *r);
void device_check_watch(const device_run *r); /* numbers that became too large */
void device_check_heads(const device_run *r); /* rotated, watched and stored, as in a layer */
/* Copies of many sizes, more than any staging buffer holds. */
void device_check_copies(const device_run *r);

#endif
