"""Corpora: read, cleaned, counted, verified; and refused with the place and a remedy."""

import gzip
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from support import MULTI30K, needs_multi30k

from tinytransformer.cli import main
from tinytransformer.text import corpus
from tinytransformer.text.corpus import CorpusError, from_files, from_table, microworld, multi30k, read_lines
from tinytransformer.text.download import DownloadError, cache_folder, fetch


def write(path: Path, text: str | bytes) -> Path:
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_microworld_both_ways():
    there, back = microworld("test", 5, seed=1), microworld("test", 5, seed=1, reverse=True)
    assert len(there) == 5
    assert (there.source, there.target) == (back.target, back.source)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_two_files_a_table_and_json_lines_give_the_same(tmp_path, ending):
    en = write(tmp_path / f"a.en{ending}", "A dog.\r\nA  cat. \n")
    de = write(tmp_path / f"a.de{ending}", "Ein Hund.\nEine\u00a0Katze.\n")
    tsv = write(tmp_path / f"a.tsv{ending}", "A dog.\tEin Hund.\nA cat.\tEine Katze.\n")
    lines = '{"source": "A dog.", "target": "Ein Hund."}\n{"source": "A cat.", "target": "Eine Katze."}\n'
    jsonl = write(tmp_path / f"a.jsonl{ending}", lines)
    found = [from_files(en, de), from_table(tsv), from_table(jsonl)]
    for one in found:
        assert one.source == ("A dog.", "A cat.")
        assert one.target == ("Ein Hund.", "Eine Katze.")
    assert found[0].cleaned == {"no-break spaces": 1, "stray spaces at an end": 1}


def test_pairs_without_words_are_dropped_and_counted(tmp_path):
    en = write(tmp_path / "a.en", "A dog.\n\nA cat.\n")
    de = write(tmp_path / "a.de", "Ein Hund.\nLeer.\n@@\n")
    found = from_files(en, de)
    assert found.source == ("A dog.",)
    assert found.cleaned == {"pairs without words on a side": 2}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.en": "one\ntwo\n", "a.de": "eins\n"}, r"2 source lines but 1 target lines"),
        ({"a.en": b"one\n\xff\xfe\n", "a.de": "eins\nzwei\n"}, r"a\.en, line 2 is not UTF-8"),
        ({"a.en": "\n", "a.de": "\n"}, r"holds no sentence pair"),
        ({"a.en": "one\n"}, r"there is no file .*a\.de"),
        ({"a.tsv": "one\teins\nbroken\n"}, r"a\.tsv, line 2 has 1 columns: it must be source, tab, target"),
        ({"a.jsonl": '{"source": "one"}\n'}, r"a\.jsonl, line 1 must be a JSON object with the keys 'source' and"),
        ({"a.jsonl": '{"source": 1, "target": "x"}\n'}, r"a\.jsonl, line 1: 'source' and 'target' must be texts"),
        ({"a.jsonl": "no json\n"}, r"a\.jsonl, line 1 must be a JSON object"),
        ({"a.csv": "one,eins\n"}, r"must end in \.tsv or \.jsonl"),
    ],
)
def test_bad_files(tmp_path, files, message):
    for name, content in files.items():
        write(tmp_path / name, content)
    paths = [tmp_path / name for name in ("a.en", "a.de")] if "a.en" in files else [tmp_path / next(iter(files))]
    with pytest.raises(CorpusError, match=message):
        (from_files if len(paths) == 2 else from_table)(*paths)


