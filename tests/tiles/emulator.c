/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tiles/emulator.h"

#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "dispatch/cpu.h"
#include "dispatch/permission.h"
#include "dispatch/processors.h"

/* ---- tiles ----------------------------------------------------------------------------------- */

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64 };

/* The data of ldtilecfg (Intel's manual, volume 1, chapter 18). */
typedef struct shape {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} shape;

typedef struct tiles {
    bool open;
    shape shape;
    uint8_t data[TILES][ROWS][ROW_BYTES];
    uint64_t multiplications;
} tiles;

static _Thread_local tiles own;

static bool configure(tiles *t, const uint8_t *from) {
    static const uint8_t zeros[14];
    shape s;
    memcpy(&s, from, sizeof s);
    if (s.palette > 1 || s.start_row != 0 || memcmp(s.reserved, zeros, sizeof zeros) != 0)
        return false;
    for (int i = 0; i < 16; i++)
        if (s.rows[i] > (i < TILES ? ROWS : 0) || s.row_bytes[i] > (i < TILES ? ROW_BYTES : 0) ||
            (s.rows[i] == 0) != (s.row_bytes[i] == 0))
            return false;
    memset(t->data, 0, sizeof t->data);
    t->shape = s;
    t->open = s.palette == 1;
    return true;
}

static bool is_usable(const tiles *t, int tile) {
    return t->open && tile < TILES && t->shape.rows[tile] > 0;
}

static bool load(tiles *t, int tile, const uint8_t *from, int64_t stride) {
    if (!is_usable(t, tile))
        return false;
    memset(t->data[tile], 0, sizeof t->data[tile]);
    for (int row = 0; row < t->shape.rows[tile]; row++)
        memcpy(t->data[tile][row], from + row * stride, t->shape.row_bytes[tile]);
    return true;
}

static bool store(const tiles *t, int tile, uint8_t *to, int64_t stride) {
    if (!is_usable(t, tile))
        return false;
    for (int row = 0; row < t->shape.rows[tile]; row++)
        memcpy(to + row * stride, t->data[tile][row], t->shape.row_bytes[tile]);
    return true;
}

static bool zero(tiles *t, int tile) {
    if (!is_usable(t, tile))
        return false;
    memset(t->data[tile], 0, sizeof t->data[tile]);
    return true;
}

