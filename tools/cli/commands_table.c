/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands. */

#include <string.h>

#include "tools/cli/options.h"

static const command_spec commands[COMMAND_COUNT] = {
    [COMMAND_RUN] =
        {"run", "[MODEL] [PROMPT]", 0, 2, "generate text from a prompt",
         "Writes the generated text to standard output while it is generated. The prompt comes "
         "from\n"
         "-p, -f, --tokens, or a pipe on standard input (one newline at the end of a file or pipe "
         "is\ndropped).\n"
         "Without -m the small model that comes with tern answers. The same seed, model and "
         "prompt\n"
         "give the same text on every machine, whatever the instruction set or thread count.\n",
         "  tern run -p 'The capital of France is'\n"
         "  tern run model.gguf 'The capital of France is'\n"
         "  tern run -m model.gguf --chat -p 'What is 2+2?' -n 64\n"
         "  tern run --server http://127.0.0.1:8080 --chat 'What is 2+2?'\n"
         "  tern run -m model.gguf -p 'Once upon a time' --temp 0.8 --top-p 0.95 --seed 7\n"
         "  echo 'Dear reader,' | tern run -m model.gguf --json\n",
         .n_places = 2, .places = {OPT_MODEL, OPT_PROMPT}},
    [COMMAND_CHAT] =
        {"chat", "[MODEL]", 0, 1, "talk with a model",
         "A conversation in the model's own chat format. On a terminal lines can be edited and "
         "are\n"
         "remembered; from a pipe each line is a message, and each answer is printed. /help lists\n"
         "what else can be typed: /clear /trim /regen /set /system /settings /seed /save /load\n"
         "/stats /exit. Ctrl-C stops an answer. Tokens are picked as the model recommends (its\n"
         "generation_config.json or metadata), else with --temp 0.7 --top-p 0.95.\n",
         "  tern chat model.gguf\n"
         "  tern chat -m model.gguf --system 'Answer briefly.' --temp 0.7 --top-p 0.9\n"
         "  printf 'What is 2+2?\\nAnd 3+3?\\n' | tern chat\n"
         "  tern chat --server http://127.0.0.1:8080\n",
         .n_places = 1, .places = {OPT_MODEL}},
    [COMMAND_SERVE] =
        {"serve", "[MODEL]", 0, 1, "answer other programs over HTTP, as OpenAI's interface does",
         "Listens on 127.0.0.1, port 8080, and says where to point a client. A browser shows a\n"
         "page to chat on there, curl a request to paste. Many requests are computed at once;\n"
         "each gets the text that it would get alone, and a digest that shows it.\n"
         "Tokens are picked as in chat, unless a request says otherwise. SIGTERM and Ctrl-C let\n"
         "answers that are under way end first. docs/serving.md tells all.\n",
         "  tern serve\n"
         "  tern serve model.gguf --port 9000 --parallel 8\n"
         "  tern serve -m large.gguf -m small.gguf\n"
         "  tern serve -m model.gguf --host 0.0.0.0 --api-key-file keys.txt\n",
         "server", .n_places = 1, .places = {OPT_SERVED}},
    [COMMAND_EMBED] =
        {"embed", "[MODEL] [TEXT]...", 0, OPTIONS_MAX_OPERANDS,
         "make vectors of texts, to compare and to search",
         "Texts are arguments, or lines of --prompts-file or of a pipe on standard input: a text,\n"
         "{\"prompt\": ...} or {\"tokens\": [...]}. Many are computed at once; each gets the "
         "vector that\n"
         "it has alone, the same bits on every machine. Vectors have length 1. Each becomes a line "
         "of\n"
         "JSON on standard output or in --output, or a row of an array where that ends with .npy.\n"
         "docs/embedding.md has the rest.\n",
         "  tern embed model.gguf 'A first text.' 'A second one.'\n"
         "  tern embed -m model.gguf --prompts-file prompt.txt -o vectors.npy\n"
         "  tern embed -m model.gguf --pooling mean < prompt.txt > vectors.jsonl\n",
         "embedding", .n_places = 2, .places = {OPT_MODEL, OPT_TEXT}},
    [COMMAND_LOGITS] =
        {"logits", "[MODEL] [PROMPT]", 0, 2, "print, hash or save the logits of a prompt",
         "Without --output and --sha256 the ten most likely next tokens are printed. Files hold\n"
         "little-endian 32-bit floats, positions x vocabulary; --sha256 prints the hash of those\n"
         "bytes, which is the same on every instruction set, for every thread count and split.\n",
         "  tern logits -m model.gguf -p 'The capital of France is'\n"
         "  tern logits -m model.gguf --tokens 1,2,3 --all --sha256\n"
         "  tern logits -m model.gguf -f prompt.txt --all --output logits.f32\n",
         .n_places = 2, .places = {OPT_MODEL, OPT_PROMPT}},
    [COMMAND_SCORE] =
        {"score", "[MODEL] [PROMPT]", 0, 2, "the probabilities of given continuations of a prompt",
         "Nothing is generated: each option is read after the prompt, and the logarithm of its\n"
         "probability is printed, also for each token, and the share of each among all options.\n"
         "Numbers are the same on every instruction set. Put the blank that separates words at "
         "the\n"
         "beginning of an option.\n",
         "  tern score -m model.gguf -p 'The sky is' --option ' blue' --option ' green'\n"
         "  tern score -m model.gguf -f prompt.txt --option ' there' --option ' a' --json\n",
         .n_places = 2, .places = {OPT_MODEL, OPT_PROMPT}},
    [COMMAND_BENCH] =
        {"bench", "[MODEL]", 0, 1, "measure prefill and decode against this machine's memory",
         "Evaluates a prompt of random tokens (or of a text, -f), then decodes. Figures are "
         "medians\n"
         "of the repeats. Reading speed of the memory is measured with the same number of threads\n"
         "around each decoding; the fraction says how much of it decoding used. --depths,\n"
         "--batch-sizes, --thread-counts and --sequences take lists and print a table each.\n",
         "  tern bench model.gguf -p 512 -n 64\n"
         "  tern bench -m model.gguf -p 0 -n 128 --threads 1 --json\n"
         "  tern bench -m model.gguf -p 512 -n 64 --depth 2048 --repeat 5\n"
         "  tern bench -m model.gguf -p 0 --depths 0,64 --batch-sizes 2,4,8 --thread-counts 1,2\n"
         "  tern bench -m model.gguf -p 128 -n 32 --stages\n"
         "  tern bench -m model.gguf -p 64 -n 32 --sequences 1,2,4,8,16\n"
         "  tern bench -m model.gguf -f text.txt --sparsity\n",
         "benchmark", .n_places = 1, .places = {OPT_MODEL}},
    [COMMAND_TUNE] = {"tune", "[MODEL]", 0, 1,
                      "measure which kernels and layouts are the fastest here",
                      "Measures every kernel and packed layout that could multiply by the model's "
                      "matrices, with 1\n"
                      "to --threads threads, at leisure, and keeps the choices in the cache "
                      "folder, where other\n"
                      "commands find them. Those measure a little themselves when a model is "
                      "loaded for the first\n"
                      "time. Changes no bit of any output. --json prints all figures.\n",
                      "  tern tune\n"
                      "  tern tune model.gguf --threads 4\n",
                      .n_places = 1, .places = {OPT_MODEL}},
    [COMMAND_PLAN] =
        {"plan", "[MODEL]", 0, 1, "predict how fast a model decodes on other machines, or several",
         "Divides what a token reads by the speed of the memory, which it measures here unless\n"
         "--bus gives another machine's, and adds what threads and ranks wait for each other.\n"
         "Shows each step, for one process, ranks on sockets and machines, and replicas, and the\n"
         "memory that each needs. --preset plans for a geometry without a file (--list).\n"
         "--ctx says after how many tokens. docs/scaling.md explains the figures.\n",
         "  tern plan model.gguf\n"
         "  tern plan -m model.gguf --nodes 4 --bus 200 --network 8,12.5 --threads 32\n"
         "  tern plan --preset 70b --nodes 8 --sockets 2 --bus 200 --threads 32 --users 64\n",
         .n_places = 1, .places = {OPT_MODEL}},
    [COMMAND_INSPECT] =
        {"inspect", "[MODEL]", 0, 1, "show what is in a model file and whether it runs here",
         "Shows metadata, tensors, the memory that the model would take, and the kernels chosen.\n",
         "  tern inspect model.gguf\n"
         "  tern inspect model.gguf --ctx 256 --kv f32 --json\n",
         "compat-check", .n_places = 1, .places = {OPT_MODEL}},
    [COMMAND_KERNELS] =
        {"kernels", "[MODEL]", 0, 1, "list every kernel, whether it runs here and which is chosen",
         "With MODEL (an argument or -m, not a variable) it lists what that model uses here: for "
         "each "
         "kind\n"
         "of matrix the packed layout, the kernels, and whether the table's order or a "
         "measurement\n"
         "chose them (tern tune). Weights are not read, nothing is measured.\n",
         "  tern kernels\n"
         "  tern kernels --isa avx2 --markdown\n"
         "  tern kernels model.gguf --threads 4\n",
         .n_places = 1, .places = {OPT_MODEL}},
    [COMMAND_COMPLETION] = {"completion", "SHELL", 1, 1, "print completion for bash, zsh or fish",
                            "An installed tern has it already, where shells look for it.\n",
                            "  tern completion bash > tern.bash && . ./tern.bash\n"
                            "  tern completion fish > tern.fish\n",
                            .alias = NULL},
    [COMMAND_SYNTH] = {"synth", "[OUT]", 0, 1,
                       "write a model of a real model's geometry with random weights",
                       "The same preset and seed give the same bytes on every machine.\n",
                       "  tern synth --list\n"
                       "  tern synth --preset bitnet-2b bitnet-2b.gguf --seed 1\n",
                       .files = {FILE_WRITTEN}},
    [COMMAND_VERIFY_DETERMINISM] =
        {"verify-determinism", "[MODEL]", 0, 1, "show that a model has one answer on this machine",
         "Runs the same tokens on every instruction set of this machine, in every packed layout,\n"
         "with 1 to 3 threads, the prompt cut in several ways, alone and beside another sequence.\n"
         "Prints one hash of all keys, values and logits, or the first difference: which run, and\n"
         "the layer and operation to look at. The hash is the same on every machine.\n"
         "With --schedules many sequences run at once, arrive, share prompts, guess, are masked,\n"
         "cancelled and set aside at random, with every format of the cache; tokens and digest\n"
         "of each must be those that it has alone on another instruction set.\n",
         "  tern verify-determinism\n"
         "  tern verify-determinism --schedules 20 --seed 1\n"
         "  tern verify-determinism -m model.gguf --kv q8_0\n",
         .n_places = 1, .places = {OPT_MODEL}},
    [COMMAND_CROSSVAL] =
        {"crossval", "[MODEL] [REFERENCE]", 0, 2, "compare with what another engine answered",
         "The reference holds prompts as token ids, logits, greedy tokens, and maybe keys and\n"
         "values; docs/validation.md describes it, lab/crossval-reference makes one. Fails when "
         "a\n"
         "cosine is below --tolerance or a greedy token differs where the reference was not "
         "nearly\n"
         "undecided. -p takes only the cases of that text; without a reference it asks an engine\n"
         "that lab/crossval-reference has installed.\n",
         "  tern crossval -m model.gguf --reference reference.json\n"
         "  tern crossval -m model.gguf --reference reference.json -p 'Once upon a time' --json\n",
         .n_places = 2, .places = {OPT_MODEL, OPT_REFERENCE}},
    [COMMAND_PERPLEXITY] =
        {"perplexity", "[MODEL] [FILE]", 0, 2, "measure how well a model predicts a text",
         "Cuts the text into windows of --ctx tokens [512] and scores the second half of each, as\n"
         "other engines do, so that figures compare. Prints e^(mean of -ln p) with its standard\n"
         "error and an interval. The figures are the same bits on every machine.\n",
         "  tern perplexity model.gguf text.txt\n"
         "  tern perplexity -m model.gguf -f text.txt --ctx 256 --stride 128 --json\n",
         .n_places = 2, .places = {OPT_MODEL, OPT_FILE}},
    [COMMAND_IMATRIX] =
        {"imatrix", "[MODEL] [FILE]", 0, 2, "find out which weights of a model matter, from a text",
         "Evaluates the text in windows of --ctx tokens [512] and adds up the squares of what "
         "comes\n"
         "into each column of each matrix. --output names the file to write, for `tern quantize\n"
         "--imatrix`; llama.cpp reads it, too, and its files can be used here. The same bytes on\n"
         "every machine, for every number of threads.\n",
         "  tern imatrix model.gguf text.txt -o model-imatrix.gguf\n"
         "  tern imatrix -m model.gguf -f text.txt --ctx 256 --windows 40 -o imatrix.dat\n"
         "  tern quantize model.gguf smaller.gguf --type q4_k --imatrix model-imatrix.gguf\n",
         .n_places = 2, .places = {OPT_MODEL, OPT_FILE}},
    [COMMAND_QUANTIZE] =
        {"quantize", "IN [OUT]", 1, 2, "write a model with its weights in another format",
         "Reads any model that tern runs and keeps all its metadata. Prints how many tensors keep\n"
         "their values and by how much the others change. Ternary weights keep theirs in i2_s,\n"
         "iq2_bn, tq1_0, tq2_0, q2_0, pq2_0, ptq1_0 and iq1_bn (if the scale fits 16 bits), in\n"
         "stq1_0 if of each four one is 0; others are not made ternary, or binary in q1_0, "
         "without\n"
         "--force-ternary. q2_k, mxfp4_moe and names with _s (but i2_s), _m, _l, _xs and _xxs are\n"
         "mixtures: some matrices have more bits.\n"
         "--pure makes all TYPE where a format has the same name.\n"
         "Embeddings and output head stay as they are for ternary types and become q8_0 for other\n"
         "types below 8 bits, unless they are quantized already. Where blocks do not fit, q4_k\n"
         "becomes q5_0, q5_k q5_1, q6_k q8_0, types of grids (iq1_s .. iq3_s) and iq4_xs iq4_nl,\n"
         "q2_k, q3_k and nvfp4 q4_0, blocks of 32 f16. int4 needs --to iebin, most types of grids "
         "and\n"
         "q2_k_s --imatrix.\n"
         "--plan prints what would become of each tensor, and needs no OUT.\n",
         "  tern quantize model.gguf smaller.gguf --type q4_k\n"
         "  tern quantize model.gguf model-tq2_0.gguf --type tq2_0 --embedding-type q8_0\n"
         "  tern quantize model.gguf --type int4 --int4-group 64 --plan\n"
         "  tern quantize model.gguf folder --to iebin --type int4 --int4-group 64\n",
         .files = {FILE_READ, FILE_WRITTEN}},
    [COMMAND_VERIFY] =
        {"verify", "RECEIPT", 1, 1, "check a receipt, and run it again",
         "Holds a receipt that `tern run --receipt` or `tern bench --receipt` wrote against every\n"
         "rule: what is missing, contradicts itself or was changed is named, one line each, and "
         "the\n"
         "exit status is 1. --replay then opens the model, picks every token again and compares\n"
         "tokens and logits bit for bit, on any instruction set, thread count, batch and layout.\n",
         "  tern verify ci/inference.json\n"
         "  tern verify receipt.json --replay -m model.gguf --isa scalar\n"
         "  tern verify receipt.json --public-key signing.key.pub --json\n",
         .files = {FILE_READ}},
    [COMMAND_REPLAY] =
        {"replay", "RECORDING", 1, 1, "ask again what tern serve --record kept",
         "Answers each request of the recording again, without a server: by the recorded model, "
         "or by\n"
         "another one of the same vocabulary (-m), on any instruction set and thread count. Says "
         "which\n"
         "answers differ, at which token, and by how much each model prefers the recorded token "
         "there.\n"
         "The exit status is 0 if all are equal, 1 if some differ, 2 if they could not be asked.\n"
         "--answer N --from TOKEN branches an answer: its first tokens are kept, others follow.\n",
         "  tern replay answers.jsonl\n"
         "  tern replay answers.jsonl -m smaller.gguf --json\n"
         "  tern replay answers.jsonl --answer 3 --from 12 --with ' but'\n",
         .files = {FILE_READ}},
    [COMMAND_KEYGEN] =
        {"keygen", "FILE", 1, 1, "make a key pair to sign receipts with",
         "Writes FILE, the secret key, which only its owner may read, and FILE.pub,\n"
         "the public key. Existing files are never overwritten.\n",
         "  tern keygen signing.key\n"
         "  tern run -p 'Hello' --receipt receipt.json --sign-key signing.key\n",
         .files = {FILE_WRITTEN}},
    [COMMAND_TOKENIZE] =
        {"tokenize", "[MODEL] [PROMPT]", 0, 2, "turn text into token ids, or ids into text",
         "The text comes from -p, -f or a pipe on standard input, and every byte of it counts, a\n"
         "newline at its end too. Without -m and --tokenizer the small model's tokenizer is used.\n"
         "Weights are not read.\n",
         "  tern tokenize -p 'The quick brown fox' --pieces\n"
         "  tern tokenize model.gguf 'The quick brown fox'\n"
         "  tern tokenize --tokenizer tokenizer.json -f text.txt --add-special --json\n"
         "  echo '504 357' | tern tokenize -m model.gguf --ids\n",
         .n_places = 2, .places = {OPT_MODEL, OPT_PROMPT}},
    [COMMAND_CHAT_TEMPLATE] =
        {"chat-template", "[MODEL]", 0, 1, "show what a model would see of a conversation",
         "Writes the conversation of --messages in the model's own chat format: as text, as token\n"
         "ids (--ids), or as JSON with both and the origin of each part of the text: the template, "
         "a\n"
         "message by its number, or variables. Weights are not read.\n",
         "  tern chat-template -m model.gguf --messages talk.json\n"
         "  echo '[{\"role\": \"user\", \"content\": \"Hi\"}]' | tern chat-template --messages - "
         "--json\n",
         .n_places = 1, .places = {OPT_MODEL}},
    [COMMAND_PULL] =
        {"pull", "NAME|OWNER/NAME[:FILE]", 1, 1, "fetch a model from the Hugging Face Hub",
         "NAME is a short one (tern list --names), which the user's file tern/models in\n"
         "$XDG_CONFIG_HOME or ~/.config extends by lines NAME = OWNER/NAME:FILE or NAME = /PATH.\n"
         "FILE is a file of the repository or a part of its name; without it the only model is\n"
         "meant. Files go to the folder that all clients of the Hub share ($HF_HUB_CACHE, hub in\n"
         "$HF_HOME, or ~/.cache/huggingface/hub), and what is there is not fetched again. A part\n"
         "that came stays when the connection breaks. The SHA-256 of each large file is checked.\n"
         "Afterwards -m OWNER/NAME[:FILE] means it. HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE\n"
         "count. Prints the path.\n",
         "  tern pull microsoft/bitnet-b1.58-2B-4T-gguf\n"
         "  tern pull Qwen/Qwen3-0.6B-GGUF:q8_0\n"
         "  tern pull qwen3-0.6b\n"
         "  tern run -m microsoft/bitnet-b1.58-2B-4T-gguf --chat -p 'What is 2+2?'\n",
         .alias = NULL},
    [COMMAND_LIST] = {"list", "", 0, 0, "list models of the Hub that are on this machine",
                      "Size, commit, and the name that -m takes.\n",
                      "  tern list\n"
                      "  tern list --names\n"
                      "  tern list --json\n",
                      .alias = NULL},
    [COMMAND_RM] = {"rm", "OWNER/NAME[:FILE]", 1, 1, "remove models of the Hub from this machine",
                    "With FILE that file and its contents, where no other file has the same;\n"
                    "without it all that is here of the repository.\n",
                    "  tern rm Qwen/Qwen3-0.6B-GGUF\n", .alias = NULL},
    [COMMAND_DEDUP] =
        {"dedup", "MODEL [OUT]", 1, 2, "write a model without the bytes that it holds twice",
         "Finds tensors, and blocks of 64 KiB, that are equal to others of the model or of --base, "
         "or\n"
         "differ in few bytes, and writes OUT, an IEBIN folder that has them once. What OUT gives "
         "is\n"
         "the same model to the bit. Prints what is saved, which may be nothing; --plan writes "
         "nothing.\n"
         "docs/dedup.md has the files.\n",
         "  tern dedup tuned.gguf tuned-folder --base base.gguf\n"
         "  tern dedup model.gguf --plan --json\n"
         "  tern dedup folder --out-prefix folder/model --groups groups.json --tensor-map "
         "map.json\n",
         .files = {FILE_READ, FILE_WRITTEN}},
    [COMMAND_CONVERT] =
        {"convert", "FOLDER [OUT]", 1, 2,
         "make a model of a Hugging Face folder, or an IEBIN folder",
         "Reads config.json, the safetensors files, tokenizer.json and what lies beside it: models "
         "of\n"
         "the classes LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM,\n"
         "Qwen3MoeForCausalLM, OlmoeForCausalLM, Phi3ForCausalLM, Olmo2ForCausalLM,\n"
         "MiniCPMForCausalLM, GraniteForCausalLM, GptOssForCausalLM, Gemma3ForCausalLM and\n"
         "BitNetForCausalLM.\n"
         "Ternary weights, packed or as floats to be made ternary, become i2_s, others stay as "
         "they\n"
         "are; --type and its kin as in quantize. With --to iebin FOLDER may be a model's file, "
         "and\n"
         "OUT becomes a folder; without it an IEBIN folder becomes a GGUF file again. --to "
         "sidecar\n"
         "writes sparse layers beside a GGUF file, where tern finds them: OUT is model.sparse "
         "then.\n",
         "  tern convert SmolLM2-135M-Instruct smollm2.gguf --type q8_0\n"
         "  tern convert bitnet-b1.58-2B-4T bitnet-2b.gguf\n"
         "  tern convert falcon-e-prequantized falcon-e.gguf --ternarize --type tq2_0\n"
         "  tern convert model.gguf model-folder --to iebin\n"
         "  tern convert model.gguf sparse-folder --to iebin --sparse auto --keep 60\n"
         "  tern convert model.gguf --to sidecar --sparse auto\n"
         "  tern convert weights.bin weights.iebs --dense 64,128 --threshold 0.01\n",
         .files = {FILE_READ, FILE_WRITTEN}},
};

const command_spec *command_describe(command_id command) {
    return &commands[command];
}

bool command_find(const char *name, command_id *command) {
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const char *alias = commands[i].alias;
        if (strcmp(commands[i].name, name) == 0 || (alias != NULL && strcmp(alias, name) == 0)) {
            *command = (command_id)i;
            return true;
        }
    }
    return false;
}
