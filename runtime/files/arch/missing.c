/* SPDX-License-Identifier: Apache-2.0 */

/* Architectures of GGUF files that tern does not run, and what each would need. */

#include <string.h>

#include "runtime/files/arch/arch.h"

typedef struct missing {
    const char *name; /* general.architecture; "*" at the end stands for any ending */
    const char *what;
} missing;

static const missing table[] = {
    {"kimi-linear", "delta attention"},
    {"mamba*", "state spaces"},
    {"jamba", "state spaces"},
    {"falcon-h1", "state spaces"},
    {"granitehybrid", "state spaces"},
    {"nemotron_h*", "state spaces"},
    {"plamo2", "state spaces"},
    {"rwkv*", "recurrence"},
    {"arwkv7", "recurrence"},
    {"lfm2*", "convolution"},
    {"clip", "a vision tower"},
    {"qwen2vl", "a vision tower"},
    {"qwen3vl*", "a vision tower"},
    {"cogvlm", "a vision tower"},
    {"chameleon", "a vision tower"},
    {"hunyuan_vl", "a vision tower"},
    {"paddleocr", "a vision tower"},
    {"wavtokenizer-dec", "a decoder of sound"},
    {"dbrx", "experts"},
    {"grok", "experts"},
    {"llama4", "experts"},
    {"ernie4_5-moe", "experts"},
    {"glm4moe", "experts"},
    {"granitemoe", "experts"},
    {"phimoe", "experts"},
    {"bailingmoe*", "experts"},
    {"hunyuan-moe", "experts"},
    {"afmoe", "experts"},
    {"arctic", "experts"},
    {"dots1", "experts"},
    {"exaone-moe", "experts"},
    {"grovemoe", "experts"},
    {"minimax-m2", "experts"},
    {"smallthinker", "experts"},
    {"llada-moe", "experts and attention to later tokens"},
    {"rnd1", "experts and attention to later tokens"},
    {"deepseek*", "experts or latent attention"},
    {"minicpm3", "latent attention"},
    {"gemma", "this older form of Gemma"},
    {"gemma2", "soft bounds of attention and logits"},
    {"gemma3n", "several residual streams"},
    {"gemma4*", "this newer form of Gemma"},
    {"*bert*", "attention to later tokens"},
    {"gemma-embedding", "attention to later tokens"},
    {"llama-embed", "attention to later tokens"},
    {"dream", "attention to later tokens"},
    {"llada", "attention to later tokens"},
    {"t5*", "an encoder beside a decoder"},
    {"gpt2", "learned positions and LayerNorm"},
    {"gptneox", "LayerNorm and parallel attention"},
    {"bloom", "a bias by distance"},
    {"mpt", "a bias by distance"},
    {"jais", "a bias by distance"},
    {"refact", "a bias by distance"},
    {"falcon", "LayerNorm and parallel attention"},
    {"phi2", "LayerNorm and parallel attention"},
    {"chatglm", "matrices of q, k and v in one"},
    {"gptj", "LayerNorm and parallel attention"},
    {"codeshell", "LayerNorm"},
    {"nemotron", "LayerNorm"},
    {"olmo", "LayerNorm"},
    {"orion", "LayerNorm"},
    {"stablelm", "LayerNorm"},
    {"starcoder*", "LayerNorm"},
    {"command-r", "LayerNorm and parallel attention"},
};

static bool begins(tern_span name, const char *with, size_t size) {
    return name.size >= size && memcmp(name.data, with, size) == 0;
}

/* Matches "x", "x*" or "*x*". */
static bool matches(tern_span name, const char *pattern) {
    const size_t size = strlen(pattern);
    if (pattern[0] == '*')
        return memmem(name.data, name.size, pattern + 1, size - 2) != NULL;
    if (pattern[size - 1] == '*')
        return begins(name, pattern, size - 1);
    return name.size == size && begins(name, pattern, size);
}

const char *tern_arch_missing(tern_span name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (matches(name, table[i].name))
            return table[i].what;
    return NULL;
}
