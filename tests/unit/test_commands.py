"""The commands as a user types them: from text to a model, its translations and its scores."""

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tinytransformer.cli import COMMANDS, main
from tinytransformer.text import corpus as corpora
from tinytransformer.training.checkpoints import Checkpoint, average, checkpoints, load_model

TINY = (
    "--pairs 400 --vocab-size 300 --d-model 16 --num-heads 2 --d-ff 32 --num-layers 1 --tokens 500 --steps 30 "
    "--warmup 5 --save-every 5 --validate-every 15 --keep 3 --device cpu"
).split()


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    printed, aside = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(aside):
        assert main(["train", "--folder", str(folder), *TINY]) == 0
    (folder / "printed.txt").write_text(printed.getvalue(), encoding="utf-8")
    (folder / "aside.txt").write_text(aside.getvalue(), encoding="utf-8")
    return folder


def test_training_shows_its_progress_and_what_it_has_learned(run):
    printed, aside = ((run / name).read_text(encoding="utf-8") for name in ("printed.txt", "aside.txt"))
    assert re.search(r"BLEU \d+\.\d\d \(nrefs:1\|case:mixed", printed)
    assert printed.count("\n  -> ") == 5
    assert "attention.png" in printed
    assert re.search(r"30/30 \[.*<00:00.*loss=\d+\.\d+, rate=\d\.\de-\d+, tokens=[\d,]+/s", aside)
    assert "step 15: valid BLEU" in aside


