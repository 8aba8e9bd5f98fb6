import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autodetach.errors import RefusedError, UsageError
from autodetach.source.diff import patched_names, read_patch, size_of, unified_diff

CASES = {
    "a.py": (b"a\nb\nc\n", b"a\nB\nc\n"),
    "sp ace/\u00e9 x.py": (b"a\r\nb\r\n", b"a\r\nb\r\nc\r\n"),
    "sp ace/b b.py": (b"x = 1", b"x = 1\ny"),
    'q"t\\.py': (b"\xe9\x0c\x0b\xff\n\x85z\n" + b"1\n2\n" * 9, b"\xe9\x0c\x0b\xff\n\x85y\n" + b"1\n2\n" * 8),
    "no newline.py": (b"a\r\nb", b"c\r\nb\n"),
    "lone.py": (b"a\rb\rc", b"a\rB\rc"),
    "-x.py": (b"-- a\n++ b\n@@ -1 +1 @@\n", b"++ b\n-- c\n@@ -1 +2 @@\n"),
    "empty.py": (b"", b"x\n"),
    "emptied.py": (b"x\n", b""),
}
BEFORE = {name: old for name, (old, _) in CASES.items()}
AFTER = {name: new for name, (_, new) in CASES.items()}


def test_the_exact_text():
    assert unified_diff({"b.py": b"a\r\nb", "a b.py": b"x\n"}, {"b.py": b"a\r\nc", "a b.py": b"y\n"}) == (
        "--- a/a b.py\t\n+++ b/a b.py\t\n@@ -1 +1 @@\n-x\n+y\n"
        "--- a/b.py\n+++ b/b.py\n@@ -1,2 +1,2 @@\n a\r\n"
        "-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
    )


def test_names_are_quoted_as_git_does():
    diff = unified_diff({'é"\t.py': b"a\n"}, {'é"\t.py': b"b\n"})
    assert diff.startswith('--- "a/\\303\\251\\"\\t.py"\n+++ "b/\\303\\251\\"\\t.py"\n')


def test_nothing_changed_is_empty():
    assert unified_diff(BEFORE, BEFORE) == ""


@pytest.mark.parametrize("command", [["git", "apply"], ["patch", "-p1"], ["patch", "-p1", "--binary"]])
def test_git_and_patch_apply_it(tmp_path, command):
    before = {name: data for name, data in BEFORE.items() if command[0] == "git" or (data and AFTER[name])}
    for name, data in before.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    diff = unified_diff(before, AFTER).encode("utf-8", "surrogateescape")
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    subprocess.run(command, cwd=tmp_path, input=diff, check=True, env=environment, capture_output=True)
    assert {name: (tmp_path / name).read_bytes() for name in before} == {name: AFTER[name] for name in before}


def test_it_is_read_back():
    assert read_patch(unified_diff(BEFORE, AFTER), BEFORE) == AFTER


LINES = st.lists(st.sampled_from([b"a", b"b\r", b"", b"\xff\x0c", b"--- a/x", b"+++ b/x", b"@@ -1 +1 @@"]), max_size=12)


@given(LINES, LINES, st.booleans(), st.booleans())
def test_any_change_is_read_back(old, new, old_ends, new_ends):
    before = {"x.py": b"\n".join(old) + b"\n" * old_ends}
    after = {"x.py": b"\n".join(new) + b"\n" * new_ends}
    if before != after:
        assert read_patch(unified_diff(before, after), before) == after


def test_a_patch_of_git_is_read():
    patch = "diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\n+++ b/a.py\n@@ -2 +2 @@ def f():\n-b\n+B\n"
    assert read_patch(patch, BEFORE) == {"a.py": b"a\nB\nc\n"}


def test_a_patch_without_prefixes_is_read():
    assert read_patch("--- a.py\n+++ a.py\n@@ -2 +2 @@\n-b\n+B\n", BEFORE) == {"a.py": b"a\nB\nc\n"}


