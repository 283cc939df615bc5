/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_WHITE_SPACE_H
#define TERN_RUNTIME_TEXT_TOKENIZER_WHITE_SPACE_H

#include "runtime/files/gguf/gguf.h"

/* Return the bytes of Unicode's White_Space at the start of a UTF-8 text, and at its end. */
size_t tern_space_before(tern_span text);
size_t tern_space_behind(tern_span text);

#endif
