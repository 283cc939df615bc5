/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ISA_VQUAD_H
#define TERN_ISA_VQUAD_H

/* Built from the verbs of the instruction set's header, which is included before. */

#ifndef TERN_OWN_QUAD
/*
 * An index for vb_lookup32 out of the low (half 0) or high nibble of each byte of slots, and bit i of
 * that byte of bits as its fifth bit. A set whose lookup passes over the bits above has its own.
 */
static inline vb vb_quad(vb slots, int half, vb bits, int i) {
    return vb_join1(half ? vb_nibble_hi(slots) : vb_nibble_lo(slots), bits, i);
}
#endif

#endif
