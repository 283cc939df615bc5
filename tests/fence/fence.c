/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocator for tests, preloaded into the programs test_* and tern. It puts each block against
 * the end of its pages, with a page behind that nothing may touch, so a byte too far ends the
 * program at once. Freed blocks are never used again, and a use of one ends the program, too. New
 * blocks hold 0xa5, so memory that was not set does not look like zeros. Bytes between a block and
 * its page's end, which alignment leaves, must keep what they hold.
 *
 * A program that would end with success has to have freed what its own code allocated; otherwise
 * its status is 86.
 *
 * Only the first BLOCKS blocks of a process are kept so, because each costs calls of the system;
 * later ones, and those that are larger than LARGEST, are glibc's. Programs that bring an allocator
 * of their own have it undisturbed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    BLOCKS = 20000,    /* of a process; the system allows 65,530 maps, and a block needs two */
    LARGEST = 1 << 20, /* bytes of a block */
    PAGE = 4096,
    FRESH = 0xa5,
    BEHIND = 0x5a,
    STATUS_LEFT = 86,
    MOST_SHOWN = 5
};
#define ARENA ((size_t)8 << 30)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

typedef struct block {
    uint8_t *start; /* what the program has; NULL: free */
    size_t size;
    uintptr_t caller;
} block;

static uint8_t *arena; /* NULL: all blocks are glibc's */
static atomic_size_t used;
static atomic_uint n_blocks;
static block blocks[BLOCKS];
static uint32_t of_page[ARENA / PAGE];   /* the block whose first byte is on the page, from 1 */
static uintptr_t loaded, code, code_end; /* the program's own */

