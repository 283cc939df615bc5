"""Trains tern-small on the CPU: python train.py --out run --minutes 35

With --resume DIR the weights and the tokenizer of an earlier run are the
start; make.sh does so with a smaller learning rate and more stories.  The learning rate follows the clock, not the number of steps, so that the run
ends in time on any machine; the run directory gets tokenizer.json, ckpt.pt and log.txt.
"""
import argparse
import os
import time

import torch
import torch.nn.functional as F

import data
import facts
import stories
from model import Config, Model
from tokenizer import BOS, EOS, Tokenizer, train_merges

LENGTH = 256  # tokens per packed row


def resume(model, source, path, scale):
    """Loads the weights of the run `source`; its tokenizer is also copied to `path`.

    The embedding is multiplied by `scale` and the last norm divided by it: the
    logits stay as they are, but the token itself weighs more in the residual
    stream.  Ternary layers cannot write small values into the stream, and where
    the embedding drowns in theirs the model cannot learn to repeat a name.
    """
    saved = torch.load(os.path.join(source, "ckpt.pt"), weights_only=True)
    saved["state"]["token_embd"] *= scale
    saved["state"]["output_norm"] /= scale
    model.load_state_dict(saved["state"])
    tok = Tokenizer.load(os.path.join(source, "tokenizer.json"))
    tok.save(path)
    return tok


def make_tokenizer(path, vocab):
    """Trains the BPE on stories and facts and stores it."""
    texts = list(stories.stories(99, 4000))
    texts += [f"{data.prompt(q)} {a}" for q, a in facts.all_facts()] * 20
    texts += [f"{data.prompt(data.STORY_REQUEST)} {t}" for t in texts[:100]]
    tok = Tokenizer(train_merges(texts, vocab - 258))
    assert len(tok) == vocab, len(tok)
    tok.save(path)
    return tok


@torch.no_grad()
def right_answers(model, tok, questions):
    """For each (question, answer): would greedy decoding give exactly it and stop?

    Greedy decoding is right when each answer token is the best one after the
    right beginning, so one pass over padded rows is enough.
    """
    right = []
    for start in range(0, len(questions), 100):
        rows = []
        for q, a in questions[start:start + 100]:
            asked = [BOS] + tok.encode(data.prompt(q))
            rows.append((len(asked), asked + tok.encode(" " + a) + [EOS]))
        width = max(len(ids) for _, ids in rows)
        ids = torch.tensor([r + [EOS] * (width - len(r)) for _, r in rows])
        pos = torch.arange(width).expand(len(rows), width)
        mask = torch.ones(width, width, dtype=torch.bool).tril().expand(len(rows), 1, width, width)
        best = F.linear(model.hidden(ids, pos, mask), model.token_embd).argmax(-1)
        for i, (n, r) in enumerate(rows):
            right.append(best[i, n - 1:len(r) - 1].tolist() == r[n:])
    return right


@torch.no_grad()
def sample(model, tok, text, count=120):
    """Greedy continuation of `text` by at most `count` tokens."""
    ids = [BOS] + tok.encode(text)
    for _ in range(count):
        best = model.next_logits(torch.tensor([ids])).argmax(-1).item()
        if best == EOS:
            break
        ids.append(best)
    return tok.decode(ids)


def optimizer_for(model, rate):
    """AdamW; weight decay on the matrices of the blocks only."""
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() == 1] + [model.token_embd]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=True)


def rate_at(progress, step, peak):
    """Warmup over 50 steps, then flat to 40 % of the time, then linear to zero."""
    return peak * min(1.0, (step + 1) / 50, max(0.0, (1.0 - progress) / 0.6))


def mix_at(progress, story_share):
    """(share of rows that begin with a story, share of sums among questions)."""
    if progress < 0.25 and story_share < 0.6:  # sums first
        return 0.30, 0.90
    return story_share, 0.75


class Log:
    """Prints lines and keeps them in a file."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")

    def __call__(self, text):
        print(text, flush=True)
        self.file.write(text + "\n")
        self.file.flush()


def save(model, path):
    """Writes the checkpoint in one step, so that a reader never sees half of it."""
    torch.save({"config": model.cfg.to_dict(), "state": model.state_dict()}, path + ".tmp")
    os.replace(path + ".tmp", path)


def train(args):
    """The whole run."""
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    log = Log(os.path.join(args.out, "log.txt"))
    model = Model(Config(layers=args.layers, ff=args.ff))
    path = os.path.join(args.out, "tokenizer.json")
    if args.resume:
        tok = resume(model, args.resume, path, args.scale_embedding)
    else:
        tok = make_tokenizer(path, model.cfg.vocab)
    docs = data.Documents(tok, args.seed, args.stories)
    held = [(f"What is {a}+{b}?", str(a + b)) for a, b in data.held_out()]
    log(f"{sum(p.numel() for p in model.parameters())} parameters, {len(docs.stories)} stories, "
        f"{len(docs.pairs)} sums for training, {len(held)} held out, {len(docs.facts)} facts")
    eager_hidden = model.hidden
    fast_hidden = torch.compile(model.hidden) if args.compile else model.hidden
    opt = optimizer_for(model, args.rate)
    start, checked, step, total = time.time(), time.time(), 0, 0.0
    progress = 0.0
    while progress < 1.0:
        for group in opt.param_groups:
            group["lr"] = rate_at(progress, step, args.rate)
        rows = data.batch(docs, args.rows, LENGTH, *mix_at(progress, args.story_share))
        model.hidden = fast_hidden
        loss = model.loss(*(torch.from_numpy(r) for r in rows))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        step, total = step + 1, total + loss.item()
        progress = (time.time() - start) / (60 * args.minutes)
        if step % 50 == 0:
            log(f"step {step} minute {(time.time() - start) / 60:.1f} loss {total / 50:.4f} "
                f"rate {rate_at(progress, step, args.rate):.5f} "
                f"tokens/s {step * args.rows * LENGTH / (time.time() - start):.0f}")
            total = 0.0
        if time.time() - checked > args.check or progress >= 1.0:
            model.hidden = eager_hidden
            report(model, tok, held, docs.facts, log)
            save(model, os.path.join(args.out, "ckpt.pt"))
            checked = time.time()


def report(model, tok, held, fact_list, log):
    """Logs how many held-out sums and facts are right, and the start of a story."""
    sums, known = right_answers(model, tok, held), right_answers(model, tok, fact_list)
    log(f"held-out sums {sum(sums)}/{len(sums)}, facts {sum(known)}/{len(known)}")
    log("story: " + sample(model, tok, "Once upon a time", 60))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--out", default="run")
    p.add_argument("--minutes", type=float, default=35)
    p.add_argument("--check", type=float, default=150, help="seconds between evaluations")
    p.add_argument("--rate", type=float, default=2.5e-3)
    p.add_argument("--rows", type=int, default=8)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--ff", type=int, default=512)
    p.add_argument("--stories", type=int, default=30000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--story-share", type=float, default=0.55)
    p.add_argument("--resume", help="directory of the run to go on from")
    p.add_argument("--scale-embedding", type=float, default=1.0)
    p.add_argument("--no-compile", dest="compile", action="store_false")
    train(p.parse_args())


if __name__ == "__main__":
    main()
