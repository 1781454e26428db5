# ruff: noqa: RUF001  names in their own scripts look like Latin letters here and there
"""What people call languages, and the code that a model means by it.

People write codes (ISO 639-1, -2 and -3, withdrawn ones such as `iw`, those some models made up, such as `jw`), tags
with regions and scripts (`en-US`, `pt_BR`, `zh-Hans-CN`) and names. `match` maps them onto the codes one model offers.
What it does not know for sure is refused, never guessed.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from functools import cache
from typing import NamedTuple

from oasr.errors import RequestError

AUTO = "auto"
"""Leave it to the model to name the language; nothing at all means the same."""

# Code | its other codes | English name | other names. Codes are ISO 639, the two letters where a language has them;
# English names are those of openai/whisper (whisper/tokenizer.py) where it has the language.
_TABLE = """
af | afr | Afrikaans
am | amh | Amharic | አማርኛ
ar | ara arb | Arabic | العربية, عربي, Modern Standard Arabic
as | asm | Assamese | অসমীয়া
ast | | Asturian | Asturianu
az | aze azj | Azerbaijani | Azərbaycanca, Azərbaycan dili, Azeri
ba | bak | Bashkir | Башҡорт, Башҡортса
be | bel | Belarusian | Беларуская, Byelorussian
bg | bul | Bulgarian | Български
bn | ben | Bengali | বাংলা, Bangla
bo | bod tib | Tibetan | བོད་སྐད, བོད་ཡིག, 藏语
br | bre | Breton | Brezhoneg
bs | bos | Bosnian | Bosanski
ca | cat | Catalan | Català, Valencian, Valencià
ceb | | Cebuano | Bisaya
ckb | | Central Kurdish | Sorani, کوردی
cs | ces cze | Czech | Čeština, Český
cv | chv | Chuvash | Чӑвашла
cy | cym wel | Welsh | Cymraeg
da | dan | Danish | Dansk
de | deu ger | German | Deutsch
dv | div | Dhivehi | ދިވެހި, Maldivian, Divehi
el | ell gre | Greek | Ελληνικά, Modern Greek
en | eng | English
eo | epo | Esperanto
es | spa | Spanish | Español, Castilian, Castellano
et | est ekk | Estonian | Eesti, Eesti keel
eu | eus baq | Basque | Euskara, Euskera
fa | fas per pes | Persian | فارسی, Farsi
ff | ful | Fula | Fulfulde, Fulah, Pulaar
fi | fin | Finnish | Suomi
fo | fao | Faroese | Føroyskt
fr | fra fre | French | Français
fy | fry | Western Frisian | Frysk, Frisian
ga | gle | Irish | Gaeilge, Irish Gaelic
gan | | Gan Chinese | 赣语, 贛語, Gan
gd | gla | Scottish Gaelic | Gàidhlig
gl | glg | Galician | Galego
gn | grn | Guarani | Avañe'ẽ
gu | guj | Gujarati | ગુજરાતી
ha | hau | Hausa
hak | | Hakka Chinese | 客家话, 客家話, Hakka
haw | | Hawaiian | ʻŌlelo Hawaiʻi
he | heb iw | Hebrew | עברית
hi | hin | Hindi | हिन्दी, हिंदी
hr | hrv | Croatian | Hrvatski
hsn | | Xiang Chinese | 湘语, 湘語, Hunanese
ht | hat | Haitian Creole | Kreyòl ayisyen, Kreyòl, Haitian
hu | hun | Hungarian | Magyar
hy | hye arm | Armenian | Հայերեն
ia | ina | Interlingua
id | ind in | Indonesian | Bahasa Indonesia
ig | ibo | Igbo
is | isl ice | Icelandic | Íslenska
it | ita | Italian | Italiano
ja | jpn | Japanese | 日本語, にほんご, 日语, 日語, Nihongo
jv | jav jw | Javanese | Basa Jawa
ka | kat geo | Georgian | ქართული
kab | | Kabyle | Taqbaylit
kam | | Kamba
kea | | Kabuverdianu | Cape Verdean Creole
kk | kaz | Kazakh | Қазақша, Қазақ тілі
km | khm | Khmer | ខ្មែរ, ភាសាខ្មែរ, Cambodian
kn | kan | Kannada | ಕನ್ನಡ
ko | kor | Korean | 한국어, 한국말, 韩语, 韓語
ku | kur kmr | Kurdish | Kurdî, Kurmanji, Northern Kurdish
ky | kir | Kyrgyz | Кыргызча, Kirghiz
la | lat | Latin | Latina
lb | ltz | Luxembourgish | Lëtzebuergesch, Letzeburgesch
lg | lug | Ganda | Luganda
ln | lin | Lingala | Lingála
lo | lao | Lao | ລາວ, ພາສາລາວ, Laotian
lt | lit | Lithuanian | Lietuvių
luo | | Luo | Dholuo
lv | lav lvs | Latvian | Latviešu
mg | mlg plt | Malagasy
mi | mri mao | Maori | Te reo Māori
mk | mkd mac | Macedonian | Македонски
ml | mal | Malayalam | മലയാളം
mn | mon khk | Mongolian | Монгол, Монгол хэл
mr | mar | Marathi | मराठी
ms | msa may zsm | Malay | Bahasa Melayu, Bahasa Malaysia, Malaysian
mt | mlt | Maltese | Malti
my | mya bur | Myanmar | မြန်မာ, မြန်မာဘာသာ, Burmese
nan | | Min Nan Chinese | 闽南语, 閩南語, 台語, 台语, Min Nan, Southern Min, Hokkien, Taiwanese Hokkien
ne | nep npi | Nepali | नेपाली
nl | nld dut | Dutch | Nederlands, Flemish, Vlaams
nn | nno | Nynorsk | Norwegian Nynorsk, Norsk nynorsk
no | nor nb nob | Norwegian | Norsk, Bokmål, Norwegian Bokmål, Norsk bokmål
nso | | Northern Sotho | Sepedi, Pedi
ny | nya | Nyanja | Chichewa, Chewa
oc | oci | Occitan | Lenga d'òc, Provençal
om | orm | Oromo | Oromoo, Afaan Oromoo
or | ori ory | Odia | ଓଡ଼ିଆ, Oriya
pa | pan | Punjabi | ਪੰਜਾਬੀ, Panjabi
pl | pol | Polish | Polski
ps | pus pbt | Pashto | پښتو, Pushto
pt | por | Portuguese | Português
qu | que | Quechua | Runasimi
rm | roh | Romansh | Rumantsch
ro | ron rum mo mol | Romanian | Română, Moldavian, Moldovan
ru | rus | Russian | Русский, По-русски
rw | kin | Kinyarwanda | Ikinyarwanda
sa | san | Sanskrit | संस्कृतम्, संस्कृत
sd | snd | Sindhi | سنڌي
si | sin | Sinhala | සිංහල, Sinhalese
sk | slk slo | Slovak | Slovenčina
sl | slv | Slovenian | Slovenščina, Slovene
sn | sna | Shona | chiShona
so | som | Somali | Soomaali, Af Soomaali
sq | sqi alb als | Albanian | Shqip
sr | srp | Serbian | Српски, Srpski
su | sun | Sundanese | Basa Sunda
sv | swe | Swedish | Svenska
sw | swa swh | Swahili | Kiswahili
ta | tam | Tamil | தமிழ்
te | tel | Telugu | తెలుగు
tg | tgk | Tajik | Тоҷикӣ, Tajiki
th | tha | Thai | ไทย, ภาษาไทย
ti | tir | Tigrinya | ትግርኛ
tk | tuk | Turkmen | Türkmençe, Türkmen
tl | tgl fil | Tagalog | Filipino, Pilipino
tr | tur | Turkish | Türkçe
tt | tat | Tatar | Татар, Татарча
ug | uig | Uyghur | ئۇيغۇرچە, 维吾尔语, Uighur
uk | ukr | Ukrainian | Українська
umb | | Umbundu
ur | urd | Urdu | اردو
uz | uzb uzn | Uzbek | Oʻzbek, Oʻzbekcha, Ўзбекча
vi | vie | Vietnamese | Tiếng Việt
wo | wol | Wolof
wuu | | Wu Chinese | 吴语, 吳語, 上海话, 上海話, Shanghainese, Wu
xh | xho | Xhosa | isiXhosa
yi | yid ydd ji | Yiddish | ייִדיש, אידיש
yo | yor | Yoruba | Yorùbá
yue | | Cantonese | 粤语, 粵語, 广东话, 廣東話, 广州话, 廣州話, Yue Chinese
zh | zho chi cmn | Chinese | 中文, 汉语, 漢語, 普通话, 普通話, 国语, 國語, Mandarin, Mandarin Chinese, Putonghua
zu | zul | Zulu | isiZulu
"""
# What may be written but names none of these languages for sure.
_UNDECIDED = {
    "hbs": ("hr", "sr", "bs"),
    "sh": ("hr", "sr", "bs"),
    "serbo-croatian": ("hr", "sr", "bs"),
    "zh-hk": ("yue", "zh"),
    "zh-mo": ("yue", "zh"),
}
# Countries written for what most people there speak. `br` is a language as well.
_COUNTRIES = {
    "br": "pt",
    "cn": "zh",
    "cz": "cs",
    "dk": "da",
    "gb": "en",
    "gr": "el",
    "jp": "ja",
    "kr": "ko",
    "se": "sv",
    "tw": "zh",
    "ua": "uk",
    "us": "en",
    "vn": "vi",
}
# Languages that a model may know under the name of a larger or closely related one, which is for the user to decide.
_RELATED = {
    "ckb": "ku",
    "gan": "zh",
    "hak": "zh",
    "hsn": "zh",
    "nan": "zh",
    "nn": "no",
    "no": "nn",
    "wuu": "zh",
    "yue": "zh",
}
_TAG = re.compile(r"[a-z]{2,3}(-[a-z0-9]{1,8})+")
_SCRIPT = re.compile(r"-[a-z]{4}(?=-|$)")
_MOST_NAMED = 5
_MOST_QUOTED = 60


class _Language(NamedTuple):
    code: str
    name: str
    spellings: tuple[str, ...]
    """All of them, codes included, as they are looked up."""


def unspecified(text: str | None) -> bool:
    """Whether this leaves the language to the model: None, an empty text and `auto` do."""
    return text is None or text.strip().lower() in ("", AUTO)


def canonical(text: str) -> str | None:
    """The ISO 639 code of a language by any of its codes, tags or names; None when the text names none for sure."""
    key = _key(text)
    found = _by_spelling().get(key)
    if found is None and _is_tag(text) and not _undecided(key):
        first, second, *_ = key.split("-")
        # Three letters in second place narrow a language down (zh-yue); scripts have four, regions two or digits.
        found = _by_spelling().get(second if len(second) == 3 and second.isalpha() else first)
    return found.code if found else None


def name(code: str) -> str | None:
    """English name such as `English`, which OpenAI's API writes in lower case; None for an unknown code."""
    language = canonical(code)
    return _by_spelling()[language].name if language else None


