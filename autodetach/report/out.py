"""Where reports go: the chosen format to stdout or a file, the story to stderr."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TextIO

from autodetach.errors import UsageError
from autodetach.model import Outcome
from autodetach.progress import wants_colour
from autodetach.report.interface import Report, make
from autodetach.report.plain import neutral
from autodetach.settings import Settings


def tell(settings: Settings, *outcomes: Outcome) -> None:
    """The story on stderr, unless it will be the output itself."""
    if settings.output_format != "text" and not settings.quiet and sys.stderr is not None:
        between = "\n" * any(outcome.diff for outcome in outcomes)
        sys.stderr.write(_story(settings, sys.stderr).render(*outcomes) + between)
        sys.stderr.flush()


def publish(settings: Settings, *outcomes: Outcome) -> None:
    """The chosen format, to stdout or its file. Raises UsageError as ``put`` does."""
    report = make(settings.output_format)
    if settings.output_format == "text":
        report = _story(settings, None if settings.output_file else sys.stdout)
    put(report.render(*outcomes), settings.output_format, settings.output_file)


def put(text: str, output_format: str, file: Path | None) -> None:
    """Raises UsageError where ``file`` cannot be written; ``None`` is stdout, which may be closed or left."""
    # Patches are bytes: lone surrogates become what they were read from, whatever the terminal's encoding.
    content = text.encode("utf-8", "surrogateescape")
    if file is not None:
        try:
            file.write_bytes(content)
        except OSError as error:
            raise UsageError(f"{file} cannot be written: {error.strerror}") from error
    elif sys.stdout is not None:
        if output_format == "text" or sys.stdout.isatty():
            shown = text if output_format == "text" else neutral(text, keep="\t\n")
            content = shown.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
        _write(sys.stdout, content)


def _write(stdout: TextIO, content: bytes) -> None:
    try:
        stdout.buffer.write(content)
        stdout.flush()
    except BrokenPipeError:
        # The reader has left: nothing more is said, also not when the interpreter flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())


def _story(settings: Settings, stream: TextIO | None) -> Report:
    from autodetach.report.text import TextReport

    colour = stream is not None and wants_colour(stream, os.environ)
    return TextReport(colour=colour, all=settings.all, verbose=settings.verbose)