def test_a_gzip_file_cut_short(tmp_path):
    whole = gzip.compress(b"one\teins\n" * 10_000)
    (tmp_path / "a.tsv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorpusError, match="is not a whole gzip file"):
        from_table(tmp_path / "a.tsv.gz")


@pytest.mark.parametrize(("source", "target"), [("de", "fr"), ("en", "en"), ("en", "it")])
def test_pairs_that_multi30k_does_not_have(source, target):
    with pytest.raises(CorpusError, match=f"no pair {source}–{target}: choose en–de, de–en, en–fr or fr–en"):
        multi30k("train", source, target)


def test_multi30k_that_is_not_there(tmp_path):
    with pytest.raises(CorpusError, match="no split 'dev': choose one of train, val"):
        multi30k("dev")
    with pytest.raises(CorpusError, match=r"no train.en.gz in .* download multi30k.*TINYTRANSFORMER_DATA"):
        multi30k("train", folder=tmp_path)
    write(tmp_path / "train.en.gz", "something else\n")
    with pytest.raises(DownloadError, match=r"its SHA-256 differs\. Delete it and download it again"):
        multi30k("train", folder=tmp_path)


@needs_multi30k
def test_multi30k_and_its_quirks():
    train = multi30k("train", folder=MULTI30K)
    assert len(train) == 28_998
    quirks = {"no-break spaces": 47, "stray spaces at an end": 40, "pairs without words on a side": 2}
    assert train.cleaned == quirks
    back = multi30k("test_2016_flickr", "de", "en", folder=MULTI30K)
    assert len(back) == 1000
    assert multi30k("test_2016_flickr", "en", "fr", folder=MULTI30K).source == back.target


CONTENT = bytes(range(256)) * 2000
CHECKSUM = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """A server that can go on in the middle, and on request breaks off."""

    break_after: int | None = None
    ranges = True
    asked: list = []  # noqa: RUF012

    def do_GET(self):
        start = int(self.headers.get("Range", "bytes=0-")[6:-1]) if self.ranges else 0
        type(self).asked.append(start)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        end = len(CONTENT) if self.break_after is None else start + self.break_after
        self.wfile.write(CONTENT[start:end])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    Handler.break_after, Handler.ranges, Handler.asked = None, True, []
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/file"
        server.shutdown()


def test_a_download_is_verified_reported_and_not_repeated(server, tmp_path):
    reports = []
    goal = fetch(server, tmp_path / "deep" / "file", CHECKSUM, lambda got, of: reports.append((got, of)))
    assert goal.read_bytes() == CONTENT
    assert reports[-1] == (len(CONTENT), len(CONTENT))
    fetch(server, goal, CHECKSUM)
    assert Handler.asked == [0]
    assert list(goal.parent.iterdir()) == [goal]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_goes_on_where_it_stopped(server, tmp_path, ranges):
    (tmp_path / "file.part").write_bytes(CONTENT[:1000])
    Handler.ranges = ranges
    assert fetch(server, tmp_path / "file", CHECKSUM).read_bytes() == CONTENT
    assert Handler.asked == [1000 if ranges else 0]


def test_a_connection_that_is_cut_loses_nothing(server, tmp_path):
    Handler.break_after = 1000
    told = r"cut after 1,000 of 512,000 bytes.*1,000 bytes are kept, and the next try goes on from there"
    with pytest.raises(DownloadError, match=told):
        fetch(server, tmp_path / "file", CHECKSUM)
    assert (tmp_path / "file.part").read_bytes() == CONTENT[:1000]
    Handler.break_after = None
    assert fetch(server, tmp_path / "file", CHECKSUM).read_bytes() == CONTENT
    assert Handler.asked == [0, 1000]


def test_a_wrong_file_is_thrown_away(server, tmp_path):
    with pytest.raises(DownloadError, match=rf"its SHA-256 is {CHECKSUM}, it should be 0000"):
        fetch(server, tmp_path / "file", "0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_no_network_from_the_command_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(corpus, "_MULTI30K_ADDRESS", "http://127.0.0.1:9")
    with pytest.raises(SystemExit) as ended:
        main(["download", "multi30k"])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "could not be fetched" in told
    assert "give a folder that holds the files, with --data or in TINYTRANSFORMER_DATA" in told


@needs_multi30k
def test_the_checksums_are_those_of_the_data_set():
    lines = (Path(MULTI30K) / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    published = {name.lstrip("*"): checksum for checksum, name in map(str.split, lines)}
    assert {name: published[name] for name in published.keys() & corpus._MULTI30K_SHA256} == {
        name: checksum for name, checksum in corpus._MULTI30K_SHA256.items() if name in published
    }
    assert {"train.en.gz", "train.de.gz", "test_2016_flickr.de.gz"} <= published.keys() & corpus._MULTI30K_SHA256


@needs_multi30k
def test_the_folder_may_be_named_in_the_environment(monkeypatch):
    monkeypatch.setenv("TINYTRANSFORMER_DATA", str(MULTI30K))
    assert len(multi30k("val")) == 1014


def test_a_packed_file_that_was_damaged_in_the_middle(tmp_path):
    packed = bytearray(gzip.compress("".join(f"{number**5} dogs\n" for number in range(3000)).encode()))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    (tmp_path / "text.gz").write_bytes(packed)
    with pytest.raises(CorpusError, match=r"text\.gz is not a whole gzip file"):
        list(read_lines(tmp_path / "text.gz"))


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    (tmp_path / "pairs.jsonl").write_bytes(b'\xef\xbb\xbf{"source": "a dog", "target": "ein Hund"}\n')
    assert from_table(tmp_path / "pairs.jsonl").source == ("a dog",)


def test_no_network(tmp_path):
    with pytest.raises(DownloadError, match=r"could not be fetched .*Check the network, or give a folder"):
        fetch("http://127.0.0.1:9/file", tmp_path / "file", CHECKSUM)


def test_downloads_go_to_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    asked = []
    monkeypatch.setattr(corpus, "fetch", lambda address, goal, checksum, progress: asked.append((address, goal)))
    assert (
        corpus.download_multi30k(("en", "fr"))
        == cache_folder() / "multi30k"
        == tmp_path / "tinytransformer" / "multi30k"
    )
    assert len(asked) == 10
    assert all("a3d2e0d26b56f3846f66a952536ffed4e401d05a" in address for address, _ in asked)