def match(text: str, offered: Collection[str]) -> str:
    """The one of the `offered` codes that `text` means, however either is spelt.

    Raises `RequestError` when the model does not offer that language, or when the text could mean several of them.
    """
    key = _key(text)
    for code in offered:
        if _key(code) == key:
            return code
    language = canonical(text)
    matching = [code for code in offered if language is not None and canonical(code) == language]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise RequestError(f"The language {_quoted(text)} could be any of {', '.join(matching)}: write one of them")
    raise RequestError(f"{_fault(text)}.{_suggestion(text, offered)} {_listing(offered)}")


def _fault(text: str) -> str:
    if title := name(text):
        known = _quoted(text) if _key(title) == _key(text) else f"{title} ({_quoted(text)})"
        return f"This model does not know {known}"
    if _undecided(_key(text)):
        return f"{_quoted(text)} could be more than one language"
    return f"The language {_quoted(text)} is unknown"


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]!r}..."


def _suggestion(text: str, offered: Collection[str]) -> str:
    meant = _meant(text)
    close = [code for code in offered if canonical(code) in meant]
    if not close and canonical(text) is None:
        spellings = {spelling: code for code in offered for spelling in _spellings(code)}
        close = [spellings[each] for each in get_close_matches(_key(text), spellings, n=3, cutoff=0.7)]
    return f" Did you mean {' or '.join(map(_described, dict.fromkeys(close)))}?" if close else ""


