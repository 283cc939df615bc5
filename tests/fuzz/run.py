#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds every fuzz target with clang and runs each for some time: tests/fuzz/run.py --build FOLDER

Prints a table of executions, coverage and findings, and fails when there is a finding: the inputs
lie in FOLDER/findings. The corpus is kept in FOLDER/corpus/TARGET, so a later run continues from there.
tests/fuzz/seeds_X.py FOLDER, where it exists, writes the first inputs of fuzz_X, beside those of
tests/fuzz/found_X.txt, which tests/fuzz/found.py keeps. Without a clang that has libFuzzer the exit status is 77, which
ctest reports as skipped.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import found

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

import suite  # noqa: E402

PROCESSOR_SECONDS = 5  # one input may take so many, with the sanitizers
STATS = {"executions": r"stat::number_of_executed_units:\s+(\d+)", "coverage": r"cov: (\d+)"}


def has_libfuzzer(clang, folder):
    source = folder / "probe.c"
    source.write_text(
        "#include <stddef.h>\nint LLVMFuzzerTestOneInput(const unsigned char *d, size_t n);\n"
        "int LLVMFuzzerTestOneInput(const unsigned char *d, size_t n) { return d == NULL && n > 0; }\n"
    )
    probe = [clang, "-fsanitize=fuzzer,address,undefined", source, "-o", folder / "probe"]
    return subprocess.run(probe, capture_output=True).returncode == 0


def is_built(folder, name):
    """A target of a part that was not built, for want of a library, is left out."""
    ninja = (folder / "build.ninja").read_text(encoding="utf-8")
    built = f"build {name}: phony" in ninja
    if not built:
        print(f"fuzz: {name} is left out: its part of tern is not built here")
    return built


