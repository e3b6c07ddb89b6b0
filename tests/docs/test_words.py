"""Korean and Chinese guides use the words of the lessons' glossary."""

import csv
import re

import pytest

from tests.helpers import ROOT

PAGES = [
    f"docs/{name}.{lang}.md" for name in ("own_data", "from_the_guide") for lang in ("ko", "zh")
]


@pytest.mark.parametrize("page", PAGES)
def test_no_word_that_the_glossary_avoids(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text("utf8"), flags=re.DOTALL)
    lang = page.split(".")[1]
    with (ROOT / "notebooks/glossary.csv").open(encoding="utf8") as file:
        avoided = [word for row in csv.DictReader(file) for word in row[f"{lang}_not"].split("|")]
    assert [word for word in avoided if word and word in text] == []