/* tdpbssd: sums[m][n] += sum over k and i of a[m][4k + i] * b[k][4n + i], signed. */
static bool multiply(tiles *t, int sums, int a, int b) {
    const shape *s = &t->shape;
    if (!is_usable(t, sums) || !is_usable(t, a) || !is_usable(t, b) || sums == a || sums == b ||
        a == b || s->rows[sums] != s->rows[a] || s->row_bytes[sums] != s->row_bytes[b] ||
        s->row_bytes[a] != 4 * s->rows[b] || s->row_bytes[sums] % 4 != 0)
        return false;
    for (int m = 0; m < s->rows[sums]; m++)
        for (int n = 0; n < s->row_bytes[sums] / 4; n++) {
            uint32_t sum;
            memcpy(&sum, &t->data[sums][m][4 * n], sizeof sum);
            for (int k = 0; k < s->rows[b]; k++)
                for (int i = 0; i < 4; i++)
                    sum += (uint32_t)((int8_t)t->data[a][m][4 * k + i] *
                                      (int8_t)t->data[b][k][4 * n + i]);
            memcpy(&t->data[sums][m][4 * n], &sum, sizeof sum);
        }
    t->multiplications++;
    return true;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* A general register, by its number in instructions. */
static int64_t value_of(const ucontext_t *c, int number) {
    static const int place[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
    return c->uc_mcontext.gregs[place[number]];
}

/* The operands after the opcode: registers, or an address of base, index and displacement. */
typedef struct operand {
    bool memory;
    int reg, rm;
    int64_t base, index; /* index: the stride of a tile's rows */
    size_t bytes;
} operand;

static operand read_operand(const ucontext_t *c, const uint8_t *at, bool rex_x, bool rex_b) {
    operand o = {.memory = at[0] >> 6 != 3, .reg = at[0] >> 3 & 7, .rm = at[0] & 7, .bytes = 1};
    const int mod = at[0] >> 6;
    int base = o.rm;
    int32_t wide = 0;
    if (!o.memory)
        return o;
    if (o.rm == 4) {
        const int index = (at[1] >> 3 & 7) | (rex_x ? 8 : 0);
        o.index = index == 4 ? 0 : (int64_t)((uint64_t)value_of(c, index) << (at[1] >> 6));
        base = at[1] & 7;
        o.bytes++;
    }
    const bool relative = mod == 0 && o.rm == 5;
    const bool absent = mod == 0 && o.rm == 4 && base == 5;
    if (mod == 2 || relative || absent) {
        memcpy(&wide, at + o.bytes, sizeof wide);
        o.bytes += 4;
    } else if (mod == 1) {
        wide = (int8_t)at[o.bytes++];
    }
    if (relative)
        o.base = (int64_t)(uintptr_t)(at + o.bytes);
    else if (!absent)
        o.base = value_of(c, base | (rex_b ? 8 : 0));
    o.base += wide;
    return o;
}

enum { NONE, P66, PF3, PF2 }; /* prefixes in VEX encoding */

/* Executes the instruction at the faulting address. Returns its length, or 0 if it is not AMX. */
static size_t step(tiles *t, const ucontext_t *c) {
    const uint8_t *code = (const uint8_t *)(uintptr_t)c->uc_mcontext.gregs[REG_RIP];
    if (code[0] != 0xC4 || (code[1] & 0x1F) != 2 || (code[2] & 0x84) != 0)
        return 0; /* VEX of three bytes, map 0F38, W and L 0 */
    const int prefix = code[2] & 3, second = ~code[2] >> 3 & 15;
    const operand o = read_operand(c, code + 4, (code[1] & 0x40) == 0, (code[1] & 0x20) == 0);
    uint8_t *memory = (uint8_t *)(uintptr_t)o.base;
    bool done = false;
    if (code[3] == 0x49 && prefix == NONE && o.memory)
        done = configure(t, memory + o.index);
    else if (code[3] == 0x49 && prefix == NONE)
        done = !(t->open = false); /* tilerelease */
    else if (code[3] == 0x49 && prefix == PF2 && !o.memory)
        done = zero(t, o.reg);
    else if (code[3] == 0x4B && prefix == PF2 && o.memory)
        done = load(t, o.reg, memory, o.index);
    else if (code[3] == 0x4B && prefix == PF3 && o.memory)
        done = store(t, o.reg, memory, o.index);
    else if (code[3] == 0x5E && prefix == PF2 && !o.memory)
        done = multiply(t, o.reg, o.rm, second);
    return done ? 4 + o.bytes : 0;
}

/* ---- the process ----------------------------------------------------------------------------- */

int __real_sigaction(int number, const struct sigaction *action, struct sigaction *old);
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *old);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
uint64_t __real_tern_cpu_announced(void);
uint64_t __wrap_tern_cpu_announced(void);

static struct sigaction wanted; /* the program's own handler of illegal instructions */
static atomic_uint_least64_t requests;

bool tile_emulated(void) {
    unsigned eax, ebx, ecx, edx;
    return !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || (edx >> 24 & 3) != 3;
}

bool tile_open(void) {
    return own.open;
}

uint64_t tile_multiplications(void) {
    return own.multiplications;
}

uint64_t tile_requests(void) {
    return atomic_load(&requests);
}

static void on_illegal_instruction(int number, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    const size_t length = step(&own, c);
    (void)info;
    c->uc_mcontext.gregs[REG_RIP] += (long long)length;
    if (length > 0)
        return;
    if (wanted.sa_handler != SIG_DFL && wanted.sa_handler != SIG_IGN)
        wanted.sa_handler(number);
    else
        (void)__real_sigaction(number, &wanted, NULL); /* the instruction faults again */
}

__attribute__((constructor)) static void start(void) {
    struct sigaction action = {.sa_sigaction = on_illegal_instruction, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    if (tile_emulated() && __real_sigaction(SIGILL, &action, NULL) != 0)
        abort();
}

int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    if (number != SIGILL || !tile_emulated())
        return __real_sigaction(number, action, old);
    if (old != NULL)
        *old = wanted;
    if (action != NULL)
        wanted = *action;
    return 0;
}

/* cmocka's library calls this instead of libc's. */
sighandler_t signal(int number, sighandler_t handler) {
    const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigaction old;
    return __wrap_sigaction(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

/* Only arch_prctl(ARCH_REQ_XCOMP_PERM, 18) is answered here. */
long __wrap_syscall(long number, ...) {
    const char *said = getenv("PRETEND_TILES");
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number != SYS_arch_prctl || (int)a[0] != 0x1023 || (int)a[1] != 18)
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    atomic_fetch_add(&requests, 1);
    if (said != NULL && strcmp(said, "refused") == 0) {
        errno = EPERM;
        return -1;
    }
    return tile_emulated() ? 0 : __real_syscall(number, a[0], a[1]);
}

uint64_t __wrap_tern_cpu_announced(void) {
    const uint64_t amx = TERN_CPU_MASK(AMXTILE) | TERN_CPU_MASK(AMXINT8);
    const uint64_t features = __real_tern_cpu_announced();
    return tile_emulated()
               ? tern_permitted_features(features | (amx & tern_believed_features(NULL)))
               : features;
}
