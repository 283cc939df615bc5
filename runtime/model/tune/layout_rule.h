/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_TUNE_LAYOUT_RULE_H
#define TERN_RUNTIME_MODEL_TUNE_LAYOUT_RULE_H

/*
 * The layout of ternary matrices where nothing else decides it: 2 bits a weight, which takes the
 * fewest instructions, or base 3 with 1.6 bits, which reads the fewest bytes. Decoding is faster in
 * base 3 where memory, not arithmetic, bounds it. A probe multiplies one matrix in both layouts, in
 * turn, with weights from where the model's come from (measure.h: tern_tuner_compare). Its figures
 * are kept with the tuner's choices where they are sure, and the layout follows from them and from
 * how many sequences are expected to be decoded at once: later starts neither measure again nor
 * decide otherwise. Products with 8 and 16 tokens, which passes over many sequences make, reach the
 * limit of arithmetic first; they are weighed only where such passes are expected.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/model/tune/estimate.h"
#include "tern/kernels.h"

/* Passes of several tokens that a probe measures: tern_layout_pass_tokens. */
enum { TERN_LAYOUT_PASSES = 2 };

/* The probe for a number of threads and a stream (tern_tune_stream). */
typedef struct tern_layout_probe {
    uint32_t threads; /* 0: there was no probe */
    uint64_t stream;
    tern_layout dense; /* the layout in base 3 that this machine has kernels for */
    uint32_t ratio; /* time of a token in base 3, in thousandths of the time in 2 bits; above 0 */
    uint32_t noise; /* how far the true ratio may be from it (tern_estimate); the largest of all
                       measured passes */
    uint32_t
        passes[TERN_LAYOUT_PASSES]; /* as ratio, of passes of several tokens; 0: not measured */
} tern_layout_probe;

enum {
    TERN_LAYOUT_PROBES = 16,           /* kept for one machine; the newest */
    TERN_LAYOUT_RATIO_LIMIT = 1000000, /* figures of a probe are at most this */
    TERN_LAYOUT_MARGIN = 50, /* thousandths of time that base 3 must save: passes of several tokens
                                take longer in it (docs/tuning.md) */
    TERN_LAYOUT_REASON_BYTES = 200
};

/* The layout of 2 bits. */
tern_layout tern_layout_usual(void);

/* Tokens of measured pass i, from few to many: 8 and 16. */
uint32_t tern_layout_pass_tokens(size_t i);

/* How many of these passes count where that many sequences are expected to be decoded at once. */
size_t tern_layout_passes(uint32_t together);

/* The rule: base 3 if a token alone saves more time than the margin, and than the noise, and if no
 * pass that counts takes longer in it. A pass that was not measured counts as longer. */
tern_layout tern_layout_rule(const tern_layout_probe *probe, uint32_t together);

/* True if the rule needs no further figure for so many sequences. */
bool tern_layout_is_enough(const tern_layout_probe *probe, uint32_t together);

/*
 * True if other work of the machine cannot have hidden or made the lead: the noise is within the
 * margin, or does not reach from what a token saves to the margin. Other probes count for the start
 * that made them, and are not kept for later ones.
 */
bool tern_layout_is_sure(const tern_layout_probe *probe);

/* The limit for the time of a token alone, or of a pass of several: measuring has to find out if it
 * is below this share of the time in 2 bits. */
double tern_layout_limit(bool alone);

/* Makes a probe from the time of a token alone in base 3, which is layout `dense`. */
tern_layout_probe tern_layout_probe_of(uint32_t threads, uint64_t stream, tern_layout dense,
                                       const tern_estimate *alone);

/* Adds pass i: its ratio, and its noise where that is larger. */
void tern_layout_add_pass(tern_layout_probe *probe, size_t i, const tern_estimate *pass);

/* Writes why the rule decides so, for people. */
void tern_layout_reason(const tern_layout_probe *probe, uint32_t together,
                        char text[TERN_LAYOUT_REASON_BYTES]);

/* Probes of several numbers of threads. Zero-initialise it. */
typedef struct tern_layout_probes {
    tern_layout_probe list[TERN_LAYOUT_PROBES];
    size_t n;
} tern_layout_probes;

/* NULL: there is none. */
const tern_layout_probe *tern_layout_find(const tern_layout_probes *probes, uint32_t threads,
                                          uint64_t stream);

/*
 * Adds a probe or replaces the one of its threads and stream. If the list is full, the oldest goes.
 */
void tern_layout_keep(tern_layout_probes *probes, const tern_layout_probe *probe);

#endif