def build_part(folder, names, options):
    """Configures one folder and builds its targets; the names of those that there are."""
    # Parsers do not care for instruction sets: one is enough, and builds in a minute.
    configure = ["cmake", "--preset", "fuzz", "-B", folder, *options]
    configure += ["-DTERN_SCALAR_ONLY=ON", "-DTERN_SHARED=OFF", "-DTERN_CUDA=OFF"]
    subprocess.run(configure, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    names = [name for name in names if is_built(folder, name)]
    command = ["cmake", "--build", folder, "--parallel", str(os.cpu_count() or 1), "--target"]
    if names:
        subprocess.run([*command, *names], check=True, stdout=subprocess.DEVNULL)
    return names


def build(folder, names, generator_python):
    """Those of requests have a folder of their own (tests/fuzz/CMakeLists.txt). The paths of the targets."""
    folder.mkdir(parents=True, exist_ok=True)
    clang = shutil.which("clang")
    if clang is None:
        suite.skip("clang is not installed, see scripts/install-deps --fuzz")
    if not has_libfuzzer(clang, folder):
        suite.skip("this clang cannot link with libFuzzer and its sanitizers")
    options = [f"-DTERN_PYTHON={generator_python}"] if generator_python else []
    requests = [name for name in names if name in found.OF_REQUESTS]
    files = [name for name in names if name not in found.OF_REQUESTS]
    built = build_part(folder, files, options) if files else []
    if requests:
        built += build_part(folder / "requests", requests, [*options, "-DTERN_FUZZ_REQUESTS=ON"])
    return {name: found.program_of(folder, name) for name in built}


def seed(name, corpus):
    corpus.mkdir(parents=True, exist_ok=True)
    if not any(corpus.iterdir()):
        reason = found.write_seeds(name, corpus)
        if reason is not None:
            print(f"fuzz: the seeds of {name} were not written ({reason})")
    if not any(corpus.iterdir()):
        (corpus / "zeros").write_bytes(bytes(64))  # libFuzzer gives up where nothing reaches any code


def processor_seconds(program, path):
    """Returns the processor time that one input takes."""
    process = subprocess.Popen([program, "-timeout=60", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime


def was_paused(program, text):
    """True if an input seemed to take too long only because the machine did something else meanwhile."""
    written = re.findall(r"Test unit written to (\S*-timeout-\S+)", text)
    paused = bool(written) and processor_seconds(program, written[-1]) < PROCESSOR_SECONDS
    if paused:
        Path(written[-1]).unlink()
    return paused


def run_target(name, program, folder, seconds, log):
    """Runs it, again after a pause of the machine; the exit status, and all that was said."""
    corpus, findings = folder / "corpus" / name, folder / "findings"
    findings.mkdir(exist_ok=True)
    until, texts = time.monotonic() + seconds, []
    log.write_bytes(b"")
    while True:
        left = max(1, round(until - time.monotonic()))
        command = [program, corpus, f"-max_total_time={left}", "-timeout=20", "-rss_limit_mb=2048"]
        command += ["-max_len=65536", "-print_final_stats=1", f"-artifact_prefix={findings}/{name}-"]
        with log.open("ab") as out:
            status = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT).returncode
        texts.append(log.read_text(errors="replace")[sum(map(len, texts)) :])
        if status == 0 or not was_paused(program, texts[-1]):
            return status, texts
        if time.monotonic() >= until:
            return 0, texts


def fuzz(name, program, folder, seconds):
    """Runs one target; its row of the table."""
    corpus, log = folder / "corpus" / name, folder / f"{name}.log"
    seed(name, corpus)
    status, texts = run_target(name, program, folder, seconds, log)
    row = {"target": name, "seconds": seconds, "status": status, "log": log}
    numbers = {key: [re.findall(pattern, text)[-1:] for text in texts] for key, pattern in STATS.items()}
    row["executions"] = sum(int(number) for last in numbers["executions"] for number in last)
    row["coverage"] = max((int(number) for last in numbers["coverage"] for number in last), default=0)
    row["corpus"] = sum(1 for _ in corpus.iterdir())
    summary = re.findall(r"SUMMARY: (.*)", texts[-1])
    row["finding"] = "none" if status == 0 else summary[0] if summary else f"status {status}"
    return row


def of_this_turn(names, turn):
    """The targets of files at one turn, those of requests at the next: each half is a build of several minutes."""
    return [name for name in names if (name in found.OF_REQUESTS) == (turn % 2 == 1)]


def shares(names, seconds, turn):
    """Seconds of each target: a quarter of them has all, another quarter each turn, the others have a quarter."""
    return {name: seconds if i % 4 == turn % 4 else max(1, seconds // 4) for i, name in enumerate(names)}


def print_table(rows):
    print(f"{'TARGET':<24}{'SECONDS':>8}{'EXECUTIONS':>12}{'COVERAGE':>10}{'CORPUS':>8}  FINDING")
    for row in rows:
        print(
            f"{row['target']:<24}{row['seconds']:>8}{row['executions']:>12}{row['coverage']:>10}"
            f"{row['corpus']:>8}  {row['finding']}"
        )
        if row["status"]:
            print("".join(row["log"].read_text(errors="replace").splitlines(True)[-60:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True, help="folder for build, corpus and findings")
    parser.add_argument("--seconds", type=int, help="for each target; without it 12 for a quarter of them, 3 for others")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="targets at a time")
    parser.add_argument("--generator-python", help="a Python with Jinja2, for the build")
    parser.add_argument("targets", nargs="*", help="fuzz_X; without any and without seconds: those of this turn")
    options = parser.parse_args()
    asked = options.seconds or int(os.environ.get("TERN_TEST_FUZZ_SECONDS") or 0)
    every = sorted(path.stem for path in HERE.glob("fuzz_*.c"))
    names = options.targets or (every if asked else of_this_turn(every, suite.turn()))
    folder = options.build.resolve()
    programs = build(folder, names, options.generator_python)
    seconds = dict.fromkeys(programs, asked) if asked else shares(programs, 12, suite.turn())
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda n: fuzz(n, programs[n], folder, seconds[n]), programs))
    print_table(rows)
    return 1 if any(row["status"] or not row["executions"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
