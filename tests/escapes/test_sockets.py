"""Programs that talk to the outside: TCP, UDP, sockets in the file system and abstract ones."""

import contextlib
import socket
import threading
import time
import uuid

import pytest


@contextlib.contextmanager
def listeners(room):
    """Real servers of ours; yields their addresses and the list of what reached them."""
    heard: list[str] = []
    name = "x" + uuid.uuid4().hex
    sockets = {
        "tcp": socket.create_server(("127.0.0.1", 0)),
        "udp": socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "abstract": socket.socket(socket.AF_UNIX),
    }
    sockets["udp"].bind(("127.0.0.1", 0))
    sockets["abstract"].bind("\0" + name)
    sockets["abstract"].listen()

    def listen(kind, server):
        with contextlib.suppress(OSError):
            server.recv(10) if kind == "udp" else server.accept()
            heard.append(kind)

    threads = [threading.Thread(target=listen, args=pair, daemon=True) for pair in sockets.items()]
    for server in sockets.values():
        server.settimeout(4)
    for thread in threads:
        thread.start()
    try:
        yield sockets["tcp"].getsockname()[1], sockets["udp"].getsockname()[1], name, heard
    finally:
        for server in sockets.values():
            server.close()


def test_nothing_gets_out(room) -> None:
    with listeners(room) as (tcp, udp, name, heard):
        room.attempts(f"""
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", {tcp}), timeout=1))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {udp})))
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\0{name}"))
attempt("outside", lambda: socket.create_connection(("192.0.2.1", 80), timeout=0.5))
time.sleep(0.2)
""")
        deadline = time.monotonic() + (0 if room.enforces("network") else 3)
        while len(heard) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        if room.enforces("network"):
            assert heard == []
        elif room.mechanism.name == "none":
            assert set(heard) == {"tcp", "udp", "abstract"}, "the listeners of this test do not work"


def test_network_where_allowed(room) -> None:
    with listeners(room) as (tcp, _, _, heard):
        worked = room.attempts(
            f"attempt('tcp', lambda: socket.create_connection(('127.0.0.1', {tcp}), timeout=2))\ntime.sleep(0.2)",
            allow_network=True,
        )
        assert worked == {"tcp": True} and heard == ["tcp"]


def test_socket_in_the_file_system(room, tmp_path) -> None:
    path = tmp_path / "agent.sock"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    worked = room.attempts(f"attempt('unix', lambda: socket.socket(socket.AF_UNIX).connect({str(path)!r}))")
    server.close()
    if not room.enforces("unix sockets of the machine"):
        pytest.skip(f"{room.mechanism.name} does not enforce it, and says so")
    assert worked == {"unix": False}


def test_nobody_outside_reaches_what_listens(room) -> None:
    reached, tried = [], threading.Event()

    def knock(event):
        if event["event"] == "port":
            try:
                socket.create_connection(("127.0.0.1", event["port"]), timeout=1).close()
                reached.append(event["port"])
            except OSError:
                pass
            tried.set()

    program = """
import socket, time
try:
    server = socket.create_server(("", 0))
    say({"event": "port", "port": server.getsockname()[1]})
    time.sleep(1.5)
except OSError:
    say({"event": "refused"})
"""
    with room.session() as session:
        result = session.run({"program": program}, timeout=20, on_event=knock)
    assert result.ended == "exit", result.stderr
    if room.enforces("network"):
        assert reached == []
    elif room.mechanism.name == "none":
        assert reached and tried.is_set(), "the listener of this test does not work"