HUNK = "@@ -2 +2 @@\n-b\n+B\n"


@pytest.mark.parametrize(
    ("patch", "error", "message"),
    [
        ("", UsageError, "not a unified diff"),
        ("hello\n", UsageError, "not a unified diff"),
        (f"--- a/a.py\n+++ b/a.py\n{HUNK.replace('-b', '-x')}", UsageError, "does not fit a.py at line 2"),
        (f"--- a/a.py\n+++ b/a.py\n{HUNK.replace('-2', '-1')}", UsageError, "does not fit a.py at line 1"),
        ("--- a/a.py\n+++ b/a.py\n@@ -2,2 +2 @@\n-b\n+B\n", UsageError, "not a unified diff"),
        (
            f"--- a/a.py\n+++ b/a.py\n{HUNK}--- a/a.py\n+++ b/a.py\n{HUNK}",
            UsageError,
            "changes a.py twice|does not fit",
        ),
        (f"--- a/../a.py\n+++ b/../a.py\n{HUNK}", RefusedError, "outside"),
        (f"--- /etc/a.py\n+++ /etc/a.py\n{HUNK}", RefusedError, "outside"),
        (f"--- a//etc/a.py\n+++ b//etc/a.py\n{HUNK}", RefusedError, "outside"),
        (f"--- a/x.py\n+++ b/x.py\n{HUNK}", RefusedError, "no file of the program"),
        (f"--- a/a.py\n+++ b/b.py\n{HUNK}", RefusedError, "renames"),
        (
            "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n",
            RefusedError,
            "creates or deletes new.py|b/new.py",
        ),
        ("--- a/a.py\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", RefusedError, "creates or deletes"),
        (
            "diff --git a/a.py b/b.py\nsimilarity index 90%\nrename from a.py\nrename to b.py\n",
            RefusedError,
            "rename from",
        ),
        ("diff --git a/a.py b/a.py\nold mode 100644\nnew mode 100755\n", RefusedError, "mode"),
        ("diff --git a/a b/a\nindex 1..2\nGIT binary patch\nliteral 1\nIcmZ\n", RefusedError, "binary"),
        ("Binary files a/a.py and b/a.py differ\n", RefusedError, "Binary"),
    ],
)
def test_patches_that_are_not_taken(patch, error, message):
    with pytest.raises(error, match=message):
        read_patch(patch, BEFORE)


WRITTEN = [
    unified_diff(BEFORE, AFTER),
    f"diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\t2020\n+++ b/a.py\t2020\n{HUNK}",
    "--- a.py\n+++ a.py\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n\\ No newline at end of file\n",
]
PIECES = ["--- ", "+++ ", "@@ ", "@@ -0,0 +0,0 @@\n", "@@ -1 +1 @@\n", "@@ -99999999999999999999 +1 @@\n", "\r", "\n",
          '"', "\\", "\\777", "/dev/null", "a/", "b/", "../", "/etc/", "\0", "\udcff", "\u2028", "\x0c", "-1", "+1",
          "rename from a\n", "Binary files a and b differ\n", "new file mode 100644\n",
          "\\ No newline at end of file\n"]  # fmt: skip
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 20), st.sampled_from([*PIECES, ""])), max_size=6)


@settings(deadline=None)
@given(st.sampled_from(WRITTEN) | st.text(), EDITS)
def test_whatever_claims_to_be_a_patch_is_taken_or_refused(text, edits):
    for where, length, piece in edits:
        at = int(where * len(text))
        text = text[:at] + piece + text[at + length :]
    try:
        taken = read_patch(text, BEFORE)
    except (UsageError, RefusedError) as error:
        assert str(error)
    else:
        assert taken and taken.keys() <= BEFORE.keys()
    assert not any(name.startswith("/") or ".." in name.split("/") for name in patched_names(text))
    assert min(size_of(text)) >= 0
