"""Programs that abuse the way events travel."""

import json


def test_garbage_and_forged_lines(room) -> None:
    result = room.run(r"""
say({"event": "first"})
for junk in (b"not json\n", b"[1, 2]\n", b"\xff\xfe\n", b"{" * 100000 + b"\n", b'{"a": ' * 5000 + b"\n",
             b"\n", b'"text"\n',
             b"9" * 5000 + b"\n", b"x" * (3 << 20) + b"\n"):
    os.write(events, junk)
say({"event": "last"})
os.write(events, b'{"event": "unfinished"')
""")
    assert [event["event"] for event in result.events] == ["first", "last"]
    assert result.dropped >= 8 and result.ended == "exit"


def test_flood(room) -> None:
    result = room.run("""
line = b'{"event": "x", "pad": "' + b"y" * 900000 + b'"}\\n'
for _ in range(90): os.write(events, line)
time.sleep(20)
""")
    assert result.ended == "limit" and "events" in result.limit


def test_closed_wire(room) -> None:
    result = room.run("say({'event': 'x'}); os.close(events); os.closerange(3, 100); print('done')")
    assert (result.ended, result.status, len(result.events)) == ("exit", 0, 1)


def test_wire_replaced_by_a_link(room) -> None:
    secret = room.elsewhere / "precious.txt"
    secret.write_text(json.dumps({"event": "secret"}) + "\n")
    result = room.run(f"""
for kind in ("events", "stdout", "stderr"):
    os.unlink(request[kind]); os.symlink({str(secret)!r}, request[kind])
say({{"event": "still"}})
print("out")
""")
    assert "secret" not in str(result)
    assert secret.read_text() == json.dumps({"event": "secret"}) + "\n"


def test_truncated_wire(room) -> None:
    result = room.run("say({'event': 'x'}); os.truncate(request['events'], 0); time.sleep(0.1); say({'event': 'y'})")
    assert result.ended == "exit"


def test_stop_ends_the_run_at_once(room) -> None:
    result = room.run("say({'event': 'stop'}); say({'event': 'too late'}); time.sleep(30)")
    assert result.ended == "killed" and result.seconds < 5
    assert result.events == ({"event": "stop"},)


def test_forged_answers_of_the_server(room) -> None:
    """A run that finds the server's output can end itself early, nothing worse."""
    result = room.run(
        """
def forge():
    with open(f"/proc/{os.getppid()}/fd/1", "w") as stream:
        stream.write('{"ended": "run-1", "status": 0}\\n{"started": []}\\n{"ended": {}}\\nnonsense\\n')
attempt("forge", forge)
time.sleep(1)
""",
        timeout=5,
    )
    assert result.ended == "exit"
