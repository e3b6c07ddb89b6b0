"""Sphinx's settings for the site; build.py says what is built."""

from __future__ import annotations

import gettext
import json
import os
import re
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.search import SearchLanguage, languages

import gnnlab

LANG = os.environ["SITE_LANG"]
PAGES = json.loads(Path(os.environ["SITE_PAGES"]).read_text("utf8"))

project = "gnnlab"
author = "The gnnlab authors"
release = gnnlab.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["pages.json"]
templates_path = ["templates"]

nb_execution_mode = "off"
nb_merge_streams = True
nb_code_prompt_show = {"en": "Show the code", "ko": "코드 보기", "zh": "显示代码"}[LANG]
nb_code_prompt_hide = {"en": "Hide the code", "ko": "코드 숨기기", "zh": "隐藏代码"}[LANG]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
autodoc_typehints = "none"  # the sections Parameters and Returns say more
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"gnnlab {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_math_renderer = "mathml"
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "languages.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_context = {
    "pages": {lang: {re.sub(r"\.\w+$", "", page) for page in PAGES[lang]} for lang in PAGES},
    "languages": {"en": "English", "ko": "한국어", "zh": "简体中文"},
    "lang": LANG,
    "api": {"en": "API reference", "ko": "API 문서(영어)", "zh": "API 参考(英文)"}[LANG],
}

FRAME = {
    "ko": {
        **{"Back to top": "맨 위로", "On this page": "이 페이지의 내용"},
        **{"Next": "다음", "Previous": "이전", "Skip to content": "본문으로 건너뛰기"},
    },
    "zh": {
        **{"Back to top": "回到顶部", "On this page": "本页目录"},
        **{"Next": "下一页", "Previous": "上一页", "Skip to content": "跳到正文"},
    },
}


class Frame(gettext.NullTranslations):
    """The theme's words that Sphinx has no translation of."""

    def gettext(self, message: str) -> str:
        """Return a word of the theme in the language of the site."""
        return FRAME.get(LANG, {}).get(message, message)


class Pairs(SearchLanguage):
    """Search in Korean and Chinese: words are pairs of neighboring characters.

    Chinese has no spaces between words, and Korean words end in particles; pairs are found in both
    without a dictionary. Words in Latin letters stay whole.
    """

    cjk = "\u3400-\u9fff\uac00-\ud7a3"
    js_splitter_code = f"""
function splitQuery(query) {{
  const found = [];
  for (const [run] of query.matchAll(/[{cjk}]+|[^\\P{{L}}{cjk}]+|[\\p{{N}}_]+/gu)) {{
    if (!/[{cjk}]/.test(run) || run.length < 2) found.push(run);
    else for (let i = 0; i + 1 < run.length; i++) found.push(run.slice(i, i + 2));
  }}
  return found;
}}
"""

    def split(self, input: str) -> list[str]:
        """Return the words of a text."""
        found = []
        for run in re.findall(rf"[{self.cjk}]+|[^\W\d_{self.cjk}]+|[\d_]+", input):
            if re.match(rf"[{self.cjk}]", run) and len(run) > 1:
                found += [run[i : i + 2] for i in range(len(run) - 1)]
            else:
                found.append(run)
        return found

    def stem(self, word: str) -> str:
        """Return the word in small letters."""
        return word.lower()


languages["ko"] = languages["zh"] = Pairs


def visit_math(self, node: nodes.math) -> None:  # type: ignore[no-untyped-def]
    """Write a formula as MathML, which browsers draw without a script.

    Brackets grow there by themselves, so commands for their size are left out.
    """
    text = re.sub(r"\\[Bb]igg?[lr]?(?![A-Za-z])", "", node.astext())
    self.body.append(tex2mathml(text, as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Add the renderer of formulas, and the theme's words that Sphinx has no translation of."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    app.translator.add_fallback(Frame())
