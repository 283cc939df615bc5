/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_DELTA_H
#define TERN_RUNTIME_ENGINE_FORWARD_DELTA_H

/*
 * Layers that are gated delta nets, and gates beside queries (docs/numerics.md, Delta nets). A
 * token changes the state of its sequence, so the tokens of a span are computed one after another;
 * lanes share spans and heads. Rows of several spans, and other lanes, are in no sum. So nothing
 * but a sequence's own tokens changes a bit, whatever passes they came in.
 */

#include "runtime/engine/forward/internal.h"

struct pass;

/* Lays out memory for T rows; none where there are no delta nets. */
tern_delta_scratch tern_delta_lay_out(const tern_config *c, size_t rows, tern_taker *t);

/* Sets the states of sequences that begin in this pass to zeros. */
void tern_delta_begin(struct pass *p);

/* The forms of the input of a delta net's first matrices. */
unsigned tern_delta_forms(const tern_layer *l);

/*
 * Runs the delta net of the pass's layer: the states of all spans go on by their rows, and
 * out[T][n_embd] of p->rows is what the layer adds to the stream. The rows are normed and quantized
 * already.
 */
void tern_delta_run(struct pass *p);

/* Takes the queries of p->rows from between their gates. */
void tern_queries_take(struct pass *p);

/* attended[T][n_head * head_dim] *= logistic of the gates beside the queries. */
void tern_queries_gate(struct pass *p);

#endif
