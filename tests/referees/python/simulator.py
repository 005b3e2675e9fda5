"""The simulator under test, as a Python client sees it."""

import json
import os
import time
import urllib.request
from contextlib import contextmanager

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

import service_model

ENDPOINT = os.environ["SIMCLOUD_ENDPOINT"]
INSTALLED = json.loads(os.environ["SIMCLOUD_INSTALLED"])
REGION = "us-east-1"

# Problems with answers, found as they came in.
PROBLEMS = []
# Actions whose answers were looked at.
CHECKED = set()


def client(service, retries=0, **overrides):
    """A client of the simulator whose answers are all checked against the description."""
    settings = {
        "region_name": REGION,
        "endpoint_url": ENDPOINT,
        "aws_access_key_id": INSTALLED["access_key"],
        "aws_secret_access_key": INSTALLED["secret_key"],
        **overrides,
    }
    config = Config(
        retries={"total_max_attempts": retries + 1}, connect_timeout=5, read_timeout=10
    )
    made = boto3.client(service, config=config, **settings)
    version = made.meta.service_model.api_version
    check = lambda **event: _check(version, **event)
    made.meta.events.register("response-received.*.*", check)
    return made


def _check(version, response_dict=None, event_name=None, **_):
    if response_dict is None or response_dict["status_code"] >= 300:
        return
    action = event_name.rsplit(".", 1)[-1]
    CHECKED.add((version, action))
    for problem in service_model.answer_problems(version, action, response_dict["body"]):
        PROBLEMS.append(problem)


def control(method, path, body=None):
    """Calls the control surface."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{ENDPOINT}/_fleetwright/{path}", data, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def code(call, **parameters):
    """(status, code) of the error that a call gives."""
    try:
        call(**parameters)
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        return status, error.response["Error"]["Code"]
    return 200, None


def until(condition, seconds=10):
    """Waits for a condition, and gives what it gave."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("waited in vain")


@contextmanager
def settings(patch):
    """Other settings for a while."""
    before = control("GET", "settings")
    control("PATCH", "settings", patch)
    try:
        yield
    finally:
        control("PUT", "settings", before)