def refused(arguments, message, capsys):
    """The command ends with code 2 and one line that holds the message."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_training_leaves_a_model_a_card_a_log_and_a_picture(run):
    assert {path.name for path in (run / "model").iterdir()} == {
        "model.safetensors", "config.json", "tokenizer.model", "card.md", "checksums.json"
    }  # fmt: skip
    card = (run / "model" / "card.md").read_text(encoding="utf-8")
    assert "| microworld valid | 500 |" in card
    assert "30 steps" in card
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [entry["step"] for entry in entries if "valid_bleu" in entry] == [15, 30]
    assert all({"valid_loss", "score"} <= entry.keys() for entry in entries if "valid_bleu" in entry)
    assert (run / "attention.png").read_bytes().startswith(b"\x89PNG")
    assert len(checkpoints(run / "best")) == 1
    weights = average([Checkpoint.load(path).weights for path in checkpoints(run)])
    for name, tensor in load_model(run / "model")[0].state_dict().items():
        torch.testing.assert_close(tensor, weights[name], atol=1e-3, rtol=1e-3)  # stored in half precision


def test_a_finished_run_says_so_again_without_training(run, capsys):
    before = (run / "log.jsonl").read_text(encoding="utf-8")
    main(["train", "--folder", str(run), "--device", "cpu", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["step"] == 30
    assert found["signature"].startswith("nrefs:1|case:mixed")
    assert (run / "log.jsonl").read_text(encoding="utf-8") == before


def test_ctrl_c_tells_how_to_go_on(tmp_path, monkeypatch, capsys):
    from tinytransformer.commands import train as command

    def interrupted(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "train", interrupted)
    monkeypatch.setattr(sys, "argv", ["x", "train", "--folder", "somewhere"])
    with pytest.raises(SystemExit) as ended:
        main(["train", "--folder", str(tmp_path / "run"), *TINY])
    assert ended.value.code == 130
    assert "To go on: python -m tinytransformer train --folder somewhere" in capsys.readouterr().err


def test_other_settings_in_the_same_folder_are_refused(run, capsys):
    refused(["train", "--folder", run, "--dropout", "0.5"], "dropout was 0.0 and is now 0.5", capsys)
    refused(
        ["train", "--folder", run, "--recipe", "mine"], "there is no recipe 'mine': choose one of microworld", capsys
    )


def test_a_run_may_start_from_a_trained_model(run, tmp_path, capsys):
    start = ["--start", str(run / "model"), "--dropout", "0.2", "--peak", "1e-12", "--steps", "6", "--pairs", "300"]
    main(["train", "--folder", str(tmp_path), *TINY, *start])
    (first, tokenizer), (second, same) = load_model(run / "model"), load_model(tmp_path / "model")
    assert tokenizer.model == same.model
    for name, tensor in first.state_dict().items():
        torch.testing.assert_close(second.state_dict()[name], tensor)  # next to nothing was learned at this rate
    card = (tmp_path / "model" / "card.md").read_text(encoding="utf-8")
    assert f"--start {run / 'model'}" in card
    assert card.count("## Made by") == 1
    assert "6 steps in" in card.split("### Before that")[0]
    assert "30 steps in" in card.split("### Before that")[1]
    capsys.readouterr()
    other = ["--start", run / "model", "--d-model", "32"]
    refused(["train", "--folder", tmp_path / "other", *TINY, *other], "d_model is 16 there and 32 here", capsys)
    refused(["train", "--folder", tmp_path / "none", *TINY, "--start", "nowhere"], "no model 'nowhere'", capsys)


def test_own_text_is_trained_on_and_bad_lines_are_named(tmp_path, capsys):
    pairs = [("a dog runs fast .", "ein Hund rennt schnell ."), ("the cat sleeps .", "die Katze schläft .")] * 60
    good, bad = tmp_path / "good.tsv", tmp_path / "bad.tsv"
    good.write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
    bad.write_bytes(b"a\tb\nc\t\xff\n")
    arguments = ["train", "--corpus", "files", "--valid", good, *TINY, "--vocab-size", "60", "--max-length", "30"]
    refused([*arguments, "--train", bad, "--folder", tmp_path / "bad"], "bad.tsv, line 2 is not UTF-8", capsys)
    main([str(one) for one in [*arguments, "--train", good, "--folder", tmp_path / "run", "--json"]])
    assert json.loads(capsys.readouterr().out)["sentences"] == 120


def test_translate_arguments_and_standard_input_give_the_same(run, capsys, monkeypatch):
    sentences = ["The dog sleeps.", "", "The children see the big house."]
    model = ["--model", str(run / "model"), "--device", "cpu"]
    main(["translate", *model, *sentences])
    by_argument = capsys.readouterr().out
    assert by_argument.count("\n") == 3
    assert by_argument.split("\n")[1] == ""
    text = io.TextIOWrapper(io.BytesIO("\n".join(sentences).encode()))
    monkeypatch.setattr(sys, "stdin", text)
    main(["translate", *model])
    assert capsys.readouterr().out == by_argument
    main(["translate", *model, "--json", "--sample", "1.0", "--seed", "3", sentences[0]])
    found = json.loads(capsys.readouterr().out)
    assert {"source", "text", "score", "tokens", "source_tokens"} <= found.keys()


def test_translate_refuses_what_it_cannot_read(run, capsys, monkeypatch):
    model = ["translate", "--device", "cpu", "--model", run / "model"]
    refused(["translate", "--model", "nobody", "x"], "there is no model 'nobody'", capsys)
    refused(["translate", "--model", run, "x"], "is not a model folder: it has no model.safetensors", capsys)
    refused([*model, "--beam", "0", "x"], "beam=0 must be at least 1", capsys)
    refused([*model, "the " * 300], "line 1: a sentence has", capsys)
    refused([*model, "--device", "gpu", "x"], "device='gpu' is unknown: choose auto", capsys)
    refused([*model, "--threads", "0", "x"], "threads=0 must be at least 1", capsys)
    with pytest.raises(SystemExit):
        main(
            [*map(str, model), "The dog sleeps. The dog sleeps.", f"The dog sleeps. {'the ' * 300}", "The dog sleeps."]
        )
    told = capsys.readouterr()
    assert re.search(r"line 2: a sentence has 3\d\d tokens, and the model takes 255: divide it", told.err)
    assert told.out.count("\n") == 1, "what stands before it is translated"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"good\nb\xff\n")))
    refused(model, "standard input, line 2 is not UTF-8", capsys)


def evaluated(capsys, *arguments) -> dict:
    capsys.readouterr()
    main(["evaluate", "--device", "cpu", "--json", *map(str, arguments)])
    return json.loads(capsys.readouterr().out)


def test_evaluate_equals_sacrebleus_command_on_the_same_files(run, tmp_path, capsys):
    main(["corpus", "microworld", "--split", "test", "--count", "40"])
    lines = capsys.readouterr().out.splitlines()
    source, reference, output = (tmp_path / name for name in ("source", "reference", "output"))
    source.write_text("\n".join(lines[0::2]) + "\n", encoding="utf-8")
    reference.write_text("\n".join(lines[1::2]) + "\n", encoding="utf-8")
    found = evaluated(
        capsys, "--model", run / "model", "--source", source, "--reference", reference, "--output", output, "--beam", 2
    )
    assert {"bleu", "signature", "bleu_lowercase_tokenised", "chrf", "sentences", "seconds"} <= found.keys()
    command = [sys.executable, "-m", "sacrebleu", reference, "-i", output, "--width", "8", "-m", "bleu", "chrf"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    bleu, chrf = json.loads(done.stdout)
    assert found["sentences"] == 40
    assert found["bleu"] == pytest.approx(bleu["score"], abs=1e-6)
    assert found["signature"] == bleu["signature"]
    assert found["chrf"] == pytest.approx(chrf["score"], abs=1e-6)


def test_evaluate_refuses_before_it_works(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tinytransformer.translation.translator.Translator.__call__", None)  # nothing is translated
    source, reference = tmp_path / "source", tmp_path / "reference"
    source.write_text("a dog\na cat\n", encoding="utf-8")
    reference.write_text("ein Hund\n" + "Katze " * 200 + "\n", encoding="utf-8")
    files = ["evaluate", "--model", run / "model", "--source", source, "--reference", reference]
    refused(files, "line 2 of the reference has", capsys)
    refused([*files, "--output", tmp_path / "nowhere" / "x"], "there is no folder", capsys)
    refused([*files, "--corpus", "microworld"], "--corpus microworld has its own text: leave out --source", capsys)


def test_scores_are_printed_although_the_output_cannot_be_written(run, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(
            [
                "evaluate",
                "--model",
                str(run / "model"),
                "--corpus",
                "microworld",
                "--count",
                "3",
                "--output",
                str(tmp_path),
            ]
        )
    assert "bleu" in capsys.readouterr().out


def test_ctrl_c_ends_any_command_without_a_traceback(monkeypatch, capsys):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr("tinytransformer.commands.download.run", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["download", "multi30k"])
    assert ended.value.code == 130
    assert "Stopped" in capsys.readouterr().err


def test_under_torchrun_the_way_to_go_on_has_as_many_processes(monkeypatch):
    from tinytransformer.commands.train import command_line

    monkeypatch.setattr(sys, "argv", ["x", "train", "--folder", "somewhere"])
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert command_line() == "torchrun --nproc-per-node=4 -m tinytransformer train --folder somewhere"
    monkeypatch.setenv("TINYTRANSFORMER_SHARED", "4")  # started by the command itself
    assert command_line() == "python -m tinytransformer train --folder somewhere"


def test_evaluate_on_the_microworld_and_into_the_card(run, capsys):
    found = evaluated(
        capsys, "--model", run / "model", "--corpus", "microworld", "--split", "test_pronoun", "--count", 12,
        "--beam", 1, "--add-to-card",
    )  # fmt: skip
    assert found["sentences"] == 12
    assert 0 <= found["pronoun_accuracy"] <= 1
    assert 0 <= found["alignment_error"] <= 1
    assert found["bleu_by_construction"]
    card = (run / "model" / "card.md").read_text(encoding="utf-8")
    assert "| microworld test_pronoun, beam 1, α = 0.6 | 12 |" in card, "another way than the default is named"
    load_model(run / "model")  # its checksums were renewed
    main(["evaluate", "--device", "cpu", "--model", str(run / "model"), "--corpus", "microworld", "--count", "3"])
    assert "bleu_by_construction\n  article" in capsys.readouterr().out


def test_evaluate_refuses(run, tmp_path, capsys):
    short, long = tmp_path / "short", tmp_path / "long"
    short.write_text("a\n", encoding="utf-8")
    long.write_text("a\nb\n", encoding="utf-8")
    refused(["evaluate"], "say what to translate: --source and --reference", capsys)
    refused(["evaluate", "--source", short, "--reference", long], "has 1 lines but", capsys)
    refused(["evaluate", "--source", short, "--reference", tmp_path / "none"], "there is no file", capsys)
    refused(["evaluate", "--corpus", "multi30k", "--pair", "en-es"], "Multi30k has no pair en–es", capsys)
    refused(["evaluate", "--corpus", "multi30k", "--pair", "english"], "not a pair of languages", capsys)
    refused(["evaluate", "--corpus", "multi30k", "--data", tmp_path], "there is no test_2016_flickr.en.gz in", capsys)
    refused(["evaluate", "--corpus", "microworld", "--pair", "en-fr"], "choose en-de or de-en", capsys)
    refused(["evaluate", "--corpus", "microworld", "--split", "dev"], "unknown split 'dev'", capsys)


def test_average_writes_a_model(run, tmp_path, capsys):
    main(["average", str(run), "--last", "2", "--output", str(tmp_path / "two")])
    assert "step-00000025, step-00000030" in capsys.readouterr().out
    expected = average([Checkpoint.load(path).weights for path in checkpoints(run)[-2:]])
    for name, tensor in load_model(tmp_path / "two")[0].state_dict().items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-3, rtol=1e-3)
    refused(["average", run, "--last", "0", "--output", tmp_path / "none"], "last=0 must be at least 1", capsys)
    refused(["average", tmp_path, "--output", tmp_path / "none"], "holds no run", capsys)
    assert not (tmp_path / "none").exists()


def test_download_reports_and_refuses(monkeypatch, tmp_path, capsys):
    fetched = []

    def fetch(address, goal, checksum, progress):
        fetched.append(goal.name)
        progress(10, 20)
        progress(20, 20)
        return goal

    monkeypatch.setattr(corpora, "fetch", fetch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    main(["download", "multi30k", "--languages", "fr"])
    assert len(fetched) == 5
    assert all(".fr." in name for name in fetched)
    assert "multi30k" in capsys.readouterr().out
    refused(["download", "multi30k", "--languages", "en,es"], "Multi30k has no 'es'", capsys)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "example" in out or command == "corpus"


def test_looking_for_help_or_a_corpus_loads_no_torch():
    code = "import sys; from tinytransformer.cli import main; main(['corpus', 'microworld', '--count', '1'])"
    code += "; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
