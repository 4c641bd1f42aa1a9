"""``python -m tinytransformer corpus microworld`` as a user calls it."""

import json
import subprocess
import sys

import pytest

from tinytransformer.cli import main
from tinytransformer.text.microworld import generate

COMMAND = [sys.executable, "-m", "tinytransformer"]
KEYS = ["source", "target", "source_words", "target_words", "alignment", "tree", "constructions", "pronouns"]


def test_json_lines(capsys):
    assert main(["corpus", "microworld", "--split", "test", "--count", "5", "--seed", "1", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    objects = [json.loads(line) for line in lines]
    assert len(objects) == 5
    assert all(list(found) == KEYS for found in objects)
    assert objects == [example.to_dict() for example in generate("test", 5, seed=1)]


def test_readable_form_has_two_lines_a_pair(capsys):
    main(["corpus", "microworld", "--split", "test_pronoun", "--count", "3"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    expected = [text for example in generate("test_pronoun", 3) for text in (example.source, example.target)]
    assert lines == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["corpus", "microworld", "--split", "dev"], "unknown split 'dev': use one of train, valid, test"),
        (["corpus", "microworld", "--count", "-3"], "count is -3: ask for 0 examples or more"),
        (["corpus", "microworld", "--count", "many"], "invalid int value: 'many'"),
        (["corpus"], "required"),
        (["dance"], "invalid choice: 'dance'"),
    ],
)
def test_wrong_arguments_end_with_code_2_and_a_remedy(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_closed_pipe_is_no_error():
    command = [*COMMAND, "corpus", "microworld", "--count", "1000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == b""


def test_help_explains_the_splits(capsys):
    with pytest.raises(SystemExit):
        main(["corpus", "microworld", "--help"])
    out = capsys.readouterr().out
    assert "test_pronoun" in out
    assert "example:" in out
