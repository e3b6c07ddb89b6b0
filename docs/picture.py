"""Draw the picture of the READMEs: ``python docs/picture.py`` writes docs/picture[.LANG].svg.

One small graph of three communities, three times: whole on one device, shared by the processes of
one machine, cut into parts for three machines (hollow nodes are halo copies of a neighbor's).
"""

from __future__ import annotations

import re
from pathlib import Path

COLOURS = ("#2f6fb3", "#d9822b", "#3f9b5f")
INK, GREY, LINE, SOFT, PAPER = "#24292f", "#57606a", "#8c959f", "#f3f5f7", "#ffffff"
FONTS = {
    "en": "Helvetica, Arial, sans-serif",
    "ko": "'Apple SD Gothic Neo', 'Malgun Gothic', 'Noto Sans CJK KR', 'Noto Sans KR', sans-serif",
    "zh": "'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', 'Noto Sans SC', sans-serif",
}
WORDS = {  # Korean, Chinese
    "one device": ("장치 하나", "单个设备"),
    "graph + model": ("그래프 + 모델", "图 + 模型"),
    "many processes": ("여러 프로세스", "多个进程"),
    "rank": ("랭크", "rank"),
    "model": ("모델", "模型"),
    "one graph in": ("공유 메모리의", "共享内存中的"),
    "shared memory": ("그래프 하나", "一张图"),
    "many machines": ("여러 머신", "多台机器"),
    "machine": ("머신", "机器"),
    "its part + halo": ("담당 파티션 + 헤일로", "本机分区 + HALO"),
    "network": ("네트워크", "网络"),
}
# Node positions in a unit square, four to a community, and the edges between them.
NODES = [
    (0.10, 0.30), (0.28, 0.08), (0.34, 0.40), (0.12, 0.62),
    (0.60, 0.08), (0.88, 0.16), (0.66, 0.38), (0.92, 0.48),
    (0.34, 0.74), (0.26, 0.95), (0.62, 0.70), (0.68, 0.95),
]  # fmt: skip
EDGES = [
    (0, 1), (0, 2), (1, 2), (0, 3), (2, 3),
    (4, 5), (4, 6), (5, 7), (6, 7), (5, 6),
    (8, 9), (8, 10), (10, 11), (9, 11), (8, 11),
    (1, 4), (2, 6), (2, 8), (3, 9), (6, 10), (7, 10),
]  # fmt: skip


def community(node: int) -> int:
    return node // 4


def text(x: float, y: float, words: str, size: int = 13, colour: str = INK, bold: bool = False):
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" text-anchor="middle"'
        f"{weight}>{words}</text>"
    )


def box(x: float, y: float, width: float, height: float, fill: str = SOFT, stroke: str = LINE):
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8" fill="{fill}" '
        f'stroke="{stroke}" stroke-width="1.2"/>'
    )


def line(a: tuple[float, float], b: tuple[float, float], extra: str = "", colour: str = LINE):
    return (
        f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}" stroke="{colour}" '
        f'stroke-width="1.3" {extra}/>'
    )


def dot(at: tuple[float, float], colour: str, hollow: bool = False, radius: float = 5.5):
    fill = PAPER if hollow else colour
    return (
        f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{radius:g}" fill="{fill}" '
        f'stroke="{colour}" stroke-width="1.6"/>'
    )


def graph(x: float, y: float, size: float, part: int | None = None) -> list[str]:
    """The whole graph in a square; or one part of it, enlarged, with its halo nodes."""
    mine = [v for v in range(len(NODES)) if part is None or community(v) == part]
    edges = [e for e in EDGES if e[0] in mine or e[1] in mine]
    shown = sorted({*mine, *(v for edge in edges for v in edge)})
    left, top = min(NODES[v][0] for v in shown), min(NODES[v][1] for v in shown)
    span = max(max(NODES[v][0] for v in shown) - left, max(NODES[v][1] for v in shown) - top, 1e-9)
    wide = (max(NODES[v][0] for v in shown) - left) / span * size
    x += (size - wide) / 2
    at = {
        v: (x + (NODES[v][0] - left) / span * size, y + (NODES[v][1] - top) / span * size)
        for v in shown
    }
    halo = [v for v in shown if v not in mine]
    dashed = 'stroke-dasharray="3 3"'
    parts = [line(at[a], at[b], dashed if a in halo or b in halo else "") for a, b in edges]
    return parts + [dot(at[v], COLOURS[community(v)], hollow=v in halo) for v in shown]


