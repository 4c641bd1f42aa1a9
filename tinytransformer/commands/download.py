"""``download``: fetch a corpus once, verified, into the user's cache folder."""

import argparse

from tqdm import tqdm

from tinytransformer.text.corpus import MULTI30K_LANGUAGES, CorpusError, download_multi30k

DESCRIPTION = """\
Fetch Multi30k from its public repository, at a fixed commit, into your cache folder. Every file is checked against its
SHA-256; a download that was cut goes on where it stopped. Multi30k is partly derived from Flickr30K and free for
non-commercial research and education."""
EXAMPLES = "example: python -m tinytransformer download multi30k --languages en,de"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("corpus", choices=("multi30k",), help="what to fetch")
    parser.add_argument("--languages", default="en,de", help="which languages, of en, de, fr; default: en,de")
    parser.set_defaults(run_command=run)


def run(options: argparse.Namespace) -> None:
    languages = [name.strip() for name in options.languages.split(",")]
    unknown = [name for name in languages if name not in MULTI30K_LANGUAGES]
    if unknown:
        raise CorpusError(f"Multi30k has no {unknown[0]!r}: choose from {', '.join(MULTI30K_LANGUAGES)}")
    bars: dict[str, tqdm] = {}

    def show(name: str, received: int, expected: int | None) -> None:
        if name not in bars:
            bars[name] = tqdm(desc=name, total=expected, unit="B", unit_scale=True)
        bars[name].update(received - bars[name].n)

    try:
        folder = download_multi30k(languages, show)
    finally:
        for bar in bars.values():
            bar.close()
    print(folder)
