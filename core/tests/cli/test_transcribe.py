"""`oasr transcribe`: what it prints and writes, its exit codes, and what it refuses before a model loads."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from oasr.audio import RawAudio
from oasr.audio.read import RAW_ENCODINGS
from oasr.cli import transcribe as command
from oasr.cli.main import main
from oasr.errors import CheckpointError, DeviceError, ModelNotFoundError, OasrError
from oasr.plugin import ComponentSpec, Kind, hookimpl
from oasr.registry import Registry
from oasr.types import DecodingOptions

Create = Callable[..., Path]


def test_one_file_prints_its_text_alone(engine, here: Create, capsys) -> None:
    here("a.wav")
    assert main(["transcribe", "a.wav", "--model", "m"]) == 0
    assert capsys.readouterr() == ("text of a.wav\n", "")


def test_several_files_print_in_order_with_their_names(engine, here: Create, capsys) -> None:
    here("b.wav", "a.wav")
    assert main(["transcribe", "b.wav", "a.wav"]) == 0
    assert capsys.readouterr().out == "b.wav: text of b.wav\na.wav: text of a.wav\n"


def test_a_folder_prints_names_though_it_holds_one_file(engine, here: Create, capsys) -> None:
    here("f/a.wav")
    assert main(["transcribe", "f"]) == 0
    assert capsys.readouterr().out == "f/a.wav: text of a.wav\n"


def test_json_of_one_file_is_one_object(engine, here: Create, capsys) -> None:
    here("a.wav")
    assert main(["transcribe", "a.wav", "--format", "json"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out)["text"] == "text of a.wav"
    assert out.count("\n") > 1


def test_json_of_several_is_one_object_a_line_with_failures_in_place(engine, here: Create, capsys) -> None:
    here("f/a.wav", "f/bad.wav", "f/c.wav")
    assert main(["transcribe", "absent.wav", "f", "--format", "json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["source"] for line in lines] == ["absent.wav", "f/a.wav", "f/bad.wav", "f/c.wav"]
    assert [line.get("error") for line in lines] == ["there is no such file", None, "is not audio", None]


def test_a_bad_input_stops_nobody(engine, here: Create, capsys) -> None:
    here("a.wav", "bad.wav", "c.wav")
    assert main(["transcribe", "a.wav", "bad.wav", "absent.wav", "c.wav", "-o", "out"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert sorted(path.name for path in Path("out").iterdir()) == ["a.wav.txt", "c.wav.txt"]
    assert "oasr: bad.wav: is not audio\n" in err
    assert "oasr: absent.wav: there is no such file\n" in err
    assert err.splitlines()[-1].endswith("; 2 of 4 inputs failed")


def test_one_bad_file_is_one_line(engine, here: Create, capsys) -> None:
    here("bad.wav")
    assert main(["transcribe", "bad.wav", "--model", "m"]) == 1
    assert capsys.readouterr() == ("", "oasr: bad.wav: is not audio\n")


def test_quiet_leaves_only_errors(engine, here: Create, capsys) -> None:
    here("a.wav", "bad.wav")
    assert main(["transcribe", "a.wav", "bad.wav", "-q"]) == 1
    assert capsys.readouterr().err == "oasr: bad.wav: is not audio\noasr: 1 of 2 inputs failed\n"


def test_a_folder_of_results_mirrors_the_folder_of_inputs(engine, here: Create) -> None:
    here("f/a.wav", "f/a.mp3", "f/deep/ü 日.wav")
    assert main(["transcribe", "f", "-o", "out", "--format", "txt,json"]) == 0
    written = {str(path.relative_to("out")) for path in Path("out").rglob("*") if path.is_file()}
    assert written == {f"{name}.{form}" for name in ("a.wav", "a.mp3", "deep/ü 日.wav") for form in ("txt", "json")}
    assert Path("out/deep/ü 日.wav.txt").read_text(encoding="utf-8") == "text of ü 日.wav\n"


def test_a_result_that_cannot_be_written_costs_no_other(engine, here: Create, capsys) -> None:
    here("a.wav", "b.wav", "out/a.wav.txt/in the way")
    assert main(["transcribe", "a.wav", "b.wav", "-o", "out"]) == 1
    assert Path("out/b.wav.txt").read_text() == "text of b.wav\n"
    assert (
        "oasr: out/a.wav.txt: cannot be written: there is something that is not a regular file\n"
        in capsys.readouterr().err
    )


def test_skip_existing_reads_what_is_left(engine, here: Create, capsys) -> None:
    here("a.wav", "b.wav", "out/a.wav.txt")
    assert main(["transcribe", "a.wav", "b.wav", "-o", "out", "--skip-existing"]) == 0
    assert engine.sources == ["b.wav"]
    assert "skipping 1 of 2 inputs, whose output exists" in capsys.readouterr().err


def test_skipping_nothing_is_not_worth_a_word(engine, here: Create, capsys) -> None:
    here("a.wav")
    assert main(["transcribe", "a.wav", "--model", "m", "-o", "out", "--skip-existing"]) == 0
    assert capsys.readouterr().err == ""


def test_skip_existing_loads_no_model_when_nothing_is_left(engine, here: Create, capsys) -> None:
    here("a.wav", "out/a.wav.txt")
    assert main(["transcribe", "a.wav", "-o", "out", "--skip-existing"]) == 0
    assert engine.opened == []
    assert "skipping 1 of 1 inputs" in capsys.readouterr().err


def test_skip_existing_wants_every_format(engine, here: Create) -> None:
    here("a.wav", "out/a.wav.txt")
    assert main(["transcribe", "a.wav", "-o", "out", "--skip-existing", "--format", "txt,json"]) == 0
    assert Path("out/a.wav.json").is_file()


def test_standard_input_is_one_input(engine, here: Create, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    here()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"12345")))
    assert main(["transcribe", "-", "-o", "out"]) == 0
    assert Path("out/stdin.txt").read_text() == "text of 5 bytes\n"


def test_options_reach_the_engine(engine, here: Create) -> None:
    here("a.wav")
    arguments = "--languages en,de --task translate --prompt P --temperature 0.5 --seed 7 --max-new-tokens 9"
    assert main(["transcribe", "a.wav", *arguments.split(), "--suppress-tokens", "1, 2"]) == 0
    [options] = engine.options
    assert (options.languages, options.task, options.prompt) == (("en", "de"), "translate", "P")
    assert (options.temperature, options.seed, options.max_new_tokens) == (0.5, 7, 9)
    assert options.suppress_tokens == (1, 2)


def test_options_of_long_audio_reach_the_engine(engine, here: Create) -> None:
    here("a.wav")
    arguments = "--no-timestamps --word-timestamps --condition-on-previous --fallback 0.4,0.2"
    thresholds = "--compression-ratio-threshold 3 --logprob-threshold -2 --no-speech-threshold 0.5"
    assert main(["transcribe", "a.wav", *arguments.split(), *thresholds.split(), "--detector", "energy"]) == 0
    [options] = engine.options
    assert (options.timestamps, options.word_timestamps, options.condition_on_previous) == (False, True, True)
    assert options.fallback == (0.2, 0.4)
    assert (options.most_compression, options.least_logprob, options.most_silence) == (3, -2, 0.5)
    [config] = engine.opened
    assert config.detector.name == "energy"


def test_options_of_prompts_and_search_reach_the_engine(engine, here: Create) -> None:
    here("a.wav")
    texts = ["--prompt", "P", "--carry-prompt", "--prefix", "X", "--hotwords", "Kaldi, Saint-Malo , a,"]
    search = "--beam 4 --patience 2 --length-penalty 0.6 --best-of 3 --n-best 2"
    assert main(["transcribe", "a.wav", *texts, *search.split()]) == 0
    assert engine.options == [
        DecodingOptions(
            prompt="P",
            carry_prompt=True,
            prefix="X",
            hotwords=("Kaldi", "Saint-Malo", "a"),
            beam=4,
            patience=2.0,
            length_penalty=0.6,
            best_of=3,
            n_best=2,
        )
    ]


def test_options_left_out_are_those_of_the_engine(engine, here: Create) -> None:
    here("a.wav")
    assert main(["transcribe", "a.wav"]) == 0
    assert engine.options == [DecodingOptions()]


def test_no_fallback_is_not_the_usual_one(engine, here: Create) -> None:
    here("a.wav")
    assert main(["transcribe", "a.wav", "--fallback", ""]) == 0
    assert [options.fallback for options in engine.options] == [()]


@pytest.mark.parametrize("encoding", RAW_ENCODINGS)
def test_inputs_without_a_header_are_declared(engine, here: Create, capsys, encoding: str) -> None:
    here("a.raw", "b.raw")
    assert main(["transcribe", "a.raw", "b.raw", "--encoding", encoding, "--rate", "8000", "--format", "json"]) == 0
    assert engine.sources == [RawAudio("b.raw", encoding, 8000), RawAudio("a.raw", encoding, 8000)]
    assert [json.loads(line)["source"] for line in capsys.readouterr().out.splitlines()] == ["a.raw", "b.raw"]


def test_no_suppressed_tokens_is_not_the_models_own_list(engine, here: Create) -> None:
    here("a.wav")
    assert main(["transcribe", "a.wav"]) == 0
    assert main(["transcribe", "a.wav", "--suppress-tokens", ""]) == 0
    assert [options.suppress_tokens for options in engine.options] == [None, ()]


def test_flags_win_over_the_configuration_file(engine, here: Create) -> None:
    here("a.wav")
    Path("c.toml").write_text('model = "from file"\ndevice = "cuda"\n[audio]\nworkers = 2\n')
    assert main(["transcribe", "a.wav", "--config", "c.toml", "--device", "cpu", "--set", "audio.workers=3"]) == 0
    [config] = engine.opened
    assert (config.model, config.device, config.audio.workers) == ("from file", "cpu", 3)


def test_a_command_line_of_openai_whisper_means_the_same(engine, here: Create) -> None:
    here("a.wav")
    prompts = "--initial_prompt P --carry_initial_prompt True --condition_on_previous_text False"
    search = "--best_of=5 --beam_size 5 --patience 1.5 --length_penalty 1 --temperature 0 --suppress_tokens 1,2"
    thresholds = "--compression_ratio_threshold 3 --logprob_threshold -2 --no_speech_threshold 0.5"
    output = "--output_dir out -f srt --word_timestamps True --task translate --language fr --model m --device cpu"
    assert main(["transcribe", "a.wav", *prompts.split(), *search.split(), *thresholds.split(), *output.split()]) == 0
    assert [path.name for path in Path("out").iterdir()] == ["a.wav.srt"]
    assert engine.options == [
        DecodingOptions(
            language="fr",
            task="translate",
            prompt="P",
            carry_prompt=True,
            beam=5,
            best_of=5,
            patience=1.5,
            length_penalty=1.0,
            suppress_tokens=(1, 2),
            word_timestamps=True,
            condition_on_previous=False,
            most_compression=3.0,
            least_logprob=-2.0,
            most_silence=0.5,
        )
    ]


def test_a_command_line_of_whisper_cpp_means_the_same(engine, here: Create) -> None:
    here("a.wav")
    options = (
        "-l fr --beam-size 5 --best-of 5 --prompt P --carry-initial-prompt --logprob-thold -2 --no-speech-thold 0.5"
    )
    assert main(["transcribe", "-m", "m", *options.split(), "a.wav"]) == 0
    expected = {"language": "fr", "beam": 5, "best_of": 5, "least_logprob": -2.0, "most_silence": 0.5}
    assert engine.options == [DecodingOptions(prompt="P", carry_prompt=True, **expected)]


@pytest.mark.parametrize("spelling", ["--word-timestamps", "--word_timestamps", "--word_timestamps True"])
def test_switches_may_have_a_value(engine, here: Create, spelling: str) -> None:
    here("a.wav", "True", "False")
    assert main(["transcribe", *spelling.split(), "a.wav"]) == 0
    assert main(["transcribe", "--word_timestamps", "False", "a.wav", "True"]) == 0
    assert [options.word_timestamps for options in engine.options] == [True, False]
    assert sorted(map(str, engine.sources)) == ["True", "a.wav", "a.wav"]


def test_translate_is_transcribe_with_another_task(engine, here: Create, capsys) -> None:
    here("a.wav", "b.wav")
    assert main(["translate", "b.wav", "a.wav", "--language", "fr", "--beam_size", "2", "--format", "json"]) == 0
    assert engine.options == [DecodingOptions(task="translate", language="fr", beam=2)]
    assert [json.loads(line)["source"] for line in capsys.readouterr().out.splitlines()] == ["b.wav", "a.wav"]
    assert main(["transcribe", "a.wav"]) == 0
    assert engine.options[-1].task == "transcribe"


def test_translate_has_the_options_of_transcribe(capsys) -> None:
    def options(command: str) -> set[str]:
        assert main([command, "--help"]) == 0
        return set(re.findall(r"--[a-z-]+", capsys.readouterr().out))

    assert options("translate") == options("transcribe") >= {"--hotwords", "--beam", "--output-dir"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["absent.wav"], "absent.wav: there is no such file"),
        (["absent.wav", "x*.mp3"], "x*.mp3: matches no audio file"),
        (["empty"], "empty: holds no file"),
        (["a.wav", "--format", "docx"], 'there is no format "docx"; formats are txt, json, srt'),
        (["a.wav", "--format", ""], "name one format"),
        (["a.wav", "--format", "txt,json"], "name one format, or several with --output-dir"),
        (["a.wav", "--skip-existing"], "--skip-existing needs --output-dir"),
        (["a.wav", "-o", "a.wav"], "--output-dir a.wav: is a file"),
        (["a.wav", "--task", "sing"], "task 'sing' is unknown"),
        (["a.wav", "--temperature", "nan"], "temperature must be"),
        (["a.wav", "--temperature", "-1"], "temperature must be"),
        (["a.wav", "--seed", "-1"], "seed must be"),
        (["a.wav", "--max-new-tokens", "0"], "max_new_tokens must be"),
        (["a.wav", "--beam_size", "0"], "beam must be a whole number from 1"),
        (["a.wav", "--patience", "0"], "patience must be"),
        (["a.wav", "--n-best", "3", "--beam", "2"], "n_best=3 needs as many hypotheses"),
        (["a.wav", "--best-of", "2", "--fallback", ""], "set temperature above 0 or a fallback"),
        (["a.wav", "--carry-prompt"], "carry_prompt needs a prompt"),
        (["a.wav", "--language", "en", "--languages", "de"], "exclude each other"),
        (["a.wav", "--suppress-tokens", "1;2"], "--suppress-tokens 1;2: write token ids"),
        (["a.wav", "--fallback", "0.2;0.4"], "--fallback 0.2;0.4: write temperatures"),
        (["a.wav", "--fallback", "-1"], "fallback must be"),
        (["a.wav", "--detector", "nobody"], 'No detector named "nobody"'),
        (["a.wav", "--config", "absent.toml"], "absent.toml: there is no such file"),
        (["a.wav", "--set", "wrong"], "--set wrong: write KEY=VALUE"),
        (["a.wav", "--device", "tpu"], '"tpu" is not a device'),
        (["a.wav", "--decoder", "nobody"], 'No decoder named "nobody"'),
        (["a.wav", "--dtype", "int3"], "dtype"),
        (["a.wav", "--encoding", "alaw"], "--encoding and --rate go together"),
        (["a.wav", "--rate", "8000"], "--encoding and --rate go together"),
        (["a.wav", "--encoding", "s16be", "--rate", "8000"], "encodings are alaw, mulaw, s16le"),
        (["a.wav", "--encoding", "alaw", "--rate", "0"], "--rate"),
        ([], "Missing argument"),
    ],
)
def test_what_the_command_line_has_wrong_is_told_before_a_model_loads(
    engine, here: Create, capsys, arguments: list[str], complaint: str
) -> None:
    (here("a.wav") / "empty").mkdir()
    before = sorted(Path().rglob("*"))
    assert main(["transcribe", *arguments]) == 2
    out, err = capsys.readouterr()
    assert complaint in err
    assert out == ""
    assert engine.opened == []
    assert sorted(Path().rglob("*")) == before


def test_telling_a_mistake_imports_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from oasr.cli.main import main; code = main(['transcribe', 'absent.wav']); "
        "sys.exit(9 if {'torch', 'numpy', 'av'} & set(sys.modules) else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False, capture_output=True)
    assert done.returncode == 2


@pytest.mark.parametrize("kind", [CheckpointError, DeviceError, ModelNotFoundError])
def test_a_model_that_does_not_load_is_one_message(engine, here: Create, capsys, kind: type[OasrError]) -> None:
    here("a.wav")
    engine.refusal = kind("m cannot be had")
    assert main(["transcribe", "a.wav", "--model", "m"]) == 2
    assert capsys.readouterr() == ("", "oasr: m cannot be had\n")


def test_a_device_that_fails_later_is_no_command_that_did_nothing(engine, here: Create, capsys) -> None:
    here("a.wav", "b.wav")

    def fail(count: int) -> None:
        if count == 1:
            raise DeviceError("cuda:0 is gone")

    engine.after = fail
    assert main(["transcribe", "a.wav", "b.wav"]) == 1
    out, err = capsys.readouterr()
    assert out == "b.wav: text of b.wav\n"
    assert err.endswith("oasr: cuda:0 is gone\n")


def test_names_with_control_characters_are_escaped_but_in_json(engine, here: Create, capsys) -> None:
    name = "a\x1b[2J\nb.wav"
    here(name, "bad\x1b.wav")
    assert main(["transcribe", name, "bad\x1b.wav"]) == 1
    out, err = capsys.readouterr()
    assert out == "a\\x1b[2J\\nb.wav: text of a\x1b[2J b.wav\n"  # the scripted engine speaks the name
    assert "oasr: bad\\x1b.wav: is not audio\n" in err
    assert main(["transcribe", name, "bad\x1b.wav", "--format", "json"]) == 1
    assert [json.loads(line)["source"] for line in capsys.readouterr().out.splitlines()] == [name, "bad\x1b.wav"]
    assert main(["transcribe", "no\nsuch\x1b.wav"]) == 2
    assert capsys.readouterr().err == "oasr: no\\nsuch\\x1b.wav: there is no such file\n"


@pytest.mark.parametrize(
    "arguments", [["transcribe", "absent.wav"], ["nonsense"], ["transcribe"], ["--debug", "transcribe", "absent.wav"]]
)
def test_with_standard_error_closed_no_message_lands_among_the_results(tmp_path: Path, arguments: list[str]) -> None:
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "oasr", *arguments]
    done = subprocess.run(command, cwd=tmp_path, check=False, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_full_standard_error_changes_no_result(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "oasr", "transcribe", "absent.wav"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, cwd=tmp_path, check=False, stdout=subprocess.PIPE, stderr=full)
    assert (done.returncode, done.stdout) == (2, b"")


def test_ctrl_c_ends_the_process_though_a_pipe_never_brings_anything(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(
        [sys.executable, "-m", "oasr", "transcribe", "pipe"], cwd=tmp_path, stderr=subprocess.PIPE
    ) as process:
        with (tmp_path / "pipe").open("wb"):  # returns when the other side reads
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            assert b"Traceback" not in process.stderr.read()
        assert process.wait(timeout=60) == 130


def test_ctrl_c_waits_for_no_thread_and_keeps_what_was_printed() -> None:
    code = (
        "import threading, time, oasr.cli.main as entry\n"
        "def interrupted():\n"
        "    threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "    print('a result')\n"
        "    return 130\n"
        "entry.main = interrupted\n"
        "entry.console()"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"a result\n", b"")


def test_ctrl_c_keeps_what_has_ended(engine, here: Create, capsys) -> None:
    here("a.wav", "b.wav", "c.wav")

    def interrupt(count: int) -> None:
        if count == 2:
            raise KeyboardInterrupt

    engine.after = interrupt
    assert main(["transcribe", "a.wav", "b.wav", "c.wav"]) == 130
    assert capsys.readouterr().out == "b.wav: text of b.wav\nc.wav: text of c.wav\n"


def test_the_model_used_without_being_named_is_said(
    engine, here: Create, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    here("a.wav")
    plugin = ModuleType("acme.plugin")
    plugin.OASR_API = 1
    spec = ComponentSpec(Kind.MODEL, "acme-small", "A model", "acme:Model")
    plugin.oasr_components = hookimpl(lambda: [spec], specname="oasr_components")
    monkeypatch.setattr(command, "default_registry", lambda: Registry.from_modules(plugin))
    assert main(["transcribe", "a.wav"]) == 0
    assert capsys.readouterr().err == "oasr: using the packaged model acme-small; --model names another\n"


def test_what_the_engine_remarks_on_an_input_is_said(engine, here: Create, capsys) -> None:
    here("a.wav")
    engine.notes = ("ends in the middle of a frame",)
    assert main(["transcribe", "a.wav", "--model", "m"]) == 0
    assert capsys.readouterr().err == "oasr: a.wav: ends in the middle of a frame\n"


def test_a_warning_is_one_line(engine, here: Create, capsys) -> None:
    here("a.wav")
    engine.after = lambda count: warnings.warn("float16 is not\n  for CPUs", stacklevel=1)
    assert main(["transcribe", "a.wav", "--model", "m"]) == 0
    assert capsys.readouterr().err == "oasr: warning: float16 is not for CPUs\n"
