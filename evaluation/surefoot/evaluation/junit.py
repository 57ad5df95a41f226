"""A comparison as JUnit XML: a test case per rule and per task, for the pipelines that read that.

Rule: a test case fails exactly where a rule said no; a task that fell without breaking a rule passes, and tells so.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from surefoot.evaluation.compare import Comparison
from surefoot.evaluation.compare_rules import Finding

# XML 1.0 has no way to write these.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(found: Comparison, findings: list[Finding]) -> str:
    """Return the XML document."""
    suite = ET.Element("testsuite", name="surefoot compare")
    for finding in findings:
        case = ET.SubElement(suite, "testcase", classname="surefoot.compare.rules", name=finding.rule)
        if finding.broken:
            _failure(case, f"{len(finding.says)} found", "\n".join(finding.says))
    broken = {task: finding.rule for finding in findings if finding.broken for task in finding.tasks}
    for task in found.tasks:
        case = ET.SubElement(suite, "testcase", classname="surefoot.compare.tasks", name=_clean(task.task_id))
        one, two = task.baseline, task.candidate
        told = (
            f"baseline  {one.c}/{one.n} {one.strip}\ncandidate {two.c}/{two.n} {two.strip}\n{two.first_failure or ''}"
        )
        if task.task_id in broken:
            _failure(case, f"{broken[task.task_id]}: {one.c}/{one.n} to {two.c}/{two.n}", told)
        else:
            ET.SubElement(case, "system-out").text = _clean(told)
    for name in (*found.only_baseline, *found.unjudged):
        case = ET.SubElement(suite, "testcase", classname="surefoot.compare.tasks", name=_clean(name))
        if name in broken:
            _failure(case, f"{broken[name]}: not compared", "")
        else:
            ET.SubElement(case, "skipped", message="not run, or not judged, on both sides")
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", "0")
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    ET.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _failure(case: ET.Element, message: str, text: str) -> None:
    ET.SubElement(case, "failure", message=_clean(message)).text = _clean(text)


def _clean(text: str) -> str:
    return _NOT_XML.sub("?", text)
