/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/protobuf.h"

#include <stdbool.h>
#include <string.h>

enum { TYPE_BITS = 3, VARINT_BITS = 7, MOST_VARINT_BYTES = 10, MORE = 0x80 };

protobuf protobuf_of(tern_span bytes) {
    return (protobuf){bytes.data, bytes.data + bytes.size};
}

static size_t left(const protobuf *p) {
    return (size_t)(p->end - p->at);
}

/* Seven bits a byte, the lowest first. Bits beyond 64 are dropped, as other readers do. */
static bool read_varint(protobuf *p, uint64_t *out) {
    *out = 0;
    for (unsigned i = 0; i < MOST_VARINT_BYTES && left(p) > 0; i++) {
        const uint8_t byte = (uint8_t)*p->at++;
        *out |= (uint64_t)(byte & (MORE - 1)) << (i * VARINT_BITS);
        if ((byte & MORE) == 0)
            return true;
    }
    return false;
}

/* A number of `size` bytes, the lowest first. */
static bool read_fixed(protobuf *p, size_t size, uint64_t *out) {
    if (left(p) < size)
        return false;
    *out = 0;
    for (size_t i = 0; i < size; i++)
        *out |= (uint64_t)(uint8_t)p->at[i] << (8 * i);
    p->at += size;
    return true;
}

static bool read_bytes(protobuf *p, tern_span *out) {
    uint64_t size;
    if (!read_varint(p, &size) || size > left(p))
        return false;
    *out = (tern_span){p->at, (size_t)size};
    p->at += size;
    return true;
}

static bool read_value(protobuf *p, protobuf_field *f) {
    switch (f->type) {
    case PROTOBUF_VARINT:
        return read_varint(p, &f->value);
    case PROTOBUF_FIXED64:
        return read_fixed(p, sizeof(uint64_t), &f->value);
    case PROTOBUF_FIXED32:
        return read_fixed(p, sizeof(uint32_t), &f->value);
    case PROTOBUF_BYTES:
        return read_bytes(p, &f->bytes);
    }
    return false;
}

protobuf_step protobuf_next(protobuf *p, protobuf_field *out) {
    uint64_t key;
    if (left(p) == 0)
        return PROTOBUF_END;
    if (!read_varint(p, &key) || key >> TYPE_BITS == 0 || key >> TYPE_BITS > UINT32_MAX)
        return PROTOBUF_BROKEN;
    *out = (protobuf_field){.number = (uint32_t)(key >> TYPE_BITS),
                            .type = (protobuf_type)(key & ((1U << TYPE_BITS) - 1))};
    return read_value(p, out) ? PROTOBUF_FIELD : PROTOBUF_BROKEN;
}

float protobuf_float(const protobuf_field *f) {
    const uint32_t bits = (uint32_t)f->value;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
