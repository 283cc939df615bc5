"""Writes both models of this folder as GGUF files: their keys, and their tensors in order."""
import gguf_file as g
from tokenizer import BOS, EOS, SPECIALS

MATRICES = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]


def metadata(arch, name, description, file_type, cfg, tok, chat_template=None):
    """All keys of a file as (key, kind, value); file_type is GGUF's number for most of its weights."""
    strings = (g.ARRAY, g.STRING)
    control, normal = 3, 1
    types = [control] * len(SPECIALS) + [normal] * (len(tok) - len(SPECIALS))
    keys = [
        ("general.architecture", g.STRING, arch),
        ("general.name", g.STRING, name),
        ("general.description", g.STRING, description),
        ("general.file_type", g.U32, file_type),
        ("general.quantization_version", g.U32, 2),
        (arch + ".vocab_size", g.U32, cfg.vocab),
        (arch + ".context_length", g.U32, cfg.context),
        (arch + ".embedding_length", g.U32, cfg.embd),
        (arch + ".block_count", g.U32, cfg.layers),
        (arch + ".feed_forward_length", g.U32, cfg.ff),
        (arch + ".attention.head_count", g.U32, cfg.heads),
        (arch + ".attention.head_count_kv", g.U32, cfg.kv_heads),
        (arch + ".attention.layer_norm_rms_epsilon", g.F32, cfg.eps),
        (arch + ".rope.dimension_count", g.U32, cfg.head_dim),
        (arch + ".rope.freq_base", g.F32, cfg.rope_base),
        ("tokenizer.ggml.model", g.STRING, "gpt2"),
        ("tokenizer.ggml.pre", g.STRING, "smollm"),
        ("tokenizer.ggml.tokens", strings, tok.tokens),
        ("tokenizer.ggml.scores", (g.ARRAY, g.F32), [0.0] * len(tok)),
        ("tokenizer.ggml.token_type", (g.ARRAY, g.I32), types),
        ("tokenizer.ggml.merges", strings, [f"{a} {b}" for a, b in tok.merges]),
        ("tokenizer.ggml.bos_token_id", g.U32, BOS),
        ("tokenizer.ggml.eos_token_id", g.U32, EOS),
        ("tokenizer.ggml.padding_token_id", g.U32, EOS),
        ("tokenizer.ggml.add_bos_token", g.BOOL, True),
        ("tokenizer.ggml.add_eos_token", g.BOOL, False),
        ("tokenizer.ggml.add_space_prefix", g.BOOL, False),
    ]
    return keys + ([("tokenizer.chat_template", g.STRING, chat_template)] if chat_template else [])


def float_tensor(name, values, dtype):
    """A table entry of F32 or F16 values."""
    form = {g.TYPE_F32: "<f4", g.TYPE_F16: "<f2"}[dtype]
    return name, tuple(values.shape), dtype, values.numpy().astype(form).tobytes()


def tensors(cfg, state, norms, matrix):
    """Returns all table entries of the weights in `state`. `norms` names the norms of a block; matrix(file name, name,
    weights) is the entry of one of MATRICES. The head is the embedding, so there is no output.weight."""
    out = [float_tensor("token_embd.weight", state["token_embd"], g.TYPE_F16)]
    for i in range(cfg.layers):
        for name in norms:
            out.append(float_tensor(f"blk.{i}.{name}.weight", state[f"blocks.{i}.{name}"], g.TYPE_F32))
        for name in MATRICES:
            out.append(matrix(f"blk.{i}.{name}.weight", name, state[f"blocks.{i}.{name}"]))
    out.append(float_tensor("output_norm.weight", state["output_norm"], g.TYPE_F32))
    return out
