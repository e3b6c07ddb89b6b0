"""The CSV reader takes exactly the tables that a slow, obvious reading takes."""

from __future__ import annotations

import gzip
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gnnlab.data import table
from gnnlab.data.table import read_floats, read_integers
from gnnlab.errors import InvalidInput
from tests.helpers import examples, save_as_windows

MANY = examples(1000)
SOME = examples(400)


@pytest.fixture(autouse=True, scope="module")
def small_chunks():
    """Chunks of 6 cells, so that short files cross several."""
    before, table.CHUNK_CELLS = table.CHUNK_CELLS, 6
    yield
    table.CHUNK_CELLS = before


@pytest.fixture(scope="module")
def path():
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder, "table.csv")


def slow_integers(text: str, columns: int, below: int) -> list[list[int]] | None:
    """The rows of a table, or None where it is not one."""
    lines = text.removesuffix("\n").split("\n") if text else []
    rows = []
    for line in lines:
        cells = line.split(",")
        if len(cells) != columns or not all(re.fullmatch(r" *[+-]?[0-9]+ *", c) for c in cells):
            return None
        rows.append([int(cell) for cell in cells])
    return rows if all(0 <= value < below for row in rows for value in row) else None


@MANY
@given(rows=st.lists(st.tuples(*[st.integers(0, 2**40)] * 2)), packed=st.booleans())
def test_integers_come_back_as_written(rows, packed, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    path = folder / ("table.csv.gz" if packed else "table.csv")
    data = "".join(f"{u},{v}\n" for u, v in rows).encode()
    path.write_bytes(gzip.compress(data, 1) if packed else data)
    src, dst = read_integers(path, 2, below=2**40 + 1, rows=len(rows))
    assert list(zip(src.tolist(), dst.tolist(), strict=True)) == rows
    assert src.dtype == dst.dtype == np.int64
    assert src.flags.c_contiguous and dst.flags.c_contiguous


@MANY
@given(
    rows=st.lists(
        st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3)
    )
)
def test_floats_come_back_as_written(rows, path):
    path.write_text("".join(",".join(str(np.float32(x)) for x in row) + "\n" for row in rows))
    found = read_floats(path, 3)
    np.testing.assert_array_equal(found, np.array(rows, np.float32).reshape(-1, 3))


@SOME
@given(text=st.text("0123456789,.+- \neTx\"'_", max_size=24), columns=st.integers(1, 3))
@example("0,1,2\n1,2,3\n", 2)  # every line too long
@example("True,False\n", 2)
@example("0,1\n2,3\n4,5\n6,7\n8\n", 2)  # in the second chunk
@example("0,1\n2,3\n4,5\n6,7,8\n", 2)  # first line of the second chunk
@example("0,1\n\n", 2)
@example("99999999999999999999,1\n", 2)
@example("9223372036854775808,1\n", 2)
@example("1e3,1\n", 2)
@example("1.0,1\n", 2)
@example('"1",1\n', 2)
@example("1,2\n\ufeff3,4\n", 2)
def test_accepts_what_the_slow_reading_accepts(path, text, columns):
    path.write_text(text, encoding="utf8")
    expected = slow_integers(text, columns, 1000)
    if expected is None:
        with pytest.raises(InvalidInput, match=re.escape(str(path))):
            read_integers(path, columns, below=1000)
    else:
        found = read_integers(path, columns, below=1000)
        assert np.stack(found, 1).reshape(-1, columns).tolist() == expected


