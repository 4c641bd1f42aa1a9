"""``export`` and ``import-marian`` as a user types them."""

import io
import json
import shutil
import subprocess
import sys
from contextlib import redirect_stdout

import pytest
from support_exchange import marian_folder

from tinytransformer import Translator
from tinytransformer.cli import main
from tinytransformer.training.checkpoints import find_model
from tinytransformer.translation.exchange import formats

MODEL = "microworld-en-de"
NEEDED = {"onnx": "onnxruntime", "marian": "transformers", "ctranslate2": "ctranslate2"}
no_moses = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses:UserWarning")


def refused(arguments, message, capsys) -> None:
    """The command ends with code 2 and one line that holds the message."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]


@no_moses
@pytest.mark.parametrize("settings", ["onnx", "onnx --int8", "marian", "ctranslate2"])
def test_what_is_printed_translates(settings, tmp_path, capsys):
    """The lines of Python that the command prints are run: text in, text out, in the other library."""
    pytest.importorskip("onnx", reason="onnx is in requirements-exchange.txt")
    pytest.importorskip(NEEDED[settings.split()[0]], reason="it is in requirements-exchange.txt")
    folder = tmp_path / "out"
    assert main(["export", "--model", MODEL, "--to", *settings.split(), "--output", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert f"{folder}: {sum(sizes.values()):,} bytes" in out
    assert all(f"  {name:24} {size:>12,}" in out for name, size in sizes.items())
    code = out.split("Use it in Python:\n\n")[1].replace("A dog runs.", "The dog sleeps.")
    found = io.StringIO()
    with redirect_stdout(found):
        exec(code, {})
    assert found.getvalue().strip() == Translator.load(MODEL, "cpu")("The dog sleeps.").text
    card = (folder / "card.md").read_text(encoding="utf-8")
    assert card.startswith(f"Made from the model {MODEL} by `python -m tinytransformer export --to {settings}`.")
    assert card.endswith((find_model(MODEL) / "card.md").read_text(encoding="utf-8")), "its terms came along"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_exported_model_is_translated_with_and_scored_like_ours(tmp_path, capsys):
    pytest.importorskip("onnxruntime", reason="onnxruntime is in requirements-exchange.txt")
    folder, found = tmp_path / "out", {}
    main(["export", "--model", MODEL, "--to", "onnx", "--output", str(folder)])
    assert f'translate --model {folder} "A dog runs."' in capsys.readouterr().out
    for model in (MODEL, str(folder)):
        assert main(["translate", "--model", model, "--device", "cpu", "The dog sleeps."]) == 0
        text = capsys.readouterr().out
        main(["evaluate", "--model", model, "--device", "cpu", "--corpus", "microworld", "--count", "20", "--json"])
        scores = json.loads(capsys.readouterr().out)
        found[model] = text, scores["bleu"], round(scores["perplexity"], 4), scores["pronoun_accuracy"]
    assert found[MODEL] == found[str(folder)]
    refused(
        ["explore", "--model", folder, "--html", tmp_path / "page.html", "The dog sleeps."],
        "a model without attention records nothing",
        capsys,
    )


def test_there_and_back_again(tmp_path, capsys):
    main(["export", "--model", MODEL, "--to", "marian", "--output", str(tmp_path / "marian")])
    capsys.readouterr()
    assert main(["import-marian", str(tmp_path / "marian"), "--output", str(tmp_path / "back")]) == 0
    out = capsys.readouterr().out
    assert f"translate --model {tmp_path / 'back'}" in out
    assert "model.safetensors" in out
    assert main(["translate", "--model", str(tmp_path / "back"), "--device", "cpu", "The dog sleeps."]) == 0
    assert capsys.readouterr().out.strip() == Translator.load(MODEL, "cpu")("The dog sleeps.").text


def test_export_refuses(tmp_path, capsys):
    goal = tmp_path / "out"
    end = ["--output", goal]
    refused(["export", "--model", "no-such", "--to", "onnx", *end], "there is no model 'no-such': give a model", capsys)
    refused(
        ["export", "--model", tmp_path, "--to", "onnx", *end], "is not a model folder: it has no model.safe", capsys
    )
    refused(["export", "--model", "microworld-lstm", "--to", "marian", *end], "it is a lstm, not a Transf", capsys)
    refused(["export", "--to", "marian", "--int8", *end], "--int8 is for --to onnx, not for marian", capsys)
    refused(["export", "--to", "ctranslate2", "--int8", *end], 'when it starts, with compute_type="int8"', capsys)
    assert not list(tmp_path.iterdir())
    damaged = shutil.copytree(find_model(MODEL), tmp_path / "damaged")
    data = (damaged / "model.safetensors").read_bytes()
    (damaged / "model.safetensors").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    refused(["export", "--model", damaged, "--to", "onnx", *end], "model.safetensors is damaged: its checksum", capsys)
    goal.write_text("years of work")
    for name in NEEDED:
        refused(["export", "--model", MODEL, "--to", name, *end], "exists and is not empty: name a new", capsys)
    assert goal.read_text() == "years of work"


def test_a_format_that_does_not_exist(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["export", "--to", "pickle", "--output", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert "invalid choice: 'pickle'" in capsys.readouterr().err


def test_import_refuses(tmp_path, capsys):
    end = ["--output", tmp_path / "out"]
    refused(["import-marian", tmp_path / "none", *end], "there is no folder", capsys)
    refused(["import-marian", tmp_path, *end], "is not a Marian folder: it has no config.json", capsys)
    refused(["import-marian", find_model(MODEL), *end], "model_type=None cannot be imported: choose a fol", capsys)
    pytest.importorskip("transformers", reason="transformers is in requirements-exchange.txt")
    good = marian_folder(tmp_path / "opus")
    (good / "model.safetensors").rename(good / "pytorch_model.bin")
    capsys.readouterr()  # that library shows its progress
    refused(["import-marian", good, *end], "pytorch_model.bin, a pickle, which is not opened", capsys)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("form", "missing"), [("onnx", "onnx"), ("ctranslate2", "ctranslate2")])
def test_a_package_that_is_not_there_is_named(form, missing, tmp_path, capsys, monkeypatch):
    imported = formats.importlib.import_module

    def without(name, *more):
        if name.split(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {missing!r}")
        return imported(name, *more)

    monkeypatch.setattr(formats.importlib, "import_module", without)
    message = (
        f"this needs the package {missing} (No module named '{missing}'): pip install -r requirements-exchange.txt"
    )
    refused(["export", "--model", MODEL, "--to", form, "--output", tmp_path / "out"], message, capsys)
    assert not list(tmp_path.iterdir())


def test_what_does_not_fit_on_the_disk_leaves_nothing(tmp_path, capsys, monkeypatch):
    from tinytransformer.translation.exchange import marian

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(marian.Path, "write_bytes", full)
    refused(["export", "--model", MODEL, "--to", "marian", "--output", tmp_path / "out"], "No space left", capsys)
    assert not list(tmp_path.iterdir())


def test_the_commands_load_no_other_library_before_they_need_it():
    code = "import sys, tinytransformer.commands.export, tinytransformer.commands.import_marian; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"onnx", "onnxruntime", "ctranslate2", "transformers"} & set(loaded)
