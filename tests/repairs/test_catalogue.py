"""The page of remedies is what the remedies say of themselves."""

from pathlib import Path

import pytest

from autodetach.repairs.catalogue import ALL, page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_current() -> None:
    assert (DOCS / "remedies.md").read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("repair", ALL, ids=lambda repair: repair.name)
def test_every_remedy_shows_what_it_does(repair: object) -> None:
    examples = repair.examples  # type: ignore[attr-defined]
    shown = [example for example in examples if example.after is not None]
    assert shown
    for example in shown:
        assert example.before != example.after
        compile(example.before, example.title, "exec")
        compile(example.after, example.title, "exec")


def test_remedies_have_names_of_their_own() -> None:
    assert len({repair.name for repair in ALL}) == len(ALL)
