/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/pull/holdings.h"

#include <string.h>

#include "base/word_list.h"

/* True for a folder's file that `tern convert` reads: how vectors are pooled, further templates. */
static bool belongs_in_folder(const char *file) {
    static const char *const folders[] = {"additional_chat_templates/", "chat_templates/"};
    const char *base = file_base_name(file);
    if (strchr(file, '/') + 1 != base)
        return false;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (text_begins_with(file, folders[i]))
            return text_ends_with(file, ".jinja");
    return file[0] >= '0' && file[0] <= '9' && strcmp(base, "config.json") == 0;
}

static bool belongs_to_weights(const char *file) {
    static const char *const endings[] = {".safetensors",
                                          ".safetensors.index.json",
                                          "config.json",
                                          "tokenizer.json",
                                          "tokenizer.model",
                                          "tokenizer_config.json",
                                          "special_tokens_map.json",
                                          "added_tokens.json",
                                          "vocab.json",
                                          "merges.txt",
                                          "vocab.txt",
                                          "sentencepiece.bpe.model",
                                          "modules.json",
                                          ".jinja"};
    if (strchr(file, '/') != NULL)
        return belongs_in_folder(file);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (text_ends_with(file, endings[i]))
            return true;
    return false;
}

static bool is_consolidated(const char *file) {
    return text_begins_with(file, "consolidated");
}

static bool is_adapter(const char *file) {
    return text_begins_with(file, "adapter_");
}

holdings holdings_of(const char *const *files, size_t n) {
    holdings found = {0};
    for (size_t i = 0; i < n; i++) {
        const char *file = files[i];
        const bool weights = strchr(file, '/') == NULL && text_ends_with(file, ".safetensors");
        found.adapter = found.adapter || (weights && is_adapter(file));
        found.consolidated = found.consolidated || (weights && is_consolidated(file));
        found.weights += weights && !is_adapter(file) && !is_consolidated(file);
    }
    return found;
}

bool holdings_want(const holdings *h, const char *file) {
    return belongs_to_weights(file) && !is_adapter(file) &&
           !(is_consolidated(file) && h->weights > 0);
}
