# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: llama.cpp's tests with a server that brings its model along. With ANY_WORDS in the environment,
their checks of their own model's words hold for every text."""

import os
import sys


def pytest_configure():
    sys.path.insert(0, os.getcwd())
    import utils  # the tests' own; their modules import its names later

    utils.ServerPreset.load_all = staticmethod(lambda: None)  # would fetch models
    utils.download_file = lambda url, path=None: url.rsplit("/", 1)[-1]  # of a model; llama-server has one in its place
    if os.environ.get("ANY_WORDS"):
        utils.match_regex = lambda regex, text: True