static void say(const char *text) {
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static _Noreturn void stop(const char *what) {
    say("fence: ");
    say(what);
    say("\n");
    abort();
}

static bool is_ours(const void *p) {
    return arena != NULL && (const uint8_t *)p >= arena && (const uint8_t *)p < arena + ARENA;
}

static block *block_of(const void *p) {
    const uint32_t i = of_page[((const uint8_t *)p - arena) / PAGE];
    if (i == 0 || blocks[i - 1].start != p)
        stop("freed where no block in use starts");
    return &blocks[i - 1];
}

static size_t pages_of(const block *b, uint8_t **first) {
    *first = (uint8_t *)((uintptr_t)b->start & ~(uintptr_t)(PAGE - 1));
    const size_t bytes = (size_t)(b->start - *first) + b->size;
    return bytes == 0 ? 1 : (bytes + PAGE - 1) / PAGE;
}

/* The alignment that a type of this size can need. */
static size_t natural(size_t size) {
    const size_t lowest = size & (~size + 1);
    return size == 0 || lowest > 16 ? 16 : lowest;
}

static void *take(size_t alignment, size_t size, void *caller) {
    if (arena == NULL || size > LARGEST || alignment > PAGE ||
        atomic_load_explicit(&n_blocks, memory_order_relaxed) >= BLOCKS)
        return NULL;
    const size_t whole = (size + PAGE - 1) / PAGE * PAGE, room = whole > 0 ? whole : PAGE;
    const size_t at = atomic_fetch_add(&used, room + PAGE);
    const unsigned i = atomic_fetch_add(&n_blocks, 1);
    if (i >= BLOCKS || at + room + PAGE > ARENA ||
        mprotect(arena + at, room, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    uint8_t *end = arena + at + room;
    uint8_t *start = size > 0 ? (uint8_t *)((uintptr_t)(end - size) & ~(uintptr_t)(alignment - 1))
                              : end - alignment;
    memset(start, FRESH, size);
    memset(start + size, BEHIND, (size_t)(end - start) - size);
    of_page[(size_t)(start - arena) / PAGE] = i + 1;
    blocks[i] = (block){.start = start, .size = size, .caller = (uintptr_t)caller};
    return start;
}

static void give(void *p) {
    block *b = block_of(p);
    uint8_t *first = NULL;
    const size_t pages = pages_of(b, &first);
    for (const uint8_t *at = b->start + b->size; at < first + pages * PAGE; at++)
        if (*at != BEHIND)
            stop("a byte behind a block was written");
    b->start = NULL;
    (void)madvise(first, pages * PAGE, MADV_DONTNEED);
    (void)mprotect(first, pages * PAGE, PROT_NONE);
}

void *malloc(size_t size) {
    void *p = take(natural(size), size, __builtin_return_address(0));
    return p != NULL ? p : __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        return __libc_calloc(n, size);
    void *p = take(natural(size), bytes, __builtin_return_address(0));
    return p != NULL ? memset(p, 0, bytes) : __libc_calloc(n, size);
}

static void *resize(void *p, size_t size, void *caller) {
    if (p == NULL || (is_ours(p) && size > 0)) {
        void *fresh = take(natural(size), size, caller);
        if (fresh == NULL)
            fresh = __libc_malloc(size);
        if (p == NULL || fresh == NULL)
            return fresh;
        const size_t before = block_of(p)->size;
        memcpy(fresh, p, before < size ? before : size);
        give(p);
        return fresh;
    }
    if (!is_ours(p))
        return __libc_realloc(p, size);
    give(p);
    return NULL;
}

void *realloc(void *p, size_t size) {
    return resize(p, size, __builtin_return_address(0));
}

void *reallocarray(void *p, size_t n, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return arena == NULL ? realloc(p, bytes) : resize(p, bytes, __builtin_return_address(0));
}

void *aligned_alloc(size_t alignment, size_t size) {
    void *p = take(alignment, size, __builtin_return_address(0));
    return p != NULL ? p : __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size) {
    return aligned_alloc(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    void *p = take(alignment, size, __builtin_return_address(0));
    *out = p != NULL ? p : __libc_memalign(alignment, size);
    return *out != NULL ? 0 : ENOMEM;
}

void free(void *p) {
    const int kept = errno;
    if (is_ours(p))
        give(p);
    else
        __libc_free(p);
    errno = kept;
}

size_t malloc_usable_size(void *p) {
    static size_t (*next)(void *);
    if (p == NULL || is_ours(p))
        return p != NULL ? block_of(p)->size : 0;
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "malloc_usable_size");
    return next(p);
}

/* The first object is the program itself. */
static int find_code(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    loaded = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0) {
            code = info->dlpi_addr + part->p_vaddr;
            code_end = code + part->p_memsz;
        }
    }
    return 1;
}

/* Blocks that libraries keep are theirs. */
static bool is_left(const block *b) {
    return b->start != NULL && b->caller >= code && b->caller < code_end;
}

static void count_left(int status, void *unused) {
    (void)unused;
    const unsigned met = atomic_load(&n_blocks), most = met < BLOCKS ? met : BLOCKS;
    unsigned n = 0;
    char line[200];
    for (unsigned i = 0; i < most && status == 0; i++) {
        if (!is_left(&blocks[i]) || n++ >= MOST_SHOWN)
            continue;
        (void)snprintf(line, sizeof line,
                       "fence: %zu bytes were not freed, allocated before %#zx\n", blocks[i].size,
                       (size_t)(blocks[i].caller - loaded));
        say(line);
    }
    if (n == 0)
        return;
    (void)snprintf(line, sizeof line,
                   "fence: blocks that are left: %u; addr2line -fe %s names places\n", n,
                   program_invocation_name);
    say(line);
    (void)fflush(NULL);
    _exit(STATUS_LEFT);
}

/* Says whether the program has an allocator of its own, which then stands in front of this one. */
static bool is_replaced(void) {
    Dl_info this, first;
    return dladdr((void *)&arena, &this) == 0 ||
           dladdr(dlsym(RTLD_DEFAULT, "malloc"), &first) == 0 || this.dli_fbase != first.dli_fbase;
}

__attribute__((constructor)) static void begin(void) {
    const char *name = program_invocation_short_name;
    const bool asked = strncmp(name, "test_", 5) == 0 || strcmp(name, "tern") == 0;
    if (!asked || is_replaced() || sysconf(_SC_PAGESIZE) != PAGE)
        return;
    void *found = mmap(NULL, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED)
        return;
    (void)dl_iterate_phdr(find_code, NULL);
    (void)on_exit(count_left, NULL);
    /* glibc's allocator takes its first caller for the first thread of the program. Were that a
     * later one, the count of its main arena's threads would be one too small when it ends. */
    __libc_free(__libc_malloc(1));
    arena = found;
}
