/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/fake_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/cuda/emulate.h"

enum { OBJECTS_MAX = 256, QUEUE_MAX = 256, CANARY = 0xa5, UNSPECIFIED = 719 };

/* ---- live objects --------------------------------------------------------------------------- */

typedef enum kind { NOTHING, MEMORY, PINNED, STREAM, EVENT, RECORDING } kind;

typedef struct object {
    kind kind;
    uint8_t *start;
    size_t bytes;
    uint8_t *map; /* followed by a guard page */
    size_t map_bytes;
    unsigned long recorded; /* events: position in the queue of the last record */
} object;

typedef enum action { COPY, LAUNCH } action;

typedef struct entry {
    action action;
    void *to;
    const void *from;
    size_t bytes;
    const void *function;
    unsigned grid[3];
    unsigned threads;
    tern_cuda_job job;
} entry;

/* Calls that are recorded instead of queued. */
typedef struct recording {
    entry *entries;
    size_t n;
} recording;

static object objects[OBJECTS_MAX];
static recording noted; /* used while is_recording */
static bool is_recording;
static entry queue[QUEUE_MAX];
static unsigned long queued, done; /* entries queued so far, entries run so far */
static unsigned long calls, launches;
static unsigned long fail_at;
static int fail_with;
static int devices = 1, major_version = 9, minor_version = 0;
static const char *first_misuse;

static int misuse(const char *what) {
    if (first_misuse == NULL)
        first_misuse = what;
    return UNSPECIFIED;
}

/* Counts a call. Returns the error that it must report, or success. */
static int begin(void) {
    calls++;
    if (calls != fail_at)
        return TERN_CUDA_SUCCESS;
    fail_at = 0;
    return fail_with;
}

static unsigned alive(kind k) {
    unsigned n = 0;
    for (int i = 0; i < OBJECTS_MAX; i++)
        n += objects[i].kind == k;
    return n;
}

static object *find(kind k, const void *start) {
    for (int i = 0; i < OBJECTS_MAX; i++)
        if (objects[i].kind == k && objects[i].start == start)
            return &objects[i];
    return NULL;
}

/* True if [p, p + bytes) lies in a living object of this kind. */
static bool is_inside(kind k, const void *p, size_t bytes) {
    const uint8_t *first = p;
    for (int i = 0; i < OBJECTS_MAX; i++)
        if (objects[i].kind == k && first >= objects[i].start &&
            first + bytes <= objects[i].start + objects[i].bytes)
            return true;
    return false;
}

/*
 * Memory ends at the guard page, except for the alignment to TERN_ALIGN, and begins behind another
 * guard page. The rest holds canary bytes, and so do the contents.
 */
static int create(kind k, void **out, size_t bytes) {
    object *o = NULL;
    for (int i = 0; i < OBJECTS_MAX && o == NULL; i++)
        if (objects[i].kind == NOTHING)
            o = &objects[i];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t usable = (bytes + page - 1) / page * page;
    if (o == NULL)
        return misuse("more objects than the fake runtime has room for");
    uint8_t *map = mmap(NULL, usable + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + page, usable, PROT_READ | PROT_WRITE) != 0)
        return TERN_CUDA_NO_MEMORY;
    memset(map + page, CANARY, usable);
    uint8_t *start = map + page + ((usable - bytes) & ~(size_t)(TERN_ALIGN - 1));
    *o = (object){k, start, bytes, map, usable + 2 * page, 0};
    *out = start;
    return TERN_CUDA_SUCCESS;
}

static int destroy(kind k, void *start) {
    object *o = find(k, start);
    if (o == NULL)
        return misuse("released what is not alive");
    const uint8_t *end = o->map + o->map_bytes - sysconf(_SC_PAGESIZE);
    for (const uint8_t *p = o->start + o->bytes; p < end; p++)
        if (*p != CANARY)
            (void)misuse("wrote behind the end of an allocation");
    munmap(o->map, o->map_bytes);
    *o = (object){0};
    return TERN_CUDA_SUCCESS;
}

/* ---- the queue, which all streams share, in the order of the calls --------------------------- */

static void run_entry(const entry *e) {
    if (e->action == COPY) {
        memcpy(e->to, e->from, e->bytes);
        return;
    }
    const char *error = tern_emulate(e->function, e->grid, e->threads, &e->job);
    if (error != NULL)
        (void)misuse(error);
}

static void run_until(unsigned long place) {
    for (; done < place; done++)
        run_entry(&queue[done % QUEUE_MAX]);
}

static entry *note(void) {
    entry *more = realloc(noted.entries, (noted.n + 1) * sizeof *more);
    if (more == NULL)
        abort();
    noted.entries = more;
    return &noted.entries[noted.n++];
}

