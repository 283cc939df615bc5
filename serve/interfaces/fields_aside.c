/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of the table of fields: those that cannot change an answer, and those that are
 * known and not done. */

#include <string.h>

#include "serve/interfaces/field_kinds.h"
#include "serve/interfaces/fields.h"

/* A row whose field is not done, and why. */
typedef struct aside {
    field field;
    const char *why;
} aside;

bool field_refuse(const field_reading *in, const char *why) {
    return refuse(in->r, 400, in->at->name, "%s: %s", in->at->name, why);
}

/* Only for rows of this table. */
static bool refuse_it(const field_reading *in) {
    return field_refuse(in, ((const aside *)(const void *)in->at)->why);
}

static bool read_harmless(const field_reading *in, const json_t *value) {
    (void)value;
    ask_note_ignored(in->a, in->at->name);
    return true;
}

/* True for values that ask for nothing: an empty text, array or object, and the number, or the
 * truth value, that the row calls neutral. */
static bool asks_nothing(const field *at, const json_t *value) {
    if (json_is_boolean(value))
        return json_is_true(value) == (at->low != 0.0);
    if (json_is_number(value))
        return json_number_value(value) == at->low;
    return (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

static bool read_unused(const field_reading *in, const json_t *value) {
    return asks_nothing(in->at, value) || refuse_it(in);
}

/* For fields whose every value asks for something. */
static bool read_refused(const field_reading *in, const json_t *value) {
    (void)value;
    return refuse_it(in);
}

static bool is_word(const json_t *value, const char *word) {
    const char *given = json_string_value(value);
    return given != NULL && strcmp(given, word) == 0;
}

/* Accepts only values that ask for no function call. */
static bool read_function_call(const field_reading *in, const json_t *value) {
    return is_word(value, "none") || is_word(value, "auto") || refuse_it(in);
}

static bool read_modalities(const field_reading *in, const json_t *value) {
    return (json_array_size(value) == 1 && is_word(json_array_get(value, 0), "text")) ||
           refuse_it(in);
}

/* Reads how a long conversation may be shortened. Thinking of earlier turns is left out or kept as
 * the template has it; nothing else is taken out. */
static bool read_context_management(const field_reading *in, const json_t *value) {
    static const char allowed[] = "clear_thinking_";
    const json_t *edits = json_object_get(value, "edits");
    for (size_t i = 0; i < json_array_size(edits); i++) {
        const char *type = json_string_value(json_object_get(json_array_get(edits, i), "type"));
        if (type == NULL || strncmp(type, allowed, sizeof allowed - 1) != 0)
            return refuse_it(in);
    }
    if (!json_is_object(value))
        return refuse_it(in);
    return read_harmless(in, value);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* `neutral` is the number that asks for nothing; 1 also says that only true does. */
#define HARMLESS(name, kinds, why)                                                                 \
    { {name, kinds, "*", read_harmless, 0, 0, 0}, why }
#define UNUSED(name, kinds, shape, neutral, why)                                                   \
    { {name, kinds, shape, read_unused, neutral, neutral, 0}, why }
#define READ(name, kinds, shape, read, why)                                                        \
    { {name, kinds, shape, read, 0, 0, 0}, why }

#define KEPT "a name for records of the client; nothing depends on it"
#define PLACES "where and how soon it is computed; answers do not depend on that"
#define CACHES "what is found in the cache changes times alone"
#define OFF "belongs to a way of picking tokens that is switched off"
#define PICKS "tokens are not picked that way by this server"
#define MEDIA "this server reads and writes text only"
#define HOSTED "this server runs no tools or services of its own"
#define STORES "nothing is kept by this server"
#define ENDS "answers do not end there in this server"
#define TELLS "replies do not tell that"

/* clang-format off: one field a line */
static const aside rows[] = {
    HARMLESS("user", ANY, KEPT),
    HARMLESS("metadata", OPENAI | MESSAGE | NATIVE, KEPT),
    HARMLESS("safety_identifier", CHAT | RESPONSE, KEPT),
    HARMLESS("request_id", ANY, KEPT),
    HARMLESS("rid", OPENAI, KEPT),
    HARMLESS("session_id", OPENAI, KEPT),
    HARMLESS("extra_key", OPENAI, KEPT),
    HARMLESS("custom_labels", OPENAI, KEPT),
    HARMLESS("user_profile_id", MESSAGE, KEPT),
    HARMLESS("workspace_id", MESSAGE, KEPT),
    HARMLESS("diagnostics", MESSAGE, KEPT),
    HARMLESS("billing_policy", MESSAGE, KEPT),
    HARMLESS("fallback_credit_token", MESSAGE, KEPT),
    HARMLESS("fallbacks", MESSAGE, "other models to ask where this one is not to be had"),
    HARMLESS("betas", MESSAGE, "each feature has a field of its own"),
    HARMLESS("store", CHAT | MESSAGE, "the answer is the same, stored or not"),
    HARMLESS("service_tier", CHAT | RESPONSE | MESSAGE, PLACES),
    HARMLESS("inference_geo", MESSAGE, PLACES),
    HARMLESS("speed", MESSAGE, PLACES),
    HARMLESS("priority", OPENAI | RESPONSE, PLACES),
    HARMLESS("prediction", OPENAI, "a guess at the answer changes times alone"),
    HARMLESS("kv_transfer_params", OPENAI, PLACES),
    HARMLESS("ec_transfer_params", OPENAI, PLACES),
    HARMLESS("bootstrap_host", OPENAI, PLACES),
    HARMLESS("bootstrap_port", OPENAI, PLACES),
    HARMLESS("bootstrap_room", OPENAI, PLACES),
    HARMLESS("routed_dp_rank", OPENAI, PLACES),
    HARMLESS("data_parallel_rank", OPENAI, PLACES),
    HARMLESS("disagg_prefill_dp_rank", OPENAI, PLACES),
    HARMLESS("backend_sampling", OPEN, PLACES),
    HARMLESS("cache_control", MESSAGE, CACHES),
    HARMLESS("cache_salt", OPENAI | RESPONSE, CACHES),
    HARMLESS("prompt_cache_key", CHAT | RESPONSE, CACHES),
    HARMLESS("prompt_cache_options", CHAT | RESPONSE, CACHES),
    HARMLESS("prompt_cache_retention", CHAT | RESPONSE, CACHES),
    HARMLESS("n_cache_reuse", OPEN, CACHES),
    HARMLESS("speculative.n_max", OPEN, "guesses change times alone"),
    HARMLESS("speculative.n_min", OPEN, "guesses change times alone"),
    HARMLESS("speculative.p_min", OPEN, "guesses change times alone"),
    HARMLESS("n_keep", OPEN,
             "nothing is taken out of a context that is full: the answer ends there"),
    HARMLESS("n_discard", OPEN,
             "nothing is taken out of a context that is full: the answer ends there"),
    HARMLESS("t_max_prompt_ms", OPEN, "prompts are read to their end"),
    HARMLESS("timings_per_token", NATIVE, "times are told at the end"),
    HARMLESS("return_progress", OPEN | RESPONSE, "how far a prompt is read is not told"),
    HARMLESS("return_cached_tokens_details", OPENAI,
             "usage tells the tokens that were found in the cache"),
    HARMLESS("max_tool_calls", RESPONSE, "a limit for tools that the server runs; it runs none"),
    HARMLESS("guided_decoding_backend", OPEN, "one program holds answers to their form"),
    HARMLESS("stream_interval", OPENAI, "how many chunks a stream has changes no text"),
    HARMLESS("truncation_side", OPENAI | ASK_VECTORS, "belongs to truncate_prompt_tokens"),
    HARMLESS("routed_experts_prompt_start", OPENAI, "belongs to return_routed_experts"),
    HARMLESS("return_token_offsets", OPENAI, "belongs to routes that this server does not have"),
    HARMLESS("return_mm_kwargs", OPENAI, "belongs to routes that this server does not have"),
    HARMLESS("spaces_between_special_tokens", OPENAI, "control tokens have no text"),
    HARMLESS("penalize_nl", OPEN, "penalties make no exception for line ends"),
    HARMLESS("mirostat_tau", OPEN, OFF),
    HARMLESS("mirostat_eta", OPEN, OFF),
    HARMLESS("dynatemp_exponent", OPEN, OFF),
    HARMLESS("xtc_threshold", OPEN, OFF),
    HARMLESS("dry_base", OPEN, OFF),
    HARMLESS("dry_allowed_length", OPEN, OFF),
    HARMLESS("dry_penalty_last_n", OPEN, OFF),
    HARMLESS("dry_sequence_breakers", OPEN, OFF),

    UNUSED("samplers", OPEN, "*", 0, PICKS),
    UNUSED("mirostat", OPEN, "i", 0, PICKS),
    UNUSED("typical_p", OPEN, "n", 1, PICKS),
    UNUSED("dynatemp_range", OPEN, "n", 0, PICKS),
    UNUSED("dry_multiplier", OPEN, "n", 0, PICKS),
    UNUSED("xtc_probability", OPEN, "n", 0, PICKS),
    UNUSED("top_n_sigma", OPEN, "n", -1, PICKS),
    UNUSED("tfs_z", OPEN, "n", 1, PICKS),
    UNUSED("top_a", OPEN, "n", 0, PICKS),
    UNUSED("min_keep", OPEN, "i", 0, PICKS),
    UNUSED("watermarking", OPENAI, "b", 0, PICKS),
    UNUSED("use_beam_search", OPENAI, "b", 0, PICKS),
    UNUSED("length_penalty", OPENAI, "n", 1, PICKS),
    UNUSED("min_tokens", OPENAI, "i", 0, "answers may end before that"),
    UNUSED("allowed_token_ids", OPENAI, "*", 0, PICKS),
    UNUSED("bad_words", OPENAI, "*", 0, PICKS),
    UNUSED("logits_processors", OPENAI, "*", 0, PICKS),
    UNUSED("custom_logit_processor", OPENAI, "*", 0, PICKS),
    UNUSED("custom_params", OPENAI, "*", 0, PICKS),
    UNUSED("vllm_xargs", OPENAI, "*", 0, PICKS),
    UNUSED("thinking_token_budget", OPENAI, "*", -1, "thinking has no limit of its own"),
    UNUSED("thinking_budget_tokens", OPEN, "*", -1, "thinking has no limit of its own"),
    UNUSED("reasoning_budget_tokens", OPEN, "*", -1, "thinking has no limit of its own"),
    UNUSED("grammar_lazy", OPEN, "b", 0, "a grammar counts from the first token on"),
    UNUSED("grammar_triggers", OPEN, "*", 0, "a grammar counts from the first token on"),
    UNUSED("preserved_tokens", OPEN, "*", 0, "control tokens give no text"),
    UNUSED("guided_whitespace_pattern", OPEN, "*", 0, "white space in JSON has one rule here"),
    UNUSED("structural_tag", OPENAI, "*", 0, "tools are the way to ask for parts that have a form"),
    UNUSED("stop_regex", OPENAI, "*", 0, ENDS),
    UNUSED("no_stop_trim", OPENAI, "b", 0, "a text that ends an answer is not part of it"),
    UNUSED("include_stop_str_in_output", OPENAI, "b", 0,
           "a text that ends an answer is not part of it"),
    UNUSED("repetition_detection", OPENAI, "*", 0, ENDS),
    UNUSED("n_indent", OPEN, "i", 0, ENDS),
    UNUSED("t_max_predict_ms", OPEN, "i", 0,
           "answers do not end by the clock; max_tokens limits them"),
    UNUSED("skip_special_tokens", OPENAI, "b", 1, "control tokens give no text"),
    UNUSED("detokenize", OPENAI, "b", 1, "answers are text"),
    UNUSED("truncate_prompt_tokens", OPENAI | ASK_VECTORS, "*", 0,
           "a prompt that does not fit is refused, never cut"),
    READ("prompt_logprobs", OPENAI, "*", read_refused,
         "\"echo\" with \"logprobs\" tells those of a completion's prompt"),
    UNUSED("prompt_embeds", OPENAI, "*", 0, "prompts are texts or token ids"),
    UNUSED("return_token_ids", OPENAI, "b", 0, "/completion has \"return_tokens\""),
    UNUSED("return_tokens_as_token_ids", OPENAI, "b", 0, TELLS),
    UNUSED("return_prompt_text", CHAT, "b", 0, "/apply-template tells it"),
    UNUSED("logprob_token_ids", OPENAI, "*", 0, "\"top_logprobs\" are those of the likeliest"),
    UNUSED("return_hidden_states", OPENAI, "*", 0, TELLS),
    UNUSED("return_routed_experts", OPENAI, "b", 0, TELLS),
    UNUSED("response_fields", OPENAI, "*", 0, "replies are whole"),
    UNUSED("post_sampling_probs", OPEN, "b", 0, "probabilities are those before tokens are picked"),
    UNUSED("add_special_tokens", CHAT, "b", 0, "the chat template writes the control tokens"),
    UNUSED("include_reasoning", CHAT, "b", 1, "what the model thinks is told"),
    UNUSED("stream_reasoning", CHAT, "b", 1, "what the model thinks is told as it comes"),
    UNUSED("echo", CHAT, "b", 0, "only completions repeat their prompt"),
    UNUSED("chat_template", CHAT, "*", 0, "the template is the server's (--chat-template)"),
    UNUSED("system_prompt", NATIVE, "*", 0, "a completion's prompt is all that the model reads"),
    UNUSED("lora_path", OPENAI, "*", 0, "adapters are chosen by `lora`"),
    UNUSED("session_params", OPENAI, "*", 0, STORES),
    UNUSED("image_data", OPEN, "*", 0, MEDIA),
    UNUSED("audio", OPENAI, "*", 0, MEDIA),
    UNUSED("image", RESPONSE, "*", 0, MEDIA),
    UNUSED("media_io_kwargs", OPENAI, "*", 0, MEDIA),
    UNUSED("mm_processor_kwargs", OPENAI | RESPONSE, "*", 0, MEDIA),
    READ("modalities", OPENAI, "[s]", read_modalities, "only [\"text\"]: " MEDIA),
    UNUSED("moderation", CHAT | RESPONSE, "*", 0, HOSTED),
    UNUSED("web_search_options", CHAT, "*", 0, HOSTED),
    UNUSED("mcp_servers", MESSAGE, "*", 0, HOSTED),
    UNUSED("container", MESSAGE, "*", 0, HOSTED),
    UNUSED("access_programs", RESPONSE, "*", 0, HOSTED),
    UNUSED("personality", RESPONSE, "*", 0, "\"instructions\" say how answers should be"),
    UNUSED("prompt", RESPONSE, "*", 0, STORES ", prompts neither"),
    UNUSED("conversation", RESPONSE, "*", 0, STORES ", conversations neither"),
    UNUSED("thread", MESSAGE, "*", 0, STORES ", conversations neither"),
    UNUSED("background", RESPONSE, "b", 0, STORES ", so answers are not fetched later"),
    UNUSED("background_options", RESPONSE, "*", 0, STORES ", so answers are not fetched later"),
    UNUSED("compaction", MESSAGE, "*", 0, "conversations are not shortened by this server"),
    READ("context_management", RESPONSE | MESSAGE, "*", read_context_management,
         "conversations are not shortened by this server"),
    UNUSED("tools", TEXT, "*", 0, "chats have tools"),
    READ("tool_choice", TEXT, "s", read_function_call, "chats have tools and tool_choice"),
    UNUSED("functions", OPENAI, "*", 0, "chats have tools"),
    READ("function_call", OPENAI, "s", read_function_call, "chats have tools and tool_choice"),
    UNUSED("suffix", CHAT, "s", 0, "completions fill in texts"),
    UNUSED("embd_normalize", ASK_NATIVE_EMBEDDING, "i", 2, "vectors have length 1"),
};
/* clang-format on */

const field *field_aside(size_t i) {
    return i < sizeof rows / sizeof *rows ? &rows[i].field : NULL;
}

const char *field_why(const field *f) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (&rows[i].field == f)
            return rows[i].why;
    return NULL;
}
