# SPDX-License-Identifier: Apache-2.0
"""A claim of speed has a receipt: its section links a receipt in the repository, and a table's row that links a receipt
shows the receipt's figures."""

import json
import re
import unittest

import documents
import suite

# Figures with a unit of speed, and comparisons.
_UNITS = r"tok/s|tokens?/s\b|tokens (?:a|per) second|[GM]B/s|GiB/s|[GM] ?(?:weights|multiply-accumulates|MACs?|FLOPS?)/s|[GM]/s"
_CLAIM = re.compile(
    rf"\d[\d., ]*(?:{_UNITS})|\d[\d.,]* ?(?:times|x|×|%) (?:faster|slower|as fast|the speed)", re.I
)
_RECEIPT = re.compile(r"\]\(([^()\s]*(?:receipts|report|ci)/(?:[\w.-]+/)?[\w.-]+\.json)\)")


def receipts(path, text):
    """The receipts that a text of the document links, those that exist."""
    targets = [path.parent / target for target in _RECEIPT.findall(text)]
    return [target for target in targets if target.exists()]


def limit_of(products, isa, kind, bar):
    """The largest share of blocks up to which every sparse product was as fast as the bar says."""
    reached = 0
    for p in products:
        if (p["isa"], p["type"]) == (isa, kind):
            if p["times_as_fast"] < bar:
                return reached
            reached = p["stored_percent"]
    return reached


def speeds(header, row):
    """Yields (key of the receipt, figure) for the columns whose heads name a speed."""
    for title, cell in zip(header, row):
        found = re.match(r"[\d.]+", cell)
        if found is None:
            continue
        if title.startswith("prefill") and "tokens/s" in title:
            yield "prefill_tps", found[0]
        if title.startswith("decode") and "tokens/s" in title:
            yield "decode_tps", found[0]


def problems_of_rows(path, section):
    for header, rows in documents.tables(section.text):
        if not any("receipt" in title for title in header):
            continue
        for row in rows:
            linked = receipts(path, " ".join(row))
            if len(linked) != 1:
                yield f"{row[0]}: {len(linked)} receipts in this row"
                continue
            content = json.loads(linked[0].read_text())
            content = content.get("benchmark", content)  # of tern bench --receipt, or --json
            for key, figure in speeds(header, row):
                digits = len(figure.partition(".")[2])
                if f"{content[key]:.{digits}f}" != figure:
                    yield f"{row[0]}: {figure}, but {linked[0].name} says {content[key]:.3f}"


def claims(section):
    """Heads of columns count as units of the figures below them."""
    yield from (found[0].strip() for found in _CLAIM.finditer(documents.prose(section.text)))
    for header, rows in documents.tables(section.text):
        for title in header:
            if re.search(_UNITS, title):
                yield f"a column {title}"


class Claims(unittest.TestCase):
    def test_every_claim_has_a_receipt(self):
        """AC:10. A claimed speed comes with its run."""
        problems, found = [], 0
        for path in documents.paths():
            for section in documents.sections(documents.without_marks(path.read_text())):
                claim = next(claims(section), None)
                found += claim is not None
                if claim is not None and not receipts(path, section.text):
                    problems.append(f"{documents.name(path)}:{section.line}: {claim}")
        self.assertEqual([], problems, "claims in sections without a link to a receipt")
        self.assertGreater(found, 1, "no claim found at all: the pattern is broken")

    def test_rows_agree_with_their_receipts(self):
        problems = []
        for path in documents.paths():
            for section in documents.sections(documents.without_marks(path.read_text())):
                for problem in problems_of_rows(path, section):
                    problems.append(f"{documents.name(path)}:{section.line}: {problem}")
        self.assertEqual([], problems)

    def test_limits_of_sparse_blocks(self):
        """dispatch/sparse_limit.c has, for each kind of values and each set, the least limit of all reports; every set
        is there."""
        source = (documents.ROOT / "dispatch" / "sparse_limit.c").read_text()
        built_in = {(isa, kind.lower()): int(percent)
                    for isa, kind, percent in re.findall(r'\{"(\w+)", TERN_FORMAT_(\w+), (\d+)\}', source)}
        measured = {}
        for path in sorted((documents.ROOT / "docs" / "report").glob("sparse-blocks*.json")):
            report = json.loads(path.read_text())
            for limit in report["limits"]:
                key, percent = (limit["isa"], limit["type"]), limit["no_slower_percent"]
                least, most = (limit_of(report["products"], *key, bar) for bar in (0.995, 0.985))  # 0.99, as printed
                self.assertTrue(least <= percent <= most, f"{path.name}: {key} has {percent}, not {least} to {most}")
                measured[key] = min(percent, measured.get(key, 100))
        self.assertEqual(built_in, measured)

    def test_the_pattern_sees_claims(self):
        for text in ("12.5 tok/s", "3 tokens/s", "95 G weights/s", "31 GB/s", "2 times faster",
                     "40 tokens a second", "10 % faster", "1.3x faster", "95 G/s"):
            self.assertRegex(text, _CLAIM)
        for text in ("2 times", "3 tokens", "27 % of the memory"):
            self.assertNotRegex(text, _CLAIM)


if __name__ == "__main__":
    suite.main()
