# SPDX-License-Identifier: Apache-2.0
"""A prompt alone and in batches of any size: tokens and log-probabilities equal to the bit, from one client and from many."""

import random
from concurrent.futures import ThreadPoolExecutor

import openai

from check import equal, options

WORDS = "Once upon a time Luna the panda saw a small red house at the sea and said: what is 2+2?".split()


def told(choice):
    return choice.text, choice.logprobs.tokens, choice.logprobs.token_logprobs, choice.logprobs.top_logprobs


def main():
    draw = random.Random(5)
    prompts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 120))) for _ in range(32)]
    client = openai.OpenAI(base_url=options().address, api_key="none")
    for temperature in (0, 1):
        def ask(batch):
            reply = client.completions.create(model="m", prompt=batch, max_tokens=24, temperature=temperature, seed=9,
                                              logprobs=5, extra_body={"ignore_eos": True})
            return [told(choice) for choice in reply.choices]

        alone = [ask([prompt])[0] for prompt in prompts]
        equal(ask(prompts), alone, "one batch of all")
        for size in (2, 5, 16):
            batches = [prompts[i : i + size] for i in range(0, len(prompts), size)]
            equal([one for batch in batches for one in ask(batch)], alone, f"batches of {size}")
        with ThreadPoolExecutor(16) as pool:
            equal([one for [one] in pool.map(lambda prompt: ask([prompt]), prompts)], alone, "16 clients")
        ids = [[draw.randrange(10, 1000) for _ in range(draw.randint(1, 150))] for _ in range(16)]
        equal(ask(ids), [ask([one])[0] for one in ids], "token ids, one batch of all")


main()
