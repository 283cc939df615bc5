/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_WHITE_SPACE_H
#define TERN_RUNTIME_TEXT_TOKENIZER_WHITE_SPACE_H

#include "runtime/files/gguf/gguf.h"

/* Bytes of Unicode's White_Space that a UTF-8 text begins with, and ends with. */
size_t tern_space_before(tern_span text);
size_t tern_space_behind(tern_span text);

#endif
