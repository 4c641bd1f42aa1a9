"""Corpora: text or trees from the microworld, from Multi30k, or from a user's own files. Only this file reads them."""

import gzip
import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tinytransformer.text.download import DownloadError, cache_folder, fetch, sha256
from tinytransformer.text.microworld import generate
from tinytransformer.text.trees import Tree, linearise, read_trees, tree_of

MULTI30K_LANGUAGES = ("en", "de", "fr")
MULTI30K_SPLITS = ("train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
_MULTI30K_COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
_MULTI30K_ADDRESS = f"https://raw.githubusercontent.com/multi30k/dataset/{_MULTI30K_COMMIT}/data/task1/raw"
_MULTI30K_SHA256 = {
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    "test_2017_flickr.de.gz": "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
    "test_2017_flickr.en.gz": "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    "test_2017_flickr.fr.gz": "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496",
    "test_2017_mscoco.de.gz": "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338",
    "test_2017_mscoco.en.gz": "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58",
    "test_2017_mscoco.fr.gz": "754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
}


class CorpusError(ValueError):
    """A corpus cannot be read; the message says where and what to do."""


@dataclass(frozen=True)
class ParallelCorpus:
    """Sentences and their translations, line by line, and how many lines were cleaned in which way."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    name: str
    cleaned: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self):
        if len(self.source) != len(self.target):
            raise CorpusError(
                f"{self.name}: {len(self.source)} source lines but {len(self.target)} target lines; they must be "
                "translations of each other, line by line"
            )

    def __len__(self) -> int:
        return len(self.source)


def microworld(split: str, count: int, seed: int = 0, reverse: bool = False) -> ParallelCorpus:
    """English–German pairs of the embedded world, or with ``reverse`` German–English."""
    pairs = [(example.source, example.target) for example in generate(split, count, seed)]
    return _corpus(pairs, f"microworld {split}", reverse)


def microworld_trees(split: str, count: int, seed: int = 0) -> list[Tree]:
    """The trees of the English sentences of the embedded world."""
    return [tree_of(example.tree) for example in generate(split, count, seed)]


def penn_trees(path: str | Path) -> list[Tree]:
    """A user's own treebank: one file in Penn format, plain or gzip; see `read_trees`."""
    trees = list(read_trees(read_lines(Path(path)), str(path)))
    if not trees:
        raise CorpusError(f"{path} holds no tree")
    return trees


def parsing_pairs(trees: Iterable[Tree], name: str) -> ParallelCorpus:
    """Parsing as translation: from the words of a sentence to its linearised tree.

    The words have spaces between them, marks too ("the dog , and"): so the sentence says which words XX stands for.
    """
    return _corpus([(" ".join(tree.words()), linearise(tree)) for tree in trees], name)


def multi30k(split: str, source: str = "en", target: str = "de", folder: str | Path | None = None) -> ParallelCorpus:
    """A split of Multi30k between English and German or French, from a folder or from what was downloaded."""
    for language in (source, target):
        if language not in MULTI30K_LANGUAGES or source == target or "en" not in (source, target):
            raise CorpusError(
                f"Multi30k has no pair {source}–{target}: choose en–de, de–en, en–fr or fr–en (this is {language!r})"
            )
    if split not in MULTI30K_SPLITS:
        raise CorpusError(f"Multi30k has no split {split!r}: choose one of {', '.join(MULTI30K_SPLITS)}")
    paths = [_multi30k_file(f"{split}.{language}.gz", folder) for language in (source, target)]
    return _clean(read_lines(paths[0]), read_lines(paths[1]), f"Multi30k {split} {source}–{target}")


def download_multi30k(
    languages: Iterable[str] = ("en", "de"), progress: Callable[[str, int, int | None], None] | None = None
) -> Path:
    """Fetch the files of these languages into the cache folder; returns the folder. What is there is not fetched."""
    folder = cache_folder() / "multi30k"
    for name, checksum in _MULTI30K_SHA256.items():
        if name.split(".")[1] in languages:
            report = None if progress is None else (lambda got, of, name=name: progress(name, got, of))
            fetch(f"{_MULTI30K_ADDRESS}/{name}", folder / name, checksum, report)
    return folder


def from_files(source: str | Path, target: str | Path) -> ParallelCorpus:
    """A user's own text: two files with one sentence a line, plain or gzip."""
    return _clean(read_lines(Path(source)), read_lines(Path(target)), f"{source} and {target}")


def from_table(path: str | Path, source: str = "source", target: str = "target") -> ParallelCorpus:
    """A user's own text in one file, plain or gzip: .tsv (source, tab, target) or .jsonl (one object a line)."""
    path = Path(path)
    kind = path.name.removesuffix(".gz").rsplit(".", 1)[-1]
    readers = {"tsv": _tsv_row, "jsonl": lambda line, where: _jsonl_row(line, where, source, target)}
    if kind not in readers:
        raise CorpusError(f"{path}: the name must end in .tsv or .jsonl (or that and .gz), so that its form is known")
    rows = [readers[kind](line, f"{path}, line {number}") for number, line in enumerate(read_lines(path), start=1)]
    return _clean((row[0] for row in rows), (row[1] for row in rows), str(path))


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a text file, plain or gzip, without their ends; other than UTF-8 is refused with its line."""
    if not path.is_file():
        raise CorpusError(f"there is no file {path}")
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        try:
            yield from decoded(file, str(path))
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise CorpusError(f"{path} is not a whole gzip file ({error}): fetch or pack it again") from None


def decoded(lines: Iterable[bytes], name: str) -> Iterator[str]:
    """Lines as text, without their ends; one that is not UTF-8 is refused with its number.

    Some editors put a byte order mark before the first line. It is no part of the text.
    """
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise CorpusError(f"{name}, line {number} is not UTF-8 ({error.reason}): save it as UTF-8") from None


def _tsv_row(line: str, where: str) -> tuple[str, str]:
    cells = line.split("\t")
    if len(cells) != 2:
        raise CorpusError(f"{where} has {len(cells)} columns: it must be source, tab, target")
    return cells[0], cells[1]


def _jsonl_row(line: str, where: str, source: str, target: str) -> tuple[str, str]:
    try:
        row = json.loads(line)
        pair = row[source], row[target]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise CorpusError(f"{where} must be a JSON object with the keys {source!r} and {target!r}") from None
    if not all(isinstance(text, str) for text in pair):
        raise CorpusError(f"{where}: {source!r} and {target!r} must be texts")
    return pair


def _multi30k_file(name: str, folder: str | Path | None) -> Path:
    folder = Path(folder or os.environ.get("TINYTRANSFORMER_DATA") or cache_folder() / "multi30k")
    path = folder / name
    if not path.is_file():
        raise CorpusError(
            f"there is no {name} in {folder}. Download it with `python -m tinytransformer download multi30k`, or name "
            "the folder that holds it with --data or in TINYTRANSFORMER_DATA"
        )
    if sha256(path) != _MULTI30K_SHA256[name]:
        raise DownloadError(f"{path} is not Multi30k's {name}: its SHA-256 differs. Delete it and download it again")
    return path


def _clean(source: Iterable[str], target: Iterable[str], name: str) -> ParallelCorpus:
    """Drop pairs without text on a side, straighten spaces, and count what was done."""
    source, target = tuple(source), tuple(target)
    ParallelCorpus(source, target, name)  # refuses unequal lengths before anything is dropped
    counts: Counter[str] = Counter()
    pairs = []
    for texts in zip(source, target, strict=True):
        straight = tuple(" ".join(text.split()) for text in texts)
        counts["no-break spaces"] += sum(text.count("\u00a0") for text in texts)
        counts["stray spaces at an end"] += sum(text != text.strip() for text in texts)
        if all(any(character.isalnum() for character in text) for text in straight):
            pairs.append(straight)
        else:
            counts["pairs without words on a side"] += 1
    if not pairs:
        raise CorpusError(f"{name} holds no sentence pair")
    return _corpus(pairs, name, cleaned={what: count for what, count in counts.items() if count})


def _corpus(pairs, name: str, reverse: bool = False, cleaned: Mapping[str, int] | None = None) -> ParallelCorpus:
    source, target = zip(*pairs, strict=True) if pairs else ((), ())
    source, target = (target, source) if reverse else (source, target)
    return ParallelCorpus(source, target, name, cleaned or {})
