/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_PROTOBUF_H
#define TERN_AUTHORING_CONVERT_PROTOBUF_H

/*
 * Reads the wire format of protocol buffers: fields, each with a number and a value, one after the
 * other. A message inside of a message is a field of bytes. Nothing is copied.
 */

#include <stddef.h>
#include <stdint.h>

#include "tern/span.h"

/* The rest of a message. */
typedef struct protobuf {
    const char *at, *end;
} protobuf;

typedef enum protobuf_type {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_BYTES = 2,
    PROTOBUF_FIXED32 = 5
} protobuf_type;

typedef struct protobuf_field {
    uint32_t number;
    protobuf_type type;
    uint64_t value;  /* the bits of a number */
    tern_span bytes; /* of PROTOBUF_BYTES */
} protobuf_field;

typedef enum protobuf_step { PROTOBUF_FIELD, PROTOBUF_END, PROTOBUF_BROKEN } protobuf_step;

protobuf protobuf_of(tern_span bytes);

/* Reads the next field. Groups, which no current writer makes, count as broken. */
protobuf_step protobuf_next(protobuf *p, protobuf_field *out);

/* The float whose bits a field of PROTOBUF_FIXED32 holds. */
float protobuf_float(const protobuf_field *f);

#endif
