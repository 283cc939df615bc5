/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/emulator.h"

#include <stdlib.h>
#include <sys/mman.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <algorithm>
#include <vector>

#include "tests/cuda/emulate.h"

#if defined(__SANITIZE_ADDRESS__)
#define TERN_EMULATOR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TERN_EMULATOR_ASAN 1
#endif
#endif
#ifdef TERN_EMULATOR_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

tern_emulated_index threadIdx, blockIdx, blockDim, gridDim;

/* The shared memory of all kernels; the linker provides the symbols of the section's ends. */
extern "C" {
extern uint8_t __start_tern_shared[];
extern uint8_t __stop_tern_shared[];
}

namespace {

typedef void kernel(tern_cuda_job job);

enum { THREADS_MAX = 1024, STACK_BYTES = 64 * 1024, SHARED_PATTERN = 0xff /* floats: NaN */ };

enum state { RUNS, AT_BARRIER, AT_SHUFFLE, RETURNED };

struct copy {
    void *to;
    const void *from;
    size_t bytes;
    unsigned group;
};

/*
 * Stacks: switch_stacks leaves one and goes on where another was left, or at the function that it
 * begins with. Half of what the tests do is this, so it is written for the processor of most of
 * them.
 */
#if defined(__x86_64__)
typedef void *place; /* of the registers that a function must keep, on the stack that was left */

extern "C" void tern_switch_stacks(place *from, place to);
asm(".text\n.p2align 4\ntern_switch_stacks:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");

void switch_stacks(place *from, place *to) {
    tern_switch_stacks(from, *to);
}

/* The function, and no return address, lie above six registers. */
void begin_stack(place *at, uint8_t *stack, size_t bytes, void (*function)(void)) {
    uintptr_t *top = (uintptr_t *)(stack + bytes) - 2;

    top[0] = (uintptr_t)function;
    top[1] = 0;
    *at = top - 6;
}
#else
typedef ucontext_t place;

void switch_stacks(place *from, place *to) {
    swapcontext(from, to);
}

void begin_stack(place *at, uint8_t *stack, size_t bytes, void (*function)(void)) {
    getcontext(at);
    at->uc_stack.ss_sp = stack;
    at->uc_stack.ss_size = bytes;
    at->uc_link = nullptr;
    makecontext(at, function, 0);
}
#endif

/* A thread of every block, one after the other. */
struct fiber {
    place stopped;
    bool begun;
    state where;
    unsigned shuffles;        /* how many shuffles this thread has begun */
    std::vector<copy> copies; /* in flight */
    unsigned groups;          /* groups of copies that the thread has closed */
};

fiber fibers[THREADS_MAX];
uint8_t *stacks;
place scheduler;
#ifdef TERN_EMULATOR_ASAN
const void *scheduler_stack;
size_t scheduler_stack_bytes;
#endif

/* Values that lanes exchange. Two sets alternate, since a lane may begin the next shuffle early. */
uint32_t handed[2][THREADS_MAX];

kernel *running;
const tern_cuda_job *running_job;
tern_emulated_order order = TERN_EMULATED_FORWARD;
unsigned shuffle_seed = 1;

/* ---- switching stacks, which the address sanitizer must be told about ---- */

uint8_t *stack_of(unsigned thread) {
    return stacks + (size_t)thread * STACK_BYTES;
}

void leave_fiber(void) {
#ifdef TERN_EMULATOR_ASAN
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, scheduler_stack, scheduler_stack_bytes);
#endif
    switch_stacks(&fibers[threadIdx.x].stopped, &scheduler);
#ifdef TERN_EMULATOR_ASAN
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void enter_fiber(unsigned thread) {
    threadIdx.x = thread;
#ifdef TERN_EMULATOR_ASAN
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, stack_of(thread), STACK_BYTES);
#endif
    switch_stacks(&scheduler, &fibers[thread].stopped);
#ifdef TERN_EMULATOR_ASAN
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void fiber_main() {
#ifdef TERN_EMULATOR_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
#endif
    for (;;) {
        running(*running_job);
        fibers[threadIdx.x].where = RETURNED;
        leave_fiber();
    }
}

/* The next block's threads begin anew, wherever those of the last one have stopped. */
void forget_fibers(void) {
    for (fiber &f : fibers)
        f.begun = false;
}

bool prepare(unsigned threads) {
    if (stacks == nullptr) {
        void *memory = mmap(nullptr, (size_t)THREADS_MAX * STACK_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return false;
        stacks = (uint8_t *)memory;
    }
    for (unsigned i = 0; i < threads; i++) {
        fibers[i].where = RUNS;
        fibers[i].shuffles = 0;
        fibers[i].copies.clear();
        fibers[i].groups = 0;
        if (!fibers[i].begun)
            begin_stack(&fibers[i].stopped, stack_of(i), STACK_BYTES, fiber_main);
        fibers[i].begun = true;
    }
    return true;
}

/* ---- which threads may continue ---- */

bool all_are(unsigned first, unsigned end, state where) {
    for (unsigned i = first; i < end; i++)
        if (fibers[i].where != where)
            return false;
    return true;
}

void release(unsigned first, unsigned end) {
    for (unsigned i = first; i < end; i++)
        fibers[i].where = RUNS;
}

unsigned random_below(unsigned n) {
    shuffle_seed = shuffle_seed * 1664525u + 1013904223u;
    return shuffle_seed / 65536u % n;
}

/* 0 .. n-1 in the chosen order. */
void order_turns(unsigned *turn, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        turn[i] = order == TERN_EMULATED_BACKWARD ? n - 1 - i : i;
    for (unsigned i = n; order == TERN_EMULATED_SHUFFLED && i > 1; i--)
        std::swap(turn[i - 1], turn[random_below(i)]);
}

/*
 * Runs a warp, through its shuffles, until it waits for other warps or has returned. It thus gets
 * as far ahead of them as it can, so that code without a needed barrier reads data of the wrong
 * moment.
 */
void run_warp(unsigned first) {
    unsigned turn[TERN_CUDA_WARP];

    for (;;) {
        order_turns(turn, TERN_CUDA_WARP);
        for (unsigned i = 0; i < TERN_CUDA_WARP; i++)
            if (fibers[first + turn[i]].where == RUNS)
                enter_fiber(first + turn[i]);
        if (!all_are(first, first + TERN_CUDA_WARP, AT_SHUFFLE))
            return;
        release(first, first + TERN_CUDA_WARP);
    }
}

const char *run_block(unsigned threads) {
    unsigned turn[THREADS_MAX / TERN_CUDA_WARP];

    memset(__start_tern_shared, SHARED_PATTERN, (size_t)(__stop_tern_shared - __start_tern_shared));
    if (!prepare(threads))
        return "the emulator has no memory for its stacks";
    for (;;) {
        order_turns(turn, threads / TERN_CUDA_WARP);
        for (unsigned i = 0; i < threads / TERN_CUDA_WARP; i++)
            run_warp(turn[i] * TERN_CUDA_WARP);
        if (all_are(0, threads, RETURNED))
            return nullptr;
        if (!all_are(0, threads, AT_BARRIER))
            return "the threads of a block do not all reach the same barrier or shuffle";
        release(0, threads);
    }
}

} // namespace

void __syncthreads(void) {
    fibers[threadIdx.x].where = AT_BARRIER;
    leave_fiber();
}

uint32_t tern_emulated_exchange(uint32_t bits, unsigned from) {
    const unsigned thread = threadIdx.x;
    const unsigned set = fibers[thread].shuffles++ % 2;

    handed[set][thread] = bits;
    fibers[thread].where = AT_SHUFFLE;
    leave_fiber();
    return handed[set][thread / TERN_CUDA_WARP * TERN_CUDA_WARP + from];
}

void __pipeline_memcpy_async(void *shared, const void *global, size_t bytes) {
    fiber &self = fibers[threadIdx.x];

    if ((uintptr_t)shared % bytes != 0 || (uintptr_t)global % bytes != 0)
        abort();
    if (order == TERN_EMULATED_BACKWARD || (order == TERN_EMULATED_SHUFFLED && random_below(2)))
        memcpy(shared, global, bytes);
    else
        self.copies.push_back(copy{shared, global, bytes, self.groups});
}

void __pipeline_commit(void) {
    fibers[threadIdx.x].groups++;
}

void __pipeline_wait_prior(size_t groups) {
    fiber &self = fibers[threadIdx.x];
    size_t done = 0;

    while (done < self.copies.size() && self.copies[done].group + groups < self.groups) {
        const copy &c = self.copies[done++];
        memcpy(c.to, c.from, c.bytes);
    }
    self.copies.erase(self.copies.begin(), self.copies.begin() + (ptrdiff_t)done);
}

void tern_emulated_order_set(tern_emulated_order wanted) {
    order = wanted;
}

const char *tern_emulate(const void *function, const unsigned grid[3], unsigned threads,
                         const tern_cuda_job *job) {
    if (threads == 0 || threads > THREADS_MAX || threads % TERN_CUDA_WARP != 0)
        return "a block must have whole warps and at most 1024 threads";
    running = (kernel *)const_cast<void *>(function);
    running_job = job;
    gridDim = tern_emulated_index{grid[0], grid[1], grid[2]};
    blockDim = tern_emulated_index{threads, 1, 1};
    for (unsigned z = 0; z < grid[2]; z++) {
        for (unsigned y = 0; y < grid[1]; y++) {
            for (unsigned x = 0; x < grid[0]; x++) {
                blockIdx = tern_emulated_index{x, y, z};
                const char *error = run_block(threads);
                if (error == nullptr)
                    continue;
                forget_fibers();
                return error;
            }
        }
    }
    return nullptr;
}