@SOME
@given(text=st.text("0123456789,.+- \neEinfaT", max_size=24))
@example("True\n")
@example("1e39\n")  # infinite as float32
@example("1\nnan\n")
@example("1\n\n")
@example("1,\n")
@example("99999999999999999999999\n")
def test_floats_are_finite_numbers_in_equal_rows(path, text):
    path.write_text(text, encoding="utf8")
    cells = [line.split(",") for line in text.removesuffix("\n").split("\n")] if text else []
    good = all(
        len(row) == len(cells[0])
        and all(re.fullmatch(r" *[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)? *", cell) for cell in row)
        and all(abs(float(cell)) < 3.4e38 for cell in row)
        and all(abs(int(cell)) < 2**63 for cell in row if re.fullmatch(r" *[+-]?\d+ *", cell))
        for row in cells
    )
    if good:
        expected = np.array([[float(cell) for cell in row] for row in cells], np.float32)
        found = read_floats(path)
        np.testing.assert_array_equal(found, expected.reshape(found.shape))
    else:
        with pytest.raises(InvalidInput, match=re.escape(str(path))):
            read_floats(path)


@pytest.mark.parametrize(("text", "found"), [("1\n", "1"), ("1\n2\n3\n", "more than 2"), ("", "0")])
def test_counts_lines(text, found, path):
    path.write_text(text)
    with pytest.raises(InvalidInput, match=f"found {found} lines; num.csv says 2"):
        read_integers(path, rows=2, rows_from="num.csv")


def test_ids_take_the_smaller_type_that_fits(path):
    path.write_text("0\n1\n")
    assert read_integers(path, below=2**31)[0].dtype == np.int32
    assert read_integers(path, below=2**31 + 1)[0].dtype == np.int64


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


@pytest.mark.parametrize(
    "spoil",
    [cut, flip, lambda data: data[:-8] + bytes(8), lambda data: data[:-4], lambda _: b"0,1\n"],
)
def test_damaged_gzip(spoil, tmp_path):
    """Cut off, one byte changed, wrong checksum, without its end, not gzip at all."""
    path = tmp_path / "edge.csv.gz"
    rows = np.random.RandomState(0).randint(0, 1000, 5000)
    path.write_bytes(spoil(gzip.compress("".join(f"{a},1\n" for a in rows).encode(), mtime=0)))
    with pytest.raises(InvalidInput, match=r"edge.csv.gz, (after )?line \d+: "):
        read_integers(path, 2, below=1000)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0,1\n1,2.5\n", "line 2: column 2 is '2.5'"),
        ("0,1\n1\n", "line 2: found 1 columns"),
        ("0,1\n1,2,3\n", "line 2: found 3 columns"),
        ("0,1\n1,2\n3,\n", "line 3: column 2 is empty"),
        ("0,1\n\n1,2\n", "line 2: found an empty line"),
        ("0,1\n1,7\n", "line 2: column 2 is '7'"),
        ("0,1\n1,2\n2,3\n3,4\n-1,2\n", "line 5: column 1 is '-1'"),
        ("0,1\nnan,1\n", "line 2: column 1 is 'nan'"),
        ("0,1\n0,99999999999999999999\n", "line 2: column 2 is '99999999999999999999'"),
        ("id,to\n1,2\n", "line 1: column 1 is 'id'"),
        ("0,é\n", "line 1: column 2 is 'é'"),
        ("0,1\n0,\x00\n", "line 2: column 2 is '\\x00'"),
    ],
)
def test_names_the_line(text, found, path):
    path.write_text(text, encoding="utf8")
    for mark in (False, True):
        if mark:
            save_as_windows(path)
        with pytest.raises(InvalidInput) as caught:
            read_integers(path, 2, below=7)
        assert str(caught.value).startswith(f"{path}, {found}")


def test_header_line_ends_and_a_byte_order_mark(path):
    path.write_bytes(b"id_1,id_2\r\n0,1\r\n2,3\r\n")
    assert [column.tolist() for column in read_integers(path, 2, header=True)] == [[0, 2], [1, 3]]
    path.write_text("0,1\n2,3\n")
    save_as_windows(path)
    assert [column.tolist() for column in read_integers(path, 2)] == [[0, 2], [1, 3]]
    path.write_bytes(b"id_1,id_2\n0,1\n2,x\n")
    with pytest.raises(InvalidInput, match=r"line 3: column 2 .*'x'"):
        read_integers(path, 2, header=True)
