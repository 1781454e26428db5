# ruff: noqa: RUF001  other scripts, and letters that look like others
"""However a language is written, the model gets its own code for it, or the user learns why not."""

import json
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasr.errors import RequestError
from oasr.languages import canonical, match, name, unspecified
from oasr.types import DecodingOptions

# Of openai/whisper, in the order of its tokens.
_CODES = (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml "
    "cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am "
    "yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue"
)
WHISPER = tuple(_CODES.split())


@pytest.mark.parametrize(
    ("text", "code"),
    [
        *[(text, "en") for text in ("en", "EN", " en ", "eng", "English", "ENGLISH", "en-US", "en_GB", "en-Latn-AU")],
        *[(text, "de") for text in ("deu", "ger", "German", "Deutsch", "DEUTSCH", "de-AT", "de-DE-1996")],
        *[(text, "fr") for text in ("Français", "francais", "FRANÇAIS", "fre", "fra-CA")],
        *[
            (text, "zh")
            for text in ("zh-CN", "zh-TW", "zh_Hans_CN", "cmn", "cmn-Hans", "chi", "Mandarin", "中文", "普通话")
        ],
        *[(text, "yue") for text in ("yue", "Cantonese", "yue-HK", "zh-yue", "zh-yue-HK", "粤语", "廣東話")],
        *[(text, "jw") for text in ("jv", "jw", "jav", "Javanese", "jv-ID")],
        *[(text, "he") for text in ("he", "iw", "heb", "Hebrew", "iw-IL", "עברית")],
        *[(text, "no") for text in ("no", "nb", "nob", "nb-NO", "Norwegian", "Bokmål", "bokmal")],
        *[(text, "nn") for text in ("nn", "nno", "Nynorsk", "norwegian nynorsk", "nn_NO")],
        *[(text, "pt") for text in ("pt_BR", "pt-PT", "Português", "portuguese")],
        *[(text, "es") for text in ("castilian", "Español", "es-419", "spa")],
        *[(text, "nl") for text in ("Flemish", "nl-BE", "dut", "Nederlands")],
        *[(text, "tl") for text in ("fil", "Filipino", "tgl")],
        *[(text, "my") for text in ("Burmese", "Myanmar", "bur")],
        *[(text, "ht") for text in ("haitian creole", "Haitian  Creole", "haitian-creole", "haitian_creole")],
        ("ｅｎ", "en"),
        ("한국어", "ko"),
        (unicodedata.normalize("NFD", "Čeština"), "cs"),
        ("ʻŌlelo Hawaiʻi", "haw"),
        ("haw", "haw"),
        ("in", "id"),
    ],
)
def test_every_way_to_write_a_language_means_the_code_of_the_model(text: str, code: str) -> None:
    assert match(text, WHISPER) == code


def test_a_model_may_use_any_of_the_codes() -> None:
    assert match("jw", ["jv", "en"]) == "jv"
    assert match("he", ["iw"]) == "iw"
    assert match("Norwegian", ["nb"]) == "nb"
    assert match("tl", ["fil"]) == "fil"
    assert match("english", ["en-US", "de-DE"]) == "en-US"
    assert match("zh", ["cmn"]) == "cmn"


def test_codes_that_nobody_else_knows_are_matched_as_they_are_spelt() -> None:
    assert match("X_acme", ["x-acme", "en"]) == "x-acme"


def test_a_region_decides_between_codes_with_regions() -> None:
    assert match("pt_br", ["pt-PT", "pt-BR"]) == "pt-BR"
    for text in ("pt", "pt-AO", "Portuguese"):
        with pytest.raises(RequestError, match="could be any of pt-PT, pt-BR: write one of them"):
            match(text, ["pt-PT", "pt-BR"])


