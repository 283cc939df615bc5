"""Trains the last blocks of a model that float_llama.py made a little further, on the pages alone.

    python lab/training/fine_tune.py out/models/float-llama.gguf out/models/float-llama-pages.gguf --blocks 1

All other weights stay as they are in the file, to the bit: what `tern dedup --base` and models that share
matrices (docs/dedup.md) save is measured with it.
"""
import argparse
import pathlib

import torch

from float_llama import PAGES, Llama, read, stream_of, texts, train, write


def freeze(model, blocks):
    """Leaves the matrices and norms of the last `blocks` blocks to be learned."""
    for w in model.parameters():
        w.requires_grad = False
    for block in model.blocks[len(model.blocks) - blocks:]:
        for w in block.parameters():
            w.requires_grad = True


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("base", help="the GGUF file to start from")
    p.add_argument("out", help="the GGUF file to write")
    p.add_argument("--blocks", type=int, default=1)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--rows", type=int, default=4)
    p.add_argument("--rate", type=float, default=3e-4)
    p.add_argument("--seed", type=int, default=2)
    args = p.parse_args()
    cfg, tok, state = read(args.base)
    model = Llama(cfg)
    model.load_state_dict(state)
    freeze(model, args.blocks)
    train(model, stream_of(tok, texts(PAGES)), args.steps, args.rows, args.rate, args.seed)
    size = write(args.out, pathlib.Path(args.out).stem, cfg, tok, model.state_dict())
    print(f"{args.out}: {size} bytes")


if __name__ == "__main__":
    main()
