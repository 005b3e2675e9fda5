"""Checks requests and answers against the public description of the AWS services.

botocore carries that description. It is lenient itself: it drops what it does not know from an
answer, so a misspelt element would go unnoticed. Here nothing does.

As a program: reads the simulator's audit log (a JSON file with a list of calls) and fails if a
request in it is not one that the service describes.
"""

import json
import sys
import xml.etree.ElementTree as ET
from datetime import datetime

import botocore.session

SERVICES = {
    "2016-11-15": "ec2",
    "2015-12-01": "elbv2",
    "2012-06-01": "elb",
    "2011-06-15": "sts",
}
_session = botocore.session.get_session()
_models = {}


def operation(version, action):
    service = SERVICES[version]
    if service not in _models:
        _models[service] = _session.get_service_model(service)
    return _models[service].operation_model(action)


def _scalar(shape, text, where):
    """What is wrong with a text of a simple type."""
    kind = shape.type_name
    try:
        if kind in ("integer", "long"):
            int(text)
        elif kind in ("float", "double"):
            float(text)
        elif kind == "timestamp":
            datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return [f"{where}: not a {kind}: {text!r}"]
    if kind == "boolean" and text not in ("true", "false"):
        return [f"{where}: not a boolean: {text!r}"]
    allowed = getattr(shape, "enum", None)
    if allowed and text not in allowed:
        return [f"{where}: not one of the values of {shape.name}: {text!r}"]
    return []


def _query_name(shape, name, member):
    """The name of a member in a request."""
    serialization = member.serialization
    if "queryName" in serialization:
        return serialization["queryName"]
    given = serialization.get("name", name)
    return given[0].upper() + given[1:] if shape else given


def request_problems(version, action, parameters):
    """What is wrong with a request: a list of sentences."""
    model = operation(version, action)
    ec2 = model.service_model.metadata["protocol"] == "ec2"
    tree = {}
    for key, value in parameters.items():
        if key in ("Action", "Version"):
            continue
        here = tree
        *path, last = key.split(".")
        for part in path:
            here = here.setdefault(part, {})
        here[last] = value
    if model.input_shape is None:
        return [f"{action} takes no parameters, but got {sorted(tree)}"] if tree else []
    return _request(model.input_shape, tree, action, ec2)


def _request(shape, value, where, ec2):
    if shape.type_name == "structure":
        if not isinstance(value, dict):
            return [f"{where}: a structure is needed, not {value!r}"]
        names = {_query_name(ec2, n, m): (n, m) for n, m in shape.members.items()}
        problems = [f"{where}: there is no {key}" for key in value if key not in names]
        for key, (name, member) in names.items():
            if key in value:
                problems += _request(member, value[key], f"{where}.{key}", ec2)
            elif name in shape.required_members:
                problems.append(f"{where}: {key} is missing")
        return problems
    if shape.type_name == "list":
        if not isinstance(value, dict):
            return [f"{where}: a list is needed, not {value!r}"]
        if not ec2 and not shape.serialization.get("flattened"):
            entry = shape.member.serialization.get("name", "member")
            if set(value) != {entry}:
                return [f"{where}: entries are called {entry}, not {sorted(value)}"]
            value = value[entry]
        problems = []
        numbers = sorted(value, key=lambda n: int(n) if n.isdigit() else -1)
        if numbers != [str(n) for n in range(1, len(value) + 1)]:
            problems.append(f"{where}: entries must be numbered from 1: {numbers}")
        for number, entry in value.items():
            problems += _request(shape.member, entry, f"{where}.{number}", ec2)
        return problems
    if isinstance(value, dict):
        return [f"{where}: a {shape.type_name} is needed, not a structure"]
    # User data is left out of the audit log.
    if where.endswith(".UserData"):
        return []
    return _scalar(shape, value, where)


def answer_problems(version, action, body):
    """What is wrong with an answer: a list of sentences."""
    model = operation(version, action)
    ec2 = model.service_model.metadata["protocol"] == "ec2"
    root = ET.fromstring(body)
    if _local(root) != f"{action}Response":
        return [f"the root is {_local(root)}"]
    if ec2:
        children = [child for child in root if _local(child) != "requestId"]
        if len(children) == len(root):
            return [f"{action}: there is no requestId"]
        if model.output_shape is None:
            # Calls without an answer say <return>true</return>.
            return [f"{action}: {_local(c)}" for c in children if _local(c) != "return"]
        children = [c for c in children if _local(c) != "return"]
        return _members(model.output_shape, children, action)
    if [_local(c) for c in root] != [f"{action}Result", "ResponseMetadata"]:
        return [f"{action}: result and metadata are needed, not {[_local(c) for c in root]}"]
    return _members(model.output_shape, list(root[0]), action)


def _local(element):
    return element.tag.rsplit("}", 1)[-1]


def _members(shape, children, where):
    names = {m.serialization.get("name", n): m for n, m in shape.members.items()}
    problems, seen = [], set()
    for child in children:
        name = _local(child)
        if name not in names:
            problems.append(f"{where}: there is no {name}")
        elif name in seen:
            problems.append(f"{where}: {name} twice")
        else:
            problems += _answer(names[name], child, f"{where}.{name}")
        seen.add(name)
    return problems


def _answer(shape, element, where):
    if shape.type_name == "structure":
        return _members(shape, list(element), where)
    if shape.type_name == "list":
        entry = shape.member.serialization.get("name", "member")
        problems = []
        for number, child in enumerate(element):
            if _local(child) != entry:
                problems.append(f"{where}: entries are called {entry}, not {_local(child)}")
            else:
                problems += _answer(shape.member, child, f"{where}[{number}]")
        return problems
    if len(element):
        return [f"{where}: a {shape.type_name} is needed, not elements"]
    return _scalar(shape, element.text or "", where)


def main():
    problems = []
    with open(sys.argv[1], encoding="utf-8") as log:
        calls = json.load(log)
    for call in calls:
        for problem in request_problems(call["version"], call["action"], call["parameters"]):
            problems.append(f"call {call['sequence']}: {problem}")
    print("\n".join(problems) or f"{len(calls)} requests are as the services describe them")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
