import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autodetach.runner.server import LONGEST_LINE, parse_line
from autodetach.runner.wire import EventTail, OutputTail, create

objects = st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.floats()), min_size=1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=200)))
def test_whatever_arrives_in_whatever_pieces(pieces) -> None:
    fd = os.memfd_create("wire")
    tail = EventTail(fd)
    events = []
    for piece in pieces:
        os.write(fd, piece)
        events += tail.read()
    events += tail.finish()
    whole = b"".join(pieces).split(b"\n")[:-1]
    assert repr(events) == repr([found for line in whole if line.strip() and (found := parse_line(line)) is not None])
    os.close(fd)


@settings(max_examples=40, deadline=None)
@given(st.lists(objects), st.integers(1, 50))
def test_events_come_through(wanted, size) -> None:
    fd = os.memfd_create("wire")
    tail, found = EventTail(fd), []
    data = b"".join(json.dumps(event).encode() + b"\n" for event in wanted)
    for start in range(0, len(data), size):
        os.write(fd, data[start : start + size])
        found += tail.read()
    assert repr(found + tail.finish()) == repr(json.loads(json.dumps(wanted)))
    assert tail.dropped == 0
    os.close(fd)


def test_long_lines_and_floods(path) -> None:
    fd = create(path)
    tail = EventTail(fd, most=8 << 20)
    with path.open("ab") as file:
        file.write(b"x" * (LONGEST_LINE * 2) + b'\n{"a": 1}\n')
    assert tail.read() == [{"a": 1}] and tail.dropped == 1
    with path.open("ab") as file:
        file.write(b'{"a": 1}\n' * 1_000_000)
    assert len(tail.read()) < 1_000_000 and tail.flooded
    assert tail.read() == []


def test_an_existing_file_is_not_followed(path, tmp_path) -> None:
    path.symlink_to(tmp_path / "other")
    with pytest.raises(FileExistsError):
        create(path)


def test_output_is_bounded(path) -> None:
    fd = create(path)
    output = OutputTail(fd, on_disk=1000, kept=100)
    with path.open("ab", buffering=0) as file:
        for number in range(500):
            file.write(b"line %d\n" % number)
            output.bound()
            assert path.stat().st_size <= 1100
    assert output.text().endswith("line 499\n") and len(output.text()) <= 100 and output.cut


def test_nothing_is_lost_while_room_is_given_back(path) -> None:
    """Somebody writes between any two looks."""
    fd = create(path)
    output = OutputTail(fd, on_disk=1 << 20, kept=10_000)
    with path.open("ab", buffering=0) as file:

        def look(name, *_):
            plain = getattr(os, name)

            def looking(*args):
                file.write(b"x" * 100 + b"\n")
                return plain(*args)

            return looking

        with pytest.MonkeyPatch.context() as patch:
            for name in ("fstat", "pread"):
                patch.setattr(os, name, look(name))
            for _ in range(40):
                file.write(b"y" * 99_999 + b"\n")
                output.bound()
        file.write(b"last line\n")
    assert path.stat().st_blocks * 512 <= 2 << 20 and output.cut
    text = output.text()
    assert text.endswith("last line\n") and len(text) == 10_000 and set(text) == set("xy\nlast line")


def test_output_of_a_writer_that_does_not_append(path) -> None:
    fd = create(path)
    output = OutputTail(fd, on_disk=1000, kept=100)
    with path.open("r+b", buffering=0) as file:
        for number in range(500):
            file.write(b"line %d\n" % number)
            output.bound()
    assert output.text().endswith("line 499\n") and "\0" not in output.text()
