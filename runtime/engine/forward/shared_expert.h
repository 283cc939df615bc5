/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_SHARED_EXPERT_H
#define TERN_RUNTIME_ENGINE_FORWARD_SHARED_EXPERT_H

/* The expert that all tokens take beside their own: docs/numerics.md says which bits come out. Its
 * four steps stand between those of the other experts, in this order. */

struct pass;

/* Multiplies the inputs of the experts by its gate, and by its own two matrices. */
void tern_shared_expert_begin(struct pass *p);

/* norm[T][n_ff_shared] = act(gate) * up, and the forms of it that down reads. The inputs of the
 * experts are lost. */
void tern_shared_expert_activate(struct pass *p);

/* out[T][n_embd] = down of that. */
void tern_shared_expert_end(struct pass *p);

/* norm[T][n_embd], the sum of the other experts' results, += logistic(gate) * out. */
void tern_shared_expert_add(struct pass *p);

#endif
