/* SPDX-License-Identifier: Apache-2.0 */
/* json_pack: values by a format. Every argument is taken, also after a failure, so that nothing
 * that was handed over is lost. */
#include <stdarg.h>
#include <string.h>

#include "base/json_tree/value.h"

typedef struct packer {
    const char *at;
    va_list args;
    bool failed;
} packer;

static char next(packer *p) {
    p->at += strspn(p->at, " ,:");
    return *p->at != '\0' ? *p->at++ : '\0';
}

static json_t *pack(packer *p, char kind);

static json_t *pack_array(packer *p) {
    json_t *array = json_array();
    for (char kind = next(p); kind != ']' && kind != '\0'; kind = next(p))
        p->failed |= json_array_append_new(array, pack(p, kind)) != 0;
    return array;
}

static json_t *pack_object(packer *p) {
    json_t *object = json_object();
    for (char kind = next(p); kind == 's'; kind = next(p)) {
        const char *key = va_arg(p->args, const char *);
        p->failed |= json_object_set_new(object, key, pack(p, next(p))) != 0;
    }
    return object;
}

static json_t *pack(packer *p, char kind) {
    switch (kind) {
    case '{':
        return pack_object(p);
    case '[':
        return pack_array(p);
    case 's':
        return json_string(va_arg(p->args, const char *));
    case 'i':
        return json_integer(va_arg(p->args, int));
    case 'I':
        return json_integer(va_arg(p->args, json_int_t));
    case 'f':
        return json_real(va_arg(p->args, double));
    case 'b':
        return json_boolean(va_arg(p->args, int) != 0);
    case 'o':
        return va_arg(p->args, json_t *);
    case 'O':
        return json_incref(va_arg(p->args, json_t *));
    default:
        return NULL; /* no such kind */
    }
}

json_t *json_pack(const char *format, ...) {
    packer p = {.at = format, .failed = false};
    va_start(p.args, format);
    json_t *value = pack(&p, next(&p));
    va_end(p.args);
    if (p.failed) {
        json_decref(value);
        return NULL;
    }
    return value;
}
