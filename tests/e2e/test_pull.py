# SPDX-License-Identifier: Apache-2.0
"""tern pull, list and rm beside a Hub of the test's own."""

import hashlib
import json
import os
import resource
import signal
import ssl
import subprocess
import tempfile
import warnings
from pathlib import Path

import common
from common import tern, tern_json, tern_text
from hub_server import COMMIT, Hub
from test_serve_tls import make_certificate

REPO = "someone/tiny-model"
BIG = bytes(range(256)) * 1200  # what is not a model is fetched as well as one


class Pull(common.TernTest):
    def setUp(self):
        self.model = Path(common.small_model()).read_bytes()
        self.hub = Hub({REPO: {"README.md": b"# Tiny", "tiny-q8_0.gguf": self.model, "tiny-F16.gguf": BIG}})
        self.addCleanup(self.hub.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = Path(folder.name) / "hub"
        self.env = {"HF_ENDPOINT": self.hub.url + "/", "HF_HUB_CACHE": str(self.cache), "HOME": folder.name, "HF_TOKEN": "",
                    "HF_HOME": "", "HF_TOKEN_PATH": str(Path(folder.name) / "token"), "HF_HUB_OFFLINE": "",
                    "no_proxy": "*", "NO_PROXY": "*"}
        if "made without libcurl" in self.pull(f"{REPO}:nothing").stderr.decode():
            self.skipTest("built without libcurl")
        self.hub.seen.clear()

    def pull(self, *words, **env):
        return tern("pull", *words, env=self.env | env)

    def repository(self):
        return self.cache / "models--someone--tiny-model"

    def pulled(self, *words, **env):
        result = self.pull(*words, **env)
        self.assertEqual((result.returncode, result.stdout.count(b"\n")), (0, 1), result.stderr)
        return Path(result.stdout.decode().rstrip("\n"))

    def test_the_layout_that_all_share(self):
        path = self.pulled(f"{REPO}:Q8_0")
        name = hashlib.sha256(self.model).hexdigest()
        self.assertEqual(path, self.repository() / "snapshots" / COMMIT / "tiny-q8_0.gguf")
        self.assertEqual(os.readlink(path), f"../../blobs/{name}")
        self.assertEqual((self.repository() / "blobs" / name).read_bytes(), self.model)
        self.assertEqual((self.repository() / "refs" / "main").read_text(), COMMIT)
        self.assertEqual([p.name for p in (self.repository() / "blobs").iterdir()], [name])
        self.assertTrue((self.cache / ".locks" / "models--someone--tiny-model" / f"{name}.lock").exists())

    def test_nothing_is_fetched_twice(self):
        self.pulled(f"{REPO}:q8_0")
        self.assertEqual(len(self.hub.stored), 1)
        self.pulled(f"{REPO}:q8_0")
        self.assertEqual(len(self.hub.stored), 1)
        other = "fedcba98" * 5
        self.hub.commit = other  # the branch moves on, the file stays
        self.assertIn(other, str(self.pulled(f"{REPO}:q8_0")))
        self.assertEqual(len(self.hub.stored), 1)
        self.assertEqual((self.repository() / "refs" / "main").read_text(), other)

    def test_the_model_has_its_name(self):
        expected = tern_text("run", "-m", common.small_model(), "-p", "Once upon", "-n", 6)
        missing = tern("run", "-m", REPO, "-p", "Once upon", "-n", 6, env=self.env)
        self.assertEqual(missing.returncode, 1)
        self.assertIn(b"`tern pull someone/tiny-model` fetches it", missing.stderr)
        self.pulled(f"{REPO}:q8_0")
        for name in (REPO, f"{REPO}:q8", f"{REPO}@main:tiny-q8_0.gguf", f"{REPO}@{COMMIT}"):
            self.assertEqual(tern_text("run", "-m", name, "-p", "Once upon", "-n", 6, env=self.env), expected)
        self.pulled(f"{REPO}:f16")
        self.assert_one_line_error(tern("run", "-m", REPO, "-p", "a", env=self.env), 2, ["which", "tiny-F16.gguf", "tiny-q8_0.gguf"])

    def test_several_models(self):
        result = self.pull(REPO)
        self.assertEqual(result.returncode, 2)
        for word in (b"which one", b"tiny-q8_0.gguf", b"tiny-F16.gguf"):
            self.assertIn(word, result.stderr)
        self.assertFalse((self.repository() / "snapshots").exists())
        self.assert_one_line_error(self.pull(f"{REPO}:q4_k"), 1, ["q4_k"])

    def test_parts(self):
        parts = {f"sub/big-0000{i}-of-00003.gguf": BIG + bytes([i]) for i in (1, 2, 3)}
        self.hub.files[REPO] = parts
        first = self.pulled(REPO)
        self.assertEqual(first.name, "big-00001-of-00003.gguf")
        for name, data in parts.items():
            path = self.repository() / "snapshots" / COMMIT / name
            self.assertEqual(path.read_bytes(), data)
            self.assertTrue(os.readlink(path).startswith("../../../blobs/"))

    def test_safetensors(self):
        self.hub.files[REPO] = {"config.json": b"{}", "model.safetensors": BIG, "tokenizer.json": b"[]", "logo.png": b"png",
                                "onnx/model.safetensors": b"other"}
        folder = self.pulled(REPO)
        self.assertEqual(folder, self.repository() / "snapshots" / COMMIT)
        self.assertEqual({p.name for p in folder.iterdir()}, {"config.json", "model.safetensors", "tokenizer.json"})

    def test_a_connection_that_breaks(self):
        """A transfer goes on where it broke, within a call and in the next one."""
        self.hub.cuts = [100_000, 50_000]
        self.assertEqual(self.pulled(f"{REPO}:f16").read_bytes(), BIG)
        self.assertEqual([h.get("Range") for _, _, h in self.hub.stored], [None, "bytes=100000-", "bytes=150000-"])

    def test_what_has_come_is_kept(self):
        name = hashlib.sha256(BIG).hexdigest()
        self.hub.cuts = [70_000] + [0] * 5
        self.assertEqual(self.pull(f"{REPO}:f16").returncode, 1)
        left = self.repository() / "blobs" / f"{name}.incomplete"
        self.assertEqual(left.read_bytes(), BIG[:70_000])
        self.hub.cuts, self.hub.stored[:] = [], []
        self.assertEqual(self.pulled(f"{REPO}:f16").read_bytes(), BIG)
        self.assertEqual(self.hub.stored[0][2]["Range"], "bytes=70000-")
        self.assertFalse(left.exists())

    def test_a_server_without_ranges(self):
        self.hub.whole, self.hub.cuts = True, [100_000]
        self.assertEqual(self.pulled(f"{REPO}:f16").read_bytes(), BIG)

    def test_a_beginning_that_is_wrong(self):
        name = hashlib.sha256(BIG).hexdigest()
        blobs = self.repository() / "blobs"
        blobs.mkdir(parents=True)
        (blobs / f"{name}.incomplete").write_bytes(b"x" * 1000)
        self.assert_one_line_error(self.pull(f"{REPO}:f16"), 1, ["SHA-256", name])
        self.assertEqual(list(blobs.iterdir()), [])
        (blobs / f"{name}.incomplete").write_bytes(BIG + b"more than all")
        self.assertEqual(self.pulled(f"{REPO}:f16").read_bytes(), BIG)

    def test_a_wrong_hash(self):
        self.hub.wrong.add("tiny-F16.gguf")
        self.assert_one_line_error(self.pull(f"{REPO}:f16"), 1, ["tiny-F16.gguf", "SHA-256", hashlib.sha256(BIG).hexdigest()])
        self.assertEqual(list((self.repository() / "blobs").iterdir()), [])
        self.assertFalse((self.repository() / "snapshots").exists())

    def test_a_token_is_shown_to_the_hub_alone(self):
        self.hub.token = "hf_secret"
        self.assert_one_line_error(self.pull(REPO), 1, ["401", REPO, "HF_TOKEN"])
        self.assert_one_line_error(self.pull(REPO, HF_TOKEN="wrong"), 1, ["401", "another token", "terms"])
        self.pulled(f"{REPO}:q8_0", HF_TOKEN="hf_secret")
        Path(self.env["HF_TOKEN_PATH"]).write_text("hf_secret\n")
        self.pulled(f"{REPO}:f16")
        self.assertEqual(len(self.hub.stored), 2)
        for _, _, headers in self.hub.stored:
            self.assertNotIn("Authorization", headers)

    def leaks(self):
        """Requests that showed the token to anyone but the Hub, by the name and port that it was given."""
        own = self.hub.url.split("/")[-1]
        foreign = [seen for seen in self.hub.seen if seen[2]["Host"] != own] + self.hub.stored
        return [(method, path, headers["Host"]) for method, path, headers in foreign if "Authorization" in headers]

    def test_an_address_that_begins_alike_is_another(self):
        """Scheme, host and port are compared whole: a place that only begins like the Hub's never sees the token."""
        hub, store = self.hub.hub.server_port, self.hub.store.server_port
        for place in (f"http://127.0.0.1:{hub}@localhost:{store}",  # the Hub's address as a user's name
                      f"http://127.0.0.1:{hub}@127.0.0.1:{store}", f"http://127.0.0.1:{store}", f"http://localhost:{hub}",
                      f"http://localhost.:{hub}", f"http://x@127.0.0.1:{hub}", f"http://127.0.0.1:{hub}.example.invalid",
                      f"http://127.0.0.1:{hub}0", f"ftp://127.0.0.1:{hub}", f"http://127.0.0.1:{hub}:{store}"):
            with self.subTest(place=place):
                self.hub.moves = [place]
                self.assertNotEqual(self.pull(f"{REPO}:f16", HF_TOKEN="hf_secret").returncode, 0)
                self.assertEqual((self.hub.moves, self.leaks()), ([], []))
        for place in (self.hub.url, self.hub.url.replace("http", "HTTP")):  # the Hub itself
            self.hub.moves = [place]
            self.hub.seen.clear()
            self.assertEqual(self.pulled(f"{REPO}:f16", HF_TOKEN="hf_secret").read_bytes(), BIG)
            self.assertEqual({h.get("Authorization") for _, _, h in self.hub.seen}, {"Bearer hf_secret"})

    def test_redirections_of_lists_and_files(self):
        """Wherever a reply points to, the token stays with the Hub, and comes back with the way back."""
        hub, store = self.hub.hub.server_port, self.hub.store.server_port
        path = f"/api/models/{REPO}/revision/main"
        for place in (f"http://localhost:{hub}{path}", f"http://127.0.0.1:{hub}{path}"):
            with self.subTest(place=place):
                self.hub.seen.clear()
                self.hub.replies = [(307, {"Location": place})]
                self.pulled(f"{REPO}:f16", HF_TOKEN="hf_secret")
                self.assertEqual(self.leaks(), [])
                self.assertEqual("Authorization" in self.hub.seen[1][2], place == f"http://127.0.0.1:{hub}{path}")
        self.hub.files[REPO] = {"other.gguf": BIG + b"x"}
        self.hub.storing = f"http://127.0.0.1:{hub}@127.0.0.1:{store}"
        self.assert_one_line_error(self.pull(REPO, HF_TOKEN="hf_secret"), 1, ["not an http address"])
        self.hub.storing = f"http://localhost:{store}"
        self.pulled(REPO, HF_TOKEN="hf_secret")
        self.assertEqual((len(self.hub.stored), self.leaks()), (2, []))

    def test_redirections_without_end(self):
        path = f"/api/models/{REPO}/revision/main"
        self.hub.replies = [(302, {"Location": self.hub.url + path})] * 50
        self.assert_one_line_error(self.pull(REPO), 1, ["points on more than 5 times"])
        self.assertEqual(len(self.hub.seen), 6)
        self.hub.replies = [(302, {"Location": self.hub.url + path + "?" + 5000 * "x"})]
        self.assert_one_line_error(self.pull(REPO), 1, ["points to an address of", " bytes"])
        for place in ("file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x"):
            self.hub.replies = [(302, {"Location": place})]
            self.assert_one_line_error(self.pull(REPO), 1, ["points to " + place, "not an http address"])

    def secure_hub(self, **limits):
        """A Hub that speaks https, and the settings with which tern trusts it."""
        certificate, key = make_certificate(self.cache.parent, "hub")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            for name, value in limits.items():
                context.set_ciphers("ALL:@SECLEVEL=0")
                setattr(context, name, value)
        hub = Hub(self.hub.files, token="hf_secret", tls=context)
        self.addCleanup(hub.stop)
        return hub, ("--tls-ca", certificate), {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_secret"}

    def test_https_does_not_lead_to_http(self):
        hub, options, env = self.secure_hub()
        self.assertEqual(self.pulled(f"{REPO}:f16", *options, **env).read_bytes(), BIG)
        hub.files = {REPO: {"other.gguf": BIG + b"x"}}
        hub.storing = self.hub.storing
        self.hub.files = hub.files
        self.assert_one_line_error(self.pull(REPO, *options, **env), 1, ["from https to http://127.0.0.1"])
        self.assertEqual(self.hub.stored, [])
        hub.moves = [self.hub.url]
        self.assertNotEqual(self.pull(REPO, *options, **env).returncode, 0)
        self.assertEqual(self.hub.seen, [])

    def test_old_tls_is_not_spoken(self):
        _, options, env = self.secure_hub(maximum_version=ssl.TLSVersion.TLSv1_2)
        self.assertEqual(self.pulled(f"{REPO}:f16", *options, **env).read_bytes(), BIG)
        hub, options, env = self.secure_hub(minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)
        self.assertEqual(self.pull(f"{REPO}:f16", *options, **env).returncode, 1)
        self.assertEqual(hub.seen, [])

    def test_a_busy_hub(self):
        self.hub.replies = [(429, {"Retry_After": 1}), (503, {})]
        result = self.pull(f"{REPO}:q8_0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"429; again in 1.0 s", result.stderr)
        self.hub.replies = [(429, {"Retry_After": 3600})]
        self.assert_one_line_error(self.pull(f"{REPO}:q8_0"), 1, ["429", "3600 s"])

    def test_a_repository_that_was_renamed(self):
        self.hub.files["old/name"] = self.hub.files[REPO]
        self.hub.moved["old/name"] = REPO
        self.assertEqual(self.pulled("old/name:f16").read_bytes(), BIG)

    def test_hostile_listings(self):
        outside = {"../../../evil.gguf": BIG, "/etc/evil.gguf": BIG, "a/./evil.gguf": BIG, "a\\evil.gguf": BIG, "tab\tevil.gguf": BIG}
        self.hub.files[REPO] = outside
        self.assert_one_line_error(self.pull(REPO), 1, ["no model"])
        self.assertEqual(self.hub.stored, [])
        self.hub.commit = "../../x"
        self.assert_one_line_error(self.pull(REPO), 1, ["not understood"])

    def test_names(self):
        for name in ("model", "a/b/c", "../b", "a/..", "a/b@", "a/b:", "a/b:../c", "a/b@../c:d", "a--b/c", "/b", "a/", "a b/c"):
            with self.subTest(name=name):
                self.assert_one_line_error(self.pull(name), 2, ["OWNER/NAME"])
        self.assertEqual(self.hub.seen, [])

    def test_offline(self):
        self.pulled(f"{REPO}:q8_0")
        self.hub.seen.clear()
        path = self.pulled(REPO, HF_HUB_OFFLINE="1")
        self.assertEqual(path.name, "tiny-q8_0.gguf")
        self.assert_one_line_error(self.pull("other/model", HF_HUB_OFFLINE="1"), 1, ["other/model", "HF_HUB_OFFLINE"])
        self.assertEqual(self.hub.seen, [])

    def test_list_and_rm(self):
        self.assertEqual(tern_json("list", env=self.env)["models"], [])
        self.pulled(f"{REPO}:q8_0")
        self.pulled(f"{REPO}:f16")
        models = tern_json("list", env=self.env)["models"]
        self.assertEqual([(m["repository"], m["file"], m["bytes"]) for m in models],
                         [(REPO, "tiny-F16.gguf", len(BIG)), (REPO, "tiny-q8_0.gguf", len(self.model))])
        self.assertIn(f"{REPO}:tiny-F16.gguf", tern_text("list", env=self.env))
        self.assert_one_line_error(tern("rm", f"{REPO}:tiny", env=self.env), 2, ["tiny-F16.gguf", "tiny-q8_0.gguf"])
        tern_text("rm", f"{REPO}:f16", env=self.env)
        self.assertEqual([m["file"] for m in tern_json("list", env=self.env)["models"]], ["tiny-q8_0.gguf"])
        self.assertEqual(len(list((self.repository() / "blobs").iterdir())), 1)
        tern_text("rm", REPO, env=self.env)
        self.assertFalse(self.repository().exists())
        self.assert_one_line_error(tern("rm", REPO, env=self.env), 1, [REPO])

    def test_contents_that_two_snapshots_share(self):
        self.pulled(f"{REPO}:f16")
        self.hub.commit = "fedcba98" * 5
        self.hub.files[REPO]["copy-F16.gguf"] = BIG
        self.pulled(f"{REPO}:copy")
        tern_text("rm", f"{REPO}:copy", env=self.env)
        (left,) = tern_json("list", env=self.env)["models"]
        self.assertEqual(Path(left["path"]).read_bytes(), BIG)

    def test_a_full_disk(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))

        result = subprocess.run(common.command("pull", f"{REPO}:f16"), env=common.clean_environment(**self.env),
                                capture_output=True, preexec_fn=limit, check=False)
        self.assert_one_line_error(result, 1, ["File too large", "stays"])
        self.assertEqual(self.pulled(f"{REPO}:f16").read_bytes(), BIG)


if __name__ == "__main__":
    common.main()