static entry *push(void) {
    if (is_recording)
        return note();
    if (queued - done == QUEUE_MAX)
        run_until(done + 1);
    return &queue[queued++ % QUEUE_MAX];
}

/* ---- the calls --------------------------------------------------------------------------------
 */

static int fake_device_count(int *count) {
    const int error = begin();
    *count = error == TERN_CUDA_SUCCESS ? devices : 0;
    return error;
}

static int fake_properties(int ordinal, tern_cuda_properties *p) {
    const int error = begin();
    if (error != TERN_CUDA_SUCCESS)
        return error;
    if (ordinal >= devices)
        return misuse("asked for a device that does not exist");
    (void)snprintf(p->name, sizeof p->name, "emulated device");
    p->major = major_version;
    p->minor = minor_version;
    return TERN_CUDA_SUCCESS;
}

static int fake_device_set(int ordinal) {
    const int error = begin();
    return error != TERN_CUDA_SUCCESS || ordinal < devices ? error : misuse("no such device");
}

static int fake_memory_new(void **memory, size_t bytes) {
    const int error = begin();
    return error != TERN_CUDA_SUCCESS ? error : create(MEMORY, memory, bytes);
}

static int fake_memory_free(void *memory) {
    const int error = begin();
    if (queued != done) /* CUDA would wait here; by contract, the caller has waited */
        (void)misuse("released memory while work was queued");
    (void)destroy(MEMORY, memory); /* an error here is dropped */
    return error;
}

static int fake_pinned_new(void **memory, size_t bytes) {
    const int error = begin();
    return error != TERN_CUDA_SUCCESS ? error : create(PINNED, memory, bytes);
}

static int fake_pinned_free(void *memory) {
    (void)begin();
    return destroy(PINNED, memory);
}

static int fake_stream_new(void **stream) {
    const int error = begin();
    return error != TERN_CUDA_SUCCESS ? error : create(STREAM, stream, 1);
}

static int fake_stream_free(void *stream) {
    const int error = begin();
    (void)destroy(STREAM, stream);
    return error;
}

/* A failure discards the queue, as a failed device does. */
static int fake_stream_sync(void *stream) {
    const int error = begin();
    if (error != TERN_CUDA_SUCCESS) {
        done = queued;
        return error;
    }
    if (find(STREAM, stream) == NULL || is_recording)
        return misuse("waited for no stream, or while recording");
    run_until(queued);
    return TERN_CUDA_SUCCESS;
}

static int fake_event_new(void **event) {
    const int error = begin();
    return error != TERN_CUDA_SUCCESS ? error : create(EVENT, event, 1);
}

static int fake_event_free(void *event) {
    (void)begin();
    return destroy(EVENT, event);
}

static int fake_event_record(void *event, void *stream) {
    const int error = begin();
    object *o = find(EVENT, event);
    if (error != TERN_CUDA_SUCCESS)
        return error;
    if (o == NULL || find(STREAM, stream) == NULL)
        return misuse("recorded no event, or on no stream");
    o->recorded = queued;
    return TERN_CUDA_SUCCESS;
}

static int fake_event_sync(void *event) {
    const int error = begin();
    const object *o = find(EVENT, event);
    if (error != TERN_CUDA_SUCCESS)
        return error;
    if (o == NULL)
        return misuse("waited for no event");
    run_until(o->recorded);
    return TERN_CUDA_SUCCESS;
}

static int fake_copy(void *to, const void *from, size_t bytes, void *stream, kind to_kind,
                     kind from_kind) {
    const int error = begin();
    if (error != TERN_CUDA_SUCCESS)
        return error;
    if (find(STREAM, stream) == NULL)
        return misuse("copied on no stream");
    if (is_recording)
        return misuse("copied while recording");
    if (!is_inside(to_kind, to, bytes) || !is_inside(from_kind, from, bytes))
        return misuse("copied outside an allocation, or not through pinned memory");
    *push() = (entry){.action = COPY, .to = to, .from = from, .bytes = bytes};
    return TERN_CUDA_SUCCESS;
}

static int fake_copy_to_device(void *to, const void *from, size_t bytes, void *stream) {
    return fake_copy(to, from, bytes, stream, MEMORY, PINNED);
}

static int fake_copy_from_device(void *to, const void *from, size_t bytes, void *stream) {
    return fake_copy(to, from, bytes, stream, PINNED, MEMORY);
}

/*
 * How many of n blocks are launched in a dimension. CUDA limits a grid, and kernels stride over
 * what does not fit. The limit here is tiny, so that nearly every launch strides.
 */
static unsigned some_of(unsigned n) {
    enum { MOST = 2 };
    return n < MOST ? n : MOST;
}

