"""Programs that look for keys."""

import pytest


def test_files_with_keys(room) -> None:
    program = (
        f"home = {str(room.home)!r}\n"
        + """
for name in (".ssh/id_ed25519", ".netrc", ".aws/credentials", ".config/gcloud/key.json"):
    attempt(name, lambda: open(home + "/" + name).read())
    attempt("root " + name, lambda: open("/proc/self/root" + home + "/" + name).read())
def linked():
    os.symlink(home + "/.ssh", "keys"); return open("keys/id_ed25519").read()
attempt("link", linked)
attempt("copy", lambda: subprocess.run(["cat", home + "/.netrc"], check=True))
attempt("parent", lambda: open("/proc/%d/environ" % os.getppid()).read())
attempt("harmless", lambda: open(home + "/.config/other/settings.ini").read())
attempt("project", lambda: open(home + "/project/train.py").read())
"""
    )
    if not room.enforces("reading secrets"):
        pytest.skip(f"{room.mechanism.name} does not enforce it, and says so")
    result = room.run(program)
    assert result.status == 0, result.stderr
    worked = {event["event"]: event["worked"] for event in result.events}
    assert worked.pop("harmless") and worked.pop("project")
    worked.pop("parent")
    leaked = [event for event in result.events if "PRIVATE" in event["value"] or "password" in event["value"]]
    assert leaked == []
    # A hidden file may read as empty; what counts is that it is not the key.
    assert not any(success for name, success in worked.items() if "netrc" not in name and name != "copy"), worked


def test_tokens_in_the_environment(room, monkeypatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "hush-1")
    monkeypatch.setenv("HF_TOKEN", "hush-2")
    monkeypatch.setenv("DB", "postgres://me:hush-3@host/db")
    monkeypatch.setenv("WANTED_SECRET", "let through")
    monkeypatch.setenv("PLAIN", "plain")
    result = room.run("say({'event': 'env', 'env': dict(os.environ)})", env=("WANTED_SECRET",))
    seen = result.events[0]["env"]
    assert seen["PLAIN"] == "plain" and seen["WANTED_SECRET"] == "let through"
    assert "hush" not in str(seen)


def test_data_that_was_named_can_be_read_and_not_written(room, tmp_path):
    """What lies in the machine's temp folder, or among the secrets, is seen where its user says so."""
    sets = [tmp_path / "sets", room.home / ".config" / "gcloud"]
    sets[0].mkdir()
    (sets[0] / "key.json").write_text("numbers")
    program = "".join(
        f"attempt('read {i}', lambda: open({str(folder / 'key.json')!r}).read())\n"
        f"attempt('write {i}', lambda: open({str(folder / 'new')!r}, 'w'))\n"
        for i, folder in enumerate(sets)
    )
    worked = room.attempts(program, data=sets)
    assert worked["read 0"] and worked["read 1"]
    if room.enforces("writes outside the scratch"):
        assert not worked["write 0"] and not worked["write 1"]
    if room.enforces("reading secrets"):
        assert not room.attempts(program)["read 1"]
