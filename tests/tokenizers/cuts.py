# SPDX-License-Identifier: Apache-2.0
"""The pre-tokenizers that GGUF files name, as the models' own tokenizer.json files write them: patterns in order.

Names and patterns are those of llama.cpp's src/llama-vocab.cpp (2026-11), which quotes the originals. Where its own engine
needs another spelling, the original stands here.
"""

CONTRACTION = "'s|'t|'re|'ve|'m|'ll|'d"
ANY_CASE = f"(?i:{CONTRACTION})"
LINES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
SIGNS = r" ?[^\s\p{L}\p{N}]+"
WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
GPT2 = CONTRACTION + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def llama3(numbers):
    return rf"{ANY_CASE}|{WORD}|{numbers}|{SIGNS}[\r\n]*|{LINES}"


def cased(without="", ending=""):
    before = r"[^\r\n\p{L}\p{N}]?"
    capital, small = rf"[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}{without}]", rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}{without}]"
    return f"{before}{capital}*{small}+{ending}|{before}{capital}+{small}*{ending}"


def gpt4o(numbers):
    return rf"{cased(ending=ANY_CASE + '?')}|{numbers}|{SIGNS}[\r\n/]*|{LINES}"


NOT_HAN = cased(r"&&[^\p{Han}]", ANY_CASE + "?")
ASCII_SIGN = "[!\"" + r"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
MARKED = r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
AFMOE = rf"{ASCII_SIGN}|{MARKED}| ?[\p{{P}}\p{{S}}]+[\r\n]*|{LINES}"
DEEPSEEK3 = AFMOE.replace(r"\r\n", "\r\n")  # its file has the characters themselves
SPARK = rf"{ASCII_SIGN}|{MARKED}| ?[\p{{P}}\p{{S}}]+|[\r\n]|\s+(?!\S)|\s+".replace(r"\r\n", "\r\n")
KANA = "[一-龥぀-ゟ゠-ヿ]+"
DEEPSEEK_HAN = "[一-龥ࠀ-一가-퟿]+"
BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
CASCADE = "|".join(rf"\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4, "1,2"))
CASED_LETTERS = (  # written as numbers: some of these are not in a normal form
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376"
    "\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-"
    "\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a"
    "\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4"
    "\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc"
    "\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f"
    "\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b"
    "\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a"
    "\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"
    "\U000118a0-\U000118df\U0001e900-\U0001e943"
)
ASIA = "[一-鿿㐀-䶿\uf900-\ufaff぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+"

RULES = {
    "llama-bpe llama3 llama-v3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano": [llama3(r"\p{N}{1,3}")],
    "dbrx smaug-bpe chatglm-bpe glm4": [llama3(r"\p{N}{1,3}")],
    "qwen2 deepseek-r1-qwen megrez stablelm2 kormo f2llmv2 hunyuan solar-open grok-2": [llama3(r"\p{N}")],
    "qwen35": [ANY_CASE + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + LINES],
    "gpt-4o llama4 kanana2 talkie minimax-m2 granite-embed-multi-97m": [gpt4o(r"\p{N}{1,3}")],
    "tiny_aya cohere2moe": [r"\d{1,3}(?=(?:\d{3})*\b)", gpt4o(r"\p{N}{1,3}")],
    "youtu": ["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|" + KANA, gpt4o(r"\p{N}")],
    "tekken": [rf"{cased()}|\p{{N}}|{SIGNS}[\r\n/]*|{LINES}"],
    "kimi-k2": [rf"[\p{{Han}}]+|{NOT_HAN}|\p{{N}}{{1,3}}|{SIGNS}[\r\n]*|{LINES}"],
    "bailingmoe bailingmoe2 llada-moe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|"
                                         r"\s*[\r\n]|\s+(?!\S)|\s+"],
    "seed-coder": [rf"{ANY_CASE}|{WORD}|" + "\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"],
    "ufakzeka": [rf"{WORD}|\p{{N}}|{SIGNS}[\r\n]*|{LINES}"],
    "exaone-moe": [ANY_CASE + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|"
                   r"\s*[\r\n]|\s+(?!\S)|\s+"],
    "minicpm5": [r"\p{N}{1,3}", llama3(r"\p{N}+")],
    "jais-2": [rf"{ANY_CASE}|{WORD}|\p{{N}}{{1,3}}|{SIGNS}[\r\n]*|\s*[\r\n]+|{CASCADE}|\s{{1}}"],
    "laguna": [r"[^\n]+|[\n]+", llama3(r"\p{N}")],
    "deepseek-llm": ["[\r\n]", rf"\s?[{CASED_LETTERS}]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", DEEPSEEK_HAN, r"\p{N}+"],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", DEEPSEEK_HAN, r"\p{N}"],
    "deepseek-v3 hunyuan-dense joyai-llm hy_v4": [r"\p{N}{1,3}", KANA, DEEPSEEK3],
    "spark2_5": [r"\p{N}{1,3}", KANA, SPARK, r"\p{N}"],
    "afmoe": [r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", ASIA, AFMOE],
    "poro-chat bloom gpt3-finnish": [BLOOM],
    "viking": [BLOOM, r"\p{N}"],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "chameleon": ["<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2],
    "gpt-2 phi-2 roberta-bpe mpt olmo jais jina-v1-en jina-v2-es jina-v2-de jina-v2-code jina-es jina-de gigachat a.x-4.0 mellum "
    "modern-bert exaone4 trillion granite-docling": [GPT2],
    "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2": [r"\p{N}", GPT2],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "falcon3 falcon_e": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9]"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
}