def one_device(x: float) -> list[str]:
    return [
        text(x + 120, 34, "one device", 16, bold=True),
        box(x, 50, 240, 216),
        *graph(x + 52, 74, 136),
        text(x + 120, 250, "graph + model", 12, GREY),
    ]


def many_processes(x: float) -> list[str]:
    out = [text(x + 120, 34, "many processes", 16, bold=True), box(x, 50, 240, 216)]
    for i, colour in enumerate(COLOURS):
        left = x + 14 + 74 * i
        out += [
            box(left, 64, 64, 48, PAPER, colour),
            text(left + 32, 84, f"rank {i}", 12),
            text(left + 32, 101, "model", 11, GREY),
            line((left + 32, 112), (left + 32, 146), 'marker-start="url(#tip)"', colour),
        ]
        if i:
            out.append(line((left - 10, 88), (left, 88), colour=INK))
    out += [box(x + 14, 146, 212, 108, PAPER), *graph(x + 32, 158, 82)]
    out += [
        text(x + 172, 194, "one graph in", 12, GREY),
        text(x + 172, 211, "shared memory", 12, GREY),
    ]
    return out


def many_machines(x: float) -> list[str]:
    out = [text(x + 190, 34, "many machines", 16, bold=True)]
    for i, colour in enumerate(COLOURS):
        left = x + 130 * i
        out += [
            box(left, 50, 120, 180, SOFT, colour),
            *graph(left + 16, 72, 88, part=i),
            text(left + 60, 198, f"machine {i}", 12),
            text(left + 60, 216, "its part + halo", 11, GREY),
            line((left + 60, 230), (left + 60, 248), colour=INK),
        ]
    out.append(line((x + 60, 248), (x + 320, 248), colour=INK))
    out.append(text(x + 190, 266, "network", 12, GREY))
    return out


def picture(lang: str = "en") -> str:
    arrow = [
        f'<path d="M{x} 158 h22 m-7 -6 l7 6 l-7 6" fill="none" stroke="{INK}" stroke-width="2"/>'
        for x in (276, 556)
    ]
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 300" '
        f'font-family="{FONTS[lang]}" role="img" '
        'aria-label="One device, many processes, many machines">',
        f'<defs><marker id="tip" markerWidth="7" markerHeight="7" refX="3" refY="3">'
        f'<path d="M5 0 L0 3 L5 6" fill="none" stroke="{LINE}"/></marker></defs>',
        f'<rect width="1000" height="300" rx="12" fill="{PAPER}"/>',
        *one_device(22),
        *many_processes(302),
        *many_machines(594),
        *arrow,
        "</svg>",
    ]
    return translate("\n".join(parts) + "\n", lang)


def translate(drawn: str, lang: str) -> str:
    """Replace the labels, whole or before a number, by those of a language."""
    if lang == "en":
        return drawn
    said = {words: others[lang == "zh"] for words, others in WORDS.items()}
    parts = (said[part] for part in ("one device", "many processes", "many machines"))
    label = ("、" if lang == "zh" else ", ").join(parts)
    drawn = re.sub(r'(?<=aria-label=")[^"]*', label, drawn)
    return re.sub(
        r">([a-z][a-z +]*?)((?: \d)?)</text>",
        lambda found: f">{said[found[1]]}{found[2]}</text>",
        drawn,
    )


def file(lang: str) -> Path:
    """Where the picture of a language is."""
    return Path(__file__).with_suffix(".svg" if lang == "en" else f".{lang}.svg")


if __name__ == "__main__":
    for each in FONTS:
        file(each).write_text(picture(each), encoding="utf8")
