"""The data of tests as assignments give them: what is read of parameters, and how it is spelled."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

from templates.box import Formula, JointData, Test
from xscl.disjunctions import OTHER_NUMBER, DataForm, Disjunction
from xscl.functions import to_double
from xscl.path import Parameter, XPathFrame
from xscl.pattern import INEQUALITIES
from xscl.prefilters import spell_number
from xscl.query import operand_parameters
from xscl.xpath1calls import given_text

__all__ = ["given_by", "parameters_of", "text_by", "text_of"]

Read = Callable[[Mapping[str, Any]], Any]
"""Reads something of the values of parameters."""


def parameters_of(test: Test) -> Collection[str]:
    """Return the names of all parameters that the data of a test are made of."""
    data = test.data
    match data:
        case Parameter(name):
            return {name}
        case Formula(operand):
            return {each.name for each in operand_parameters(operand)}
        case XPathFrame():
            return {each.name for each in _of_frame(data)}
        case JointData(tests):
            return {name for each in tests for name in parameters_of(each)}
        case Disjunction():
            found = {each.name for each, _ in data.parameters()}
            frames = (each for each in data.data() if isinstance(each, XPathFrame))
            return found.union(each.name for frame in frames for each in _of_frame(frame))
    return ()


def _of_frame(frame: XPathFrame) -> list[Parameter]:
    return [each for each in frame.arguments if isinstance(each, Parameter)]


def given_by(test: Test) -> Read:
    """Return what reads the datum of a test as it is given."""
    data = test.data
    if isinstance(data, Parameter):
        name, form, operator = data.name, test.form, test.operator
        if form in (DataForm.PLAIN, DataForm.SPELLED, DataForm.AS_GIVEN):
            return itemgetter(name)
        return lambda values: form.read(values[name], operator)
    if isinstance(data, Formula):
        return data.number
    if isinstance(data, Disjunction):
        return data.text
    if isinstance(data, XPathFrame):
        return partial(given_text, data)
    if isinstance(data, JointData):
        reads = [text_by(each) for each in data.tests]
        return lambda values: json.dumps([read(values) for read in reads])
    return lambda _: data


def text_by(test: Test) -> Read:
    """Return what reads the datum of a test that is no bound, as a text."""
    given, spell = given_by(test), text_of(test)
    return lambda values: spell(given(values))


def text_of(test: Test) -> Callable[[Any], str]:
    """Return what makes a text of the datum that is given for a test that is no bound."""
    operator = test.operator
    assert operator not in INEQUALITIES
    if operator == OTHER_NUMBER:
        return lambda given: spell_number(to_double(given))
    if operator == "=" and test.is_of_several:
        return spell_number
    if test.form in (DataForm.SPELLED, DataForm.AS_GIVEN):
        return lambda given: given if isinstance(given, str) else spell_number(given)
    return str
