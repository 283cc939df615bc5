/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_PAUSE_H
#define TERN_BASE_PAUSE_H

/* Tells the processor that a thread asks for a value again and again: it saves power, and leaves
 * the core to the other thread on it. Does nothing where the processor has no such hint. */
static inline void tern_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
