"""The labels of figures in Korean and Chinese.

A label is looked up by its English text; one that is not in the table, such as a name that the
caller gave, is drawn as it is. :func:`gnnlab.plot.language` chooses the language.
"""

from __future__ import annotations

from typing import Any

# English: (Korean, Chinese)
_TABLE = {
    # kinds of work
    "sample": ("샘플링", "采样"),
    "fetch": ("데이터 가져오기", "获取数据"),
    "copy": ("복사", "复制"),
    "compute": ("계산", "计算"),
    "allreduce": ("올리듀스", "全归约"),
    "wait": ("대기", "等待"),
    "serve": ("요청 처리", "处理请求"),
    "time": ("시간", "时间"),
    # time and speed-up
    "machines": ("머신 수", "机器数"),
    "ideal": ("이상적인 경우", "理想情况"),
    "{share:.0%} of ideal": ("이상적 속도의 {share:.0%}", "理想值的 {share:.0%}"),
    "speed-up over {count} machine": (
        "속도 향상(머신 {count}대 = 1)",
        "加速比（{count} 台机器 = 1）",
    ),
    "speed-up over {count} machines": (
        "속도 향상(머신 {count}대 = 1)",
        "加速比（{count} 台机器 = 1）",
    ),
    "time ({unit})": ("시간({unit})", "时间（{unit}）"),
    # traffic
    "from machine": ("보낸 머신", "来源机器"),
    "to machine": ("받은 머신", "接收机器"),
    # partitions
    "part {part}": ("파티션 {part}", "分区 {part}"),
    "cut edge": ("잘린 에지", "被切断的边"),
    "HALO of part {part}": ("파티션 {part}의 헤일로", "分区 {part} 的 HALO"),
    "{cut:,} of {count:,} edges cut": (
        "에지 {count:,}개 중 {cut:,}개 잘림",
        "{count:,} 条边中切断 {cut:,} 条",
    ),
    # samples
    "output": ("출력", "输出"),
    "input": ("입력", "输入"),
    "{depth} away": ("{depth}홉 이웃", "{depth} 跳邻居"),
    "{what}: {count} node": ("{what}: 노드 {count}개", "{what}：{count} 个节点"),
    "{what}: {count} nodes": ("{what}: 노드 {count}개", "{what}：{count} 个节点"),
    "dotted: the node itself": ("점선: 노드 자신", "虚线：节点自身"),
    "dotted: the node itself; gray: not sampled": (
        "점선: 노드 자신, 회색: 샘플링되지 않음",
        "虚线：节点自身；灰色：未被采样",
    ),
    # timelines
    "machine {machine}": ("머신 {machine}", "机器 {machine}"),
    "trainer {rank}": ("트레이너 {rank}", "训练器 {rank}"),
    "device {rank}": ("장치 {rank}", "设备 {rank}"),
    "sampler {rank}": ("샘플러 {rank}", "采样器 {rank}"),
    "server {rank}": ("서버 {rank}", "服务器 {rank}"),
    "prefetch": ("미리 샘플링", "预采样"),
    # controls
    "network": ("네트워크", "网络"),
    "partitioner": ("분할 방법", "切分方法"),
    "methods": ("분할 방법", "切分方法"),
    "method": ("분할 방법", "切分方法"),
    "parts": ("파티션 수", "分区数"),
    "fanout": ("팬아웃", "扇出"),
    "fanouts": ("팬아웃", "扇出"),
    "batch size": ("배치 크기", "批次大小"),
    "batch": ("배치 크기", "批次大小"),
    "cache": ("캐시", "缓存"),
    "layers": ("계층 수", "层数"),
    "seeds": ("시드 노드 수", "种子节点数"),
    "drawing …": ("그리는 중 …", "正在绘图 …"),
}

_column: int | None = None  # of the table; None: English


def use(lang: str) -> None:
    """Draw labels in this language from now on: "en", "ko" or "zh"."""
    global _column
    _column = {"ko": 0, "zh": 1}.get(lang)


def say(text: str, **fields: Any) -> str:
    """Return an English label, with fields as for :meth:`str.format`, in the language of figures.

    Without values of fields, the text is not formatted.
    """
    if _column is not None and text in _TABLE:
        text = _TABLE[text][_column]
    return text.format(**fields) if fields else text
