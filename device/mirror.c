/* SPDX-License-Identifier: Apache-2.0 */

/* The ranges of a mirror, and what goes over and comes back. */

#include <stdlib.h>
#include <string.h>

#include "device/mirror_internal.h"

/* ---- ranges -------------------------------------------------------------------------------- */

/* How many ranges of the mirror's own begin at an address or before it. */
static size_t begun(const tern_mirror *m, const uint8_t *host) {
    size_t low = 0, high = m->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if ((uintptr_t)m->ranges[middle].host <= (uintptr_t)host)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void *tern_mirror_at(const tern_mirror *m, const void *host) {
    for (; m != NULL; m = m->first) {
        const size_t before = begun(m, host);
        if (before == 0)
            continue;
        const tern_mirror_range *r = &m->ranges[before - 1];
        const size_t offset = (uintptr_t)host - (uintptr_t)r->host;
        if (offset < r->bytes)
            return r->device + offset;
    }
    return NULL;
}

static tern_status reserve(tern_mirror *m, tern_error *err) {
    enum { FIRST = 16 };
    const size_t capacity = m->capacity > 0 ? 2 * m->capacity : FIRST;
    if (m->n < m->capacity)
        return TERN_OK;
    tern_mirror_range *ranges = realloc(m->ranges, capacity * sizeof *ranges);
    if (ranges == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for ranges of a device");
    m->ranges = ranges;
    m->capacity = capacity;
    return TERN_OK;
}

tern_status tern_mirror_add(tern_mirror *m, const void *host, size_t bytes, tern_error *err) {
    void *memory = NULL;
    if (tern_mirror_at(m, host) != NULL)
        return TERN_OK;
    tern_status status = reserve(m, err);
    if (status == TERN_OK)
        status = m->device->ops->alloc(m->device, bytes, &memory, err);
    if (status != TERN_OK)
        return status;
    const size_t place = begun(m, host);
    memmove(m->ranges + place + 1, m->ranges + place, (m->n - place) * sizeof *m->ranges);
    m->ranges[place] = (tern_mirror_range){.host = host, .bytes = bytes, .device = memory};
    m->n++;
    m->bytes += bytes;
    return TERN_OK;
}

size_t tern_mirror_bytes(const tern_mirror *m) {
    return m->bytes + (m->first != NULL ? m->first->bytes : 0);
}

/* ---- there and back ------------------------------------------------------------------------ */

static tern_status no_counterpart(tern_error *err) {
    return tern_fail(err, TERN_ERR_STATE, "memory has no counterpart on the device");
}

tern_status tern_mirror_send(tern_mirror *m, const void *host, size_t bytes, tern_error *err) {
    void *to = tern_mirror_at(m, host);
    if (to == NULL)
        return no_counterpart(err);
    return m->device->ops->upload(m->device, m->stream, to, host, bytes, err);
}

tern_status tern_mirror_fetch(tern_mirror *m, void *to, const void *host, size_t bytes,
                              tern_error *err) {
    const void *from = tern_mirror_at(m, host);
    if (from == NULL)
        return no_counterpart(err);
    return m->device->ops->download(m->device, m->stream, to, from, bytes, err);
}

/* ---- recordings ---------------------------------------------------------------------------- */

tern_status tern_mirror_record(tern_mirror *m, tern_error *err) {
    return m->device->ops->record(m->device, m->stream, err);
}

tern_status tern_mirror_end_record(tern_mirror *m, tern_device_recording **recording,
                                   tern_error *err) {
    return m->device->ops->end_record(m->device, m->stream, recording, err);
}

tern_status tern_mirror_replay(tern_mirror *m, const tern_device_recording *recording,
                               tern_error *err) {
    return m->device->ops->replay(m->device, m->stream, recording, err);
}

void tern_mirror_free_recording(tern_mirror *m, tern_device_recording **recording) {
    (void)m->device->ops->stream_sync(m->device, m->stream, NULL);
    (void)m->device->ops->free_recording(m->device, *recording, NULL);
    *recording = NULL;
}

/* ---- life ---------------------------------------------------------------------------------- */

static tern_status open_device(const char *name, tern_mirror *m, tern_error *err) {
    const tern_status status = tern_device_open(name, &m->device, err);
    if (status != TERN_OK)
        return status;
    m->base.ops = &tern_mirror_ops;
    m->base.kind = m->device->kind;
    memcpy(m->base.name, m->device->name, sizeof m->base.name);
    if (m->device->kind == TERN_DEVICE_CPU)
        return tern_fail(err, TERN_ERR_DEVICE, "%s",
                         m->device->note[0] != '\0' ? m->device->note
                                                    : "the processor is not a device");
    return m->device->ops->stream_new(m->device, &m->stream, err);
}

tern_status tern_mirror_open(const char *name, tern_mirror **out, tern_error *err) {
    tern_mirror *m = calloc(1, sizeof *m);
    *out = NULL;
    if (m == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a device");
    const tern_status status = open_device(name, m, err);
    if (status == TERN_OK)
        *out = m;
    else
        tern_mirror_close(&m);
    return status;
}

tern_status tern_mirror_open_beside(const tern_mirror *first, tern_mirror **out, tern_error *err) {
    const tern_status status = tern_mirror_open(tern_device_name(first->base.kind), out, err);
    if (status == TERN_OK)
        (*out)->first = first;
    return status;
}

/* Errors can no longer be told. */
void tern_mirror_close(tern_mirror **mirror) {
    tern_mirror *m = mirror != NULL ? *mirror : NULL;
    if (m == NULL)
        return;
    *mirror = NULL;
    if (m->stream != NULL)
        (void)m->device->ops->stream_sync(m->device, m->stream, NULL);
    for (size_t i = 0; i < m->n; i++)
        (void)m->device->ops->free(m->device, m->ranges[i].device, NULL);
    if (m->stream != NULL)
        (void)m->device->ops->stream_free(m->device, m->stream, NULL);
    tern_device_close(&m->device);
    free(m->ranges);
    free(m);
}

tern_device *tern_mirror_device(tern_mirror *m) {
    return &m->base;
}

void tern_mirror_set_tally(tern_mirror *m, tern_tally *tally) {
    m->tally = tally;
}

const tern_device *tern_mirror_behind(const tern_mirror *m) {
    return m->device;
}