def _meant(text: str) -> set[str | None]:
    """Languages that somebody who writes this may have in mind."""
    key = _key(text)
    language = canonical(text)
    if language is not None:
        return {_RELATED.get(language), _COUNTRIES.get(key)} - {None}
    first = canonical(key.partition("-")[0]) if _is_tag(text) else None
    return {*_undecided(key), _COUNTRIES.get(key), first} - {None}


def _listing(offered: Collection[str]) -> str:
    if not offered:
        return "This model offers no choice of language"
    if len(offered) == 1:
        return f"This model knows only {_described(*offered)}"
    if len(offered) <= _MOST_NAMED:
        return f"This model knows {', '.join(map(_described, offered))}"
    return f"This model knows {', '.join(sorted(offered))}"


def _described(code: str) -> str:
    title = name(code)
    return f"{code} ({title})" if title else code


def _spellings(code: str) -> Iterable[str]:
    language = canonical(code)
    return (_key(code), *(_by_spelling()[language].spellings if language else ()))


def _is_tag(text: str) -> bool:
    return _TAG.fullmatch(_key(text)) is not None and len(text.split()) == 1


def _undecided(key: str) -> tuple[str, ...]:
    return _UNDECIDED.get(_SCRIPT.sub("", key), ())


def _key(text: str) -> str:
    """What a spelling is looked up by: case, accents and the kind of hyphen do not count."""
    letters = unicodedata.normalize("NFKD", text.casefold().strip())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return "-".join(part for part in re.split(r"[\s_-]+", plain) if part)


@cache
def _by_spelling() -> dict[str, _Language]:
    languages: dict[str, _Language] = {}
    for row in _TABLE.strip().splitlines():
        code, codes, title, names = [field.strip() for field in (row + "|").split("|")][:4]
        spellings = [code, *codes.split(), title, *filter(None, names.split(", "))]
        language = _Language(code, title, tuple(dict.fromkeys(map(_key, spellings))))
        languages |= dict.fromkeys(language.spellings, language)
    return languages