/* The first dimension of a product's grid stands for the rows of the matrix, and always fits. */
static bool is_product(const void *function) {
    for (size_t i = 0; i < tern_cuda_kernel_count; i++)
        if (tern_cuda_kernels[i].function == function)
            return tern_cuda_kernels[i].op == TERN_OP_GEMV ||
                   tern_cuda_kernels[i].op == TERN_OP_GEMM;
    return false;
}

static int fake_launch(const void *function, const unsigned grid[3], unsigned threads, bool early,
                       const tern_cuda_job *job, void *stream) {
    const int error = begin();
    if (early && major_version < 9)
        return misuse("launched early on a device that cannot");
    if (error != TERN_CUDA_SUCCESS)
        return error;
    if (function == NULL || find(STREAM, stream) == NULL)
        return misuse("launched nothing, or on no stream");
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[1] > 65535 || grid[2] > 65535)
        return misuse("launched a grid that CUDA refuses");
    launches++;
    *push() = (entry){
        .action = LAUNCH,
        .function = function,
        .grid = {is_product(function) ? grid[0] : some_of(grid[0]), some_of(grid[1]), grid[2]},
        .threads = threads,
        .job = *job};
    return TERN_CUDA_SUCCESS;
}

static int fake_record(void *stream) {
    const int error = begin();
    if (error != TERN_CUDA_SUCCESS)
        return error;
    if (is_recording || find(STREAM, stream) == NULL)
        return misuse("recorded twice, or no stream");
    is_recording = true;
    return TERN_CUDA_SUCCESS;
}

/* A failure discards the recording. */
static int fake_end_record(void *stream, void **out) {
    int error = begin();
    *out = NULL;
    if (!is_recording || find(STREAM, stream) == NULL)
        return misuse("ended no recording");
    is_recording = false;
    if (error == TERN_CUDA_SUCCESS)
        error = create(RECORDING, out, sizeof noted);
    if (error == TERN_CUDA_SUCCESS)
        memcpy(*out, &noted, sizeof noted);
    else
        free(noted.entries);
    noted = (recording){0};
    return error;
}

static int fake_replay(void *handle, void *stream) {
    const int error = begin();
    recording r;
    if (error != TERN_CUDA_SUCCESS)
        return error;
    if (find(RECORDING, handle) == NULL || find(STREAM, stream) == NULL || is_recording)
        return misuse("replayed no recording, or on no stream, or while recording");
    memcpy(&r, handle, sizeof r);
    for (size_t i = 0; i < r.n; i++)
        *push() = r.entries[i];
    return TERN_CUDA_SUCCESS;
}

static int fake_recording_free(void *handle) {
    const int error = begin();
    recording r;
    if (find(RECORDING, handle) == NULL)
        return misuse("released no recording");
    memcpy(&r, handle, sizeof r);
    free(r.entries);
    (void)destroy(RECORDING, handle); /* an error here is dropped */
    return error;
}

static const char *fake_error_text(int error) {
    switch (error) {
    case TERN_CUDA_NO_MEMORY:
        return "out of memory";
    case TERN_CUDA_NO_DEVICE:
        return "no CUDA-capable device is detected";
    default:
        return "unspecified launch failure";
    }
}

const tern_cuda_runtime tern_fake_cuda = {
    .device_count = fake_device_count,
    .properties = fake_properties,
    .device_set = fake_device_set,
    .memory_new = fake_memory_new,
    .memory_free = fake_memory_free,
    .pinned_new = fake_pinned_new,
    .pinned_free = fake_pinned_free,
    .stream_new = fake_stream_new,
    .stream_free = fake_stream_free,
    .stream_sync = fake_stream_sync,
    .event_new = fake_event_new,
    .event_free = fake_event_free,
    .event_record = fake_event_record,
    .event_sync = fake_event_sync,
    .copy_to_device = fake_copy_to_device,
    .copy_from_device = fake_copy_from_device,
    .launch = fake_launch,
    .record = fake_record,
    .end_record = fake_end_record,
    .replay = fake_replay,
    .recording_free = fake_recording_free,
    .error_text = fake_error_text,
};

/* ---- for tests --------------------------------------------------------------------------------
 */

tern_fake_counts tern_fake_look(void) {
    return (tern_fake_counts){.calls = calls,
                              .launches = launches,
                              .memory = alive(MEMORY),
                              .pinned = alive(PINNED),
                              .streams = alive(STREAM),
                              .events = alive(EVENT),
                              .recordings = alive(RECORDING),
                              .queued = (unsigned)(queued - done),
                              .misuse = first_misuse};
}

void tern_fake_reset(void) {
    calls = launches = fail_at = queued = done = 0;
    first_misuse = NULL;
    tern_fake_device(1, 9, 0);
}

void tern_fake_fail(unsigned long call, int error) {
    fail_at = call == 0 ? 0 : calls + call;
    fail_with = error;
}

void tern_fake_device(int count, int major, int minor) {
    devices = count;
    major_version = major;
    minor_version = minor;
}