@pytest.mark.parametrize(
    ("text", "offered", "message"),
    [
        ("yue", ["en", "zh"], "does not know Cantonese ('yue'). Did you mean zh (Chinese)? This model knows en"),
        ("cantonese", ["zh"], "does not know 'cantonese'. Did you mean zh (Chinese)? This model knows only zh"),
        ("nn", ["no"], "does not know Nynorsk ('nn'). Did you mean no (Norwegian)?"),
        ("Germna", ["en", "de"], "'Germna' is unknown. Did you mean de (German)? This model knows en (English), de"),
        ("Manderin", ["en", "zh"], "Did you mean zh (Chinese)?"),
        ("jp", WHISPER, "'jp' is unknown. Did you mean ja (Japanese)? This model knows af, am, ar,"),
        ("en-USA", WHISPER, "Did you mean en (English)?"),
        ("br", ["pt", "en"], "does not know Breton ('br'). Did you mean pt (Portuguese)?"),
        ("zh-HK", WHISPER, "'zh-HK' could be more than one language. Did you mean zh (Chinese) or yue (Cantonese)?"),
        ("zh_Hant_HK", ["zh"], "could be more than one language. Did you mean zh (Chinese)?"),
        ("sh", ["hr", "sr", "en"], "Did you mean hr (Croatian) or sr (Serbian)?"),
        ("de", ["en"], "This model does not know German ('de'). This model knows only en (English)"),
        ("de", [], "offers no choice of language"),
        ("x" * 1000, ["en"], "xxx'... is unknown. This model knows only en"),
    ],
)
def test_what_is_not_known_for_sure_is_refused_with_what_may_be_meant(
    text: str, offered: list[str], message: str
) -> None:
    with pytest.raises(RequestError) as caught:
        match(text, offered)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text", ["is it", "en us", "zz", "Chinese (Cantonese)", "<|en|>", "en,de", "e", "-", "*", "old english", "zh-HK"]
)
def test_what_only_looks_like_a_language_is_none(text: str) -> None:
    assert canonical(text) is None


@given(text=st.text(max_size=20))
def test_any_text_is_a_language_or_refused(text: str) -> None:
    if canonical(text) in {canonical(code) for code in WHISPER}:
        assert match(text, WHISPER) in WHISPER
    else:
        with pytest.raises(RequestError, match="This model knows"):
            match(text, WHISPER)


@pytest.mark.parametrize("code", WHISPER)
def test_every_language_of_whisper_has_a_name_that_leads_back_to_it(code: str) -> None:
    english = name(code)
    assert english is not None
    assert match(english, WHISPER) == match(code.upper(), WHISPER) == code


def test_names_are_those_of_openai() -> None:
    oracle = pytest.importorskip("whisper.tokenizer", reason="its names of languages: pip install openai-whisper")
    assert {code: str(name(code)).lower() for code in oracle.LANGUAGES} == oracle.LANGUAGES
    assert {text: match(text, WHISPER) for text in oracle.TO_LANGUAGE_CODE} == oracle.TO_LANGUAGE_CODE


def test_an_unknown_code_has_no_name() -> None:
    assert name("zz") is None


@pytest.mark.parametrize("text", [None, "", " ", "auto", "AUTO", " Auto "])
def test_nothing_and_auto_leave_the_language_to_the_model(text: str | None) -> None:
    assert unspecified(text)
    assert DecodingOptions(language=text).language is None
    assert DecodingOptions(languages=() if text is None else (text,)).languages == ()


def test_auto_beside_a_language_is_refused() -> None:
    with pytest.raises(RequestError, match="what to choose from"):
        DecodingOptions(languages=("en", "auto"))


def test_options_are_put_into_the_codes_of_a_model() -> None:
    assert DecodingOptions(language="Javanese", seed=3).in_codes_of(WHISPER) == DecodingOptions(language="jw", seed=3)
    several = DecodingOptions(languages=("German", "de-AT", "jv")).in_codes_of(WHISPER)
    assert several.languages == ("de", "jw")
    assert DecodingOptions().in_codes_of(WHISPER) == DecodingOptions()


def test_options_stay_as_they_are_for_a_model_without_a_choice() -> None:
    assert DecodingOptions(language="Klingon").in_codes_of(()).language == "Klingon"


def test_options_with_a_language_the_model_lacks_are_refused() -> None:
    with pytest.raises(RequestError, match="does not know French"):
        DecodingOptions(languages=("en", "fr")).in_codes_of(["en", "de"])


def test_languages_need_the_standard_library_alone() -> None:
    script = "import sys, json, oasr.languages; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout)
    assert not {"torch", "numpy", "pydantic"} & set(loaded)
