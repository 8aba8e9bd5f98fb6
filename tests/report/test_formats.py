"""Each format: a snapshot, its schema, and what its readers do with it."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import samples

from autodetach.model import Cause, FailureKind, Level, Status
from autodetach.report.interface import make
from autodetach.report.words import CAUSES, FAILURES
from autodetach.settings import FORMATS

HERE = Path(__file__).parent
PUBLISHED = HERE.parents[1] / "docs" / "schema" / "outcome-1.json"
EVERY = tuple(samples.ALL.values())
SCHEMAS = {"json": PUBLISHED} | {name: HERE / "schemas" / f"{name}.json" for name in ("sarif", "gitlab", "rdjsonl")}


@pytest.mark.parametrize("name", FORMATS)
def test_snapshot(name, golden):
    golden(f"{name}.txt", make(name).render(*EVERY))


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema(name):
    schema = json.loads(SCHEMAS[name].read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    rendered = make(name).render(*EVERY)
    documents = rendered.splitlines() if name == "rdjsonl" else [rendered]
    assert documents
    for document in documents:
        jsonschema.Draft202012Validator(schema).validate(json.loads(document))


@pytest.mark.parametrize("name", SCHEMAS)
def test_without_the_sources_text_it_is_still_valid(name):
    schema = json.loads(SCHEMAS[name].read_text(encoding="utf-8"))
    rendered = make(name).render(*(replace(outcome, originals={}) for outcome in EVERY))
    for document in rendered.splitlines() if name == "rdjsonl" else [rendered]:
        jsonschema.Draft202012Validator(schema).validate(json.loads(document))


@pytest.mark.skipif("OFFICIAL_SCHEMAS" not in os.environ, reason="OFFICIAL_SCHEMAS: see schemas/README.md")
@pytest.mark.parametrize(("name", "file"), [("sarif", "sarif-schema-2.1.0.json"), ("rdjsonl", "Diagnostic.json")])
def test_official_schema(name, file):
    """The extracts that the tests carry say no less than what they were taken from."""
    schema = json.loads((Path(os.environ["OFFICIAL_SCHEMAS"]) / file).read_text(encoding="utf-8"))
    for outcomes in (EVERY, [replace(outcome, originals={}) for outcome in EVERY]):
        rendered = make(name).render(*outcomes)
        for document in rendered.splitlines() if name == "rdjsonl" else [rendered]:
            jsonschema.validators.validator_for(schema)(schema).validate(json.loads(document))


def test_the_published_schema_knows_every_word_of_the_model():
    definitions = json.loads(PUBLISHED.read_text(encoding="utf-8"))["$defs"]
    diagnosis = definitions["diagnosis"]["properties"]
    assert diagnosis["cause"]["enum"] == list(Cause)
    assert diagnosis["failure"]["properties"]["kind"]["enum"] == list(FailureKind)
    assert definitions["outcome"]["properties"]["status"]["enum"] == list(Status)
    assert definitions["level"]["enum"] == list(Level)


def test_every_cause_and_failure_has_its_words():
    assert set(CAUSES) == set(Cause)
    assert set(FAILURES) == set(FailureKind)


def _cut(text: str, start: tuple[int, int], end: tuple[int, int]) -> str:
    """A part of one line, columns from 1 in code points."""
    assert start[0] == end[0]
    return text.split("\n")[start[0] - 1][start[1] - 1 : end[1] - 1]


def test_json_spans_count_code_points():
    outcome = json.loads(make("json").render(samples.REPAIRED))["outcomes"][0]
    span = outcome["diagnosis"]["failure"]["chain"][0]["span"]
    found = _cut(samples.BEFORE, (span["line"], span["column"]), (span["end_line"], span["end_column"]))
    assert found == "größe.backward()"


def test_json_keeps_bytes_that_are_no_utf_8():
    diff = b"-# caf\xe9\n".decode("utf-8", "surrogateescape")
    rendered = make("json").render(replace(samples.REPAIRED, diff=diff))
    rendered.encode("utf-8")
    found = json.loads(rendered)["outcomes"][0]["patch"]["diff"]
    assert found.encode("utf-8", "surrogateescape") == b"-# caf\xe9\n"


def test_sarif_fix_gives_the_patched_file():
    result = json.loads(make("sarif").render(samples.REPAIRED))["runs"][0]["results"][0]
    (change,) = result["fixes"][0]["artifactChanges"]
    (replacement,) = change["replacements"]
    region = replacement["deletedRegion"]
    lines = samples.BEFORE.split("\n")
    line = lines[region["startLine"] - 1]
    before, after = line[: region["startColumn"] - 1], line[region["endColumn"] - 1 :]
    lines[region["startLine"] - 1] = before + replacement["insertedContent"]["text"] + after
    assert "\n".join(lines) == samples.AFTER


def test_sarif_tells_the_way_to_the_failing_backward():
    result = json.loads(make("sarif").render(samples.REPAIRED))["runs"][0]["results"][0]
    steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
    lines = [step["location"]["physicalLocation"]["region"]["startLine"] for step in steps]
    assert lines == [8, 9, 8, 9]


def test_rdjsonl_columns_count_bytes_and_lines_equal_the_suggestions():
    (diagnostic,) = (json.loads(line) for line in make("rdjsonl").render(samples.REPAIRED).splitlines())
    (suggestion,) = diagnostic["suggestions"]
    assert diagnostic["location"]["range"] == suggestion["range"]
    line = samples.BEFORE.split("\n")[7]
    assert suggestion["range"]["end"] == {"line": 8, "column": len(line.encode()) + 1}
    related = diagnostic["related_locations"][1]["location"]["range"]
    row = samples.BEFORE.split("\n")[8].encode()
    cut = row[related["start"]["column"] - 1 : related["end"]["column"] - 1]
    assert cut.decode() == "größe.backward()"


def test_rdjsonl_of_a_patch_in_two_places_names_the_other_place():
    after = samples.AFTER.replace("import torch\n", "import torch, sys\n")
    diff = samples.diff_of(samples.BEFORE, after, "train.py")
    first, second = make("rdjsonl").render(replace(samples.REPAIRED, diff=diff)).splitlines()
    assert "Only together with the change at train.py:8." in json.loads(first)["message"]
    assert "Only together with the change at train.py:1." in json.loads(second)["message"]


def test_github_annotations_follow_the_grammar():
    """One command a line, with the properties that GitHub knows; what would end a property or a line is escaped."""
    for line in make("github").render(*EVERY).splitlines():
        found = re.fullmatch(r"::(?:error|warning|notice)(?: ([^:]+))?::(.+)", line)
        assert found, line
        properties = dict(one.split("=", 1) for one in (found[1] or "").split(",") if one)
        assert set(properties) <= {"title", "file", "line", "endLine", "col", "endColumn"}
        assert all(properties[name].isdigit() for name in set(properties) - {"title", "file"})


def test_github_annotations_cannot_be_forged():
    evil = "%0A::error::forged\r\n::add-mask::x\x1b[31m"
    failed = replace(samples.FAILED, detail=evil)
    trial = replace(samples.CHOSEN, candidate=replace(samples.CHOSEN.candidate, summary=evil))
    rendered = make("github").render(failed, replace(samples.REPAIRED, chosen=trial))
    assert len(re.findall("^::", rendered, re.M)) == rendered.count("\n") == 3
    assert "\x1b" not in rendered
    assert "%250A" in rendered


def test_gitlab_fingerprint_does_not_move_with_the_lines():
    moved = "\n\n" + samples.BEFORE
    span = samples.span_of(moved, "größe.backward()")
    chain = (replace(samples.DIAGNOSIS.failure.chain[0], span=span),)
    diagnosis = replace(samples.DIAGNOSIS, failure=replace(samples.DIAGNOSIS.failure, chain=chain))
    later = replace(samples.REPAIRED, diagnosis=diagnosis, originals={"train.py": moved.encode()})
    one, other = json.loads(make("gitlab").render(samples.REPAIRED, later))
    assert one["fingerprint"] == other["fingerprint"]
    assert one["location"]["lines"] != other["location"]["lines"]


@pytest.mark.parametrize("name", ["text", "github", "rdjsonl", "gitlab", "sarif"])
def test_escapes_of_the_program_are_neutralised(name):
    evil = "\x1b]0;owned\x07 \u202etxt.exe \x9b2J"
    evidence = (replace(samples.DIAGNOSIS.evidence[0], text=evil),)
    failure = replace(samples.DIAGNOSIS.failure, message=evil)
    diagnosis = replace(samples.DIAGNOSIS, failure=failure, evidence=evidence, ways_out=(evil,))
    outcome = replace(samples.UNREPAIRED, diagnosis=diagnosis, detail=evil, notes=(evil,))
    rendered = make(name).render(outcome)
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(rendered)


def test_the_diff_of_two_programs_that_need_the_same_patch_comes_once():
    assert make("diff").render(samples.REPAIRED, samples.REPAIRED) == samples.REPAIRED.diff
