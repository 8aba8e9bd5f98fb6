"""Errors that end in one clear line for the user. Each has a slug that ``docs/errors.md`` explains."""


class AutodetachError(Exception):
    """Base of all errors shown to the user: a message that says what to do, a slug and an exit status."""

    slug = "error"
    status = 2


class UsageError(AutodetachError):
    slug = "usage"


class SourceError(AutodetachError):
    """A source file cannot be read, decoded or parsed."""

    slug = "source"


class InterpreterError(AutodetachError):
    """No usable interpreter, or one without a supported torch."""

    slug = "interpreter"


class RefusedError(AutodetachError):
    """The tool could go on but must not: a file changed meanwhile, uncommitted changes, no isolation."""

    slug = "refused"
    status = 4


class RunError(AutodetachError):
    """The program could not be run under the agent at all."""

    slug = "run"
    status = 3
