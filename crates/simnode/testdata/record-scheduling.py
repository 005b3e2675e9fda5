#!/usr/bin/env python3
"""Asks the real kube-scheduler what the small one is compared with, and writes scheduling.json.

    fleetwright up --in-memory --listen 127.0.0.1:0 --kubeconfig k &
    kube-scheduler --kubeconfig k --leader-elect=false --secure-port=0 &
    KUBECONFIG=k python3 record-scheduling.py
"""

import json
import pathlib
import subprocess
import time

HOST = "kubernetes.io/hostname"
NODE_AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"


def node(name, labels=None, spec=None, **more):
    return {"name": name, "labels": {HOST: name, **(labels or {})}, "spec": spec or {},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", **more}}


def cpu(amount, **more):
    return {"containers": [{"name": "c", "image": "i", "resources": {
        "requests": {"cpu": amount, **more}}}]}


def limited(**amounts):
    return {"containers": [{"name": "c", "image": "i", "resources": {
        "requests": amounts, "limits": amounts}}]}


def near(key, app):
    return [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}]


def required(kind, terms):
    return {"affinity": {kind: {NODE_AFFINITY: terms}}}


def spread(key, **more):
    return {"topologySpreadConstraints": [{
        "topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}, **more}]}


def port(number):
    return {"containers": [{"name": "c", "image": "i", "ports": [
        {"containerPort": 1, "hostPort": number}]}]}


def terms(*expressions):
    return {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": key, "operator": operator, "values": values}]}
        for key, operator, values in expressions]}


ZONES = [node("a1", {"zone": "a"}), node("a2", {"zone": "a"}), node("b1", {"zone": "b"})]
TAINT = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
SOFT = [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}]
MIXED = [node("cordoned", spec={"unschedulable": True}), node("tainted", spec={"taints": TAINT}),
         node("unloved", {"size": "9"}, {"taints": SOFT}), node("plain", {"size": "1"})]
LONER = required("podAntiAffinity", near("zone", "loner"))
FULL = [{"name": "p%d" % number, "node": "b1"} for number in range(10)]

WORLDS = {
    "empty": {"nodes": [], "pods": []},
    "zones": {"nodes": ZONES, "pods": []},
    "mixed": {"nodes": MIXED, "pods": []},
    "gpu": {"nodes": ZONES + [node("g", {"zone": "b"}, **{"nvidia.com/gpu": "2"})],
            "pods": [{"name": "x", "node": "a1", "spec": cpu("3")}]},
    "full": {"nodes": ZONES, "pods": FULL},
    "friends": {"nodes": ZONES, "pods": [
        {"name": "db", "node": "b1", "labels": {"app": "db"}},
        {"name": "loner", "node": "a2", "labels": {"app": "loner"}, "spec": LONER}]},
    "one-web": {"nodes": ZONES, "pods": [{"name": "w1", "node": "a1", "labels": {"app": "web"}}]},
    "two-webs": {"nodes": ZONES, "pods": [
        {"name": "w1", "node": "a1", "labels": {"app": "web"}},
        {"name": "w2", "node": "b1", "labels": {"app": "web"}}]},
    "ports": {"nodes": ZONES, "pods": [
        {"name": "h%s" % name, "node": name, "spec": port(80)} for name in ["a1", "a2", "b1"]]},
    "busy": {"nodes": ZONES, "pods": [
        {"name": "big-a1", "node": "a1", "spec": cpu("3", memory="1Gi")},
        {"name": "big-b1", "node": "b1", "spec": cpu("2", memory="6Gi")}]},
}

WEB = {"app": "web"}
IN_A = {"nodeSelector": {"zone": "a"}}
CASES = [
    ("empty", {}, {}),
    ("zones", {}, cpu("9")),
    ("zones", {}, cpu("9", memory="100Gi", **{"ephemeral-storage": "1Ti"})),
    ("zones", {}, {"nodeSelector": {"zone": "b"}}),
    ("zones", {}, {"nodeSelector": {"zone": "z"}}),
    ("zones", {}, required("nodeAffinity", terms(("zone", "NotIn", ["a"])))),
    ("zones", {}, required("nodeAffinity", terms(("zone", "In", ["z"]), ("zone", "In", ["b"])))),
    ("zones", {}, required("nodeAffinity", terms(("zone", "DoesNotExist", [])))),
    ("zones", {}, {**cpu("9"), "preemptionPolicy": "Never", "priorityClassName": "never"}),
    ("zones", {}, required("podAffinity", near("zone", "nobody"))),
    ("zones", {}, required("podAffinity", near("rack", "nobody"))),
    ("zones", WEB, spread("rack")),
    ("mixed", {}, {}),
    ("mixed", {}, cpu("100")),
    ("mixed", {}, {"nodeSelector": {HOST: "unloved"}}),
    ("mixed", {}, {"nodeSelector": {HOST: "tainted"}}),
    ("mixed", {}, {"tolerations": [{"key": "k", "operator": "Exists"}], "nodeSelector": {HOST: "tainted"}}),
    ("mixed", {}, {"tolerations": [{"operator": "Exists"}], "nodeSelector": {HOST: "cordoned"}}),
    ("mixed", {}, {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 100, "preference": {"matchExpressions": [
            {"key": "size", "operator": "Gt", "values": ["5"]}]}}]}},
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "PreferNoSchedule"}]}),
    ("mixed", {}, required("nodeAffinity", {"nodeSelectorTerms": [{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["tainted"]}]}]})),
    ("mixed", {}, {**required("nodeAffinity", {"nodeSelectorTerms": [{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["plain"]}]}]}), **cpu("100")}),
    ("gpu", {}, limited(**{"nvidia.com/gpu": "2"})),
    ("gpu", {}, limited(**{"nvidia.com/gpu": "3"})),
    ("gpu", {}, {**cpu("2"), "nodeSelector": {HOST: "a1"}}),
    ("gpu", {}, limited(**{"cpu": "5", "nvidia.com/gpu": "1"})),
    ("full", {}, {"nodeSelector": {"zone": "b"}}),
    ("full", {}, {"nodeSelector": {"zone": "b"}, **cpu("9")}),
    ("friends", {}, required("podAffinity", near(HOST, "db"))),
    ("friends", {}, required("podAffinity", near("zone", "db"))),
    ("friends", {}, {**required("podAffinity", near("zone", "db")), **IN_A}),
    ("friends", {}, {**required("podAntiAffinity", near("zone", "db")), "nodeSelector": {"zone": "b"}}),
    ("friends", {"app": "loner"}, {}),
    ("friends", {"app": "loner"}, IN_A),
    ("friends", {"app": "loner"}, {**LONER, **IN_A}),
    ("friends", {}, {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 100, "podAffinityTerm": near(HOST, "db")[0]}]}}}),
    ("one-web", WEB, spread("zone")),
    ("one-web", WEB, {**spread("zone"), **IN_A}),
    ("one-web", WEB, {**spread("zone", nodeAffinityPolicy="Ignore"), **IN_A}),
    ("one-web", WEB, {**spread(HOST), **IN_A}),
    ("one-web", WEB, {**spread("zone", minDomains=3), **IN_A}),
    ("one-web", WEB, {**spread(HOST, whenUnsatisfiable="ScheduleAnyway"), **IN_A}),
    ("two-webs", WEB, spread("zone", minDomains=3)),
    ("two-webs", WEB, spread(HOST)),
    ("two-webs", {}, {**spread("zone", minDomains=3), "nodeSelector": {HOST: "a2"}}),
    ("ports", {}, port(80)),
    ("ports", {}, {**port(81), "nodeSelector": {HOST: "a2"}}),
    ("busy", {}, cpu("500m", memory="256Mi")),
    ("busy", {}, {**cpu("500m", memory="1Gi"), "nodeSelector": {"zone": "a"}}),
    ("busy", {}, cpu("3500m", memory="1Gi")),
    ("busy", {}, {**cpu("3500m", memory="3Gi"), "nodeSelector": {"zone": "b"}}),
]


def kubectl(*arguments, document=None):
    text = json.dumps(document) if document else None
    done = subprocess.run(["kubectl", *arguments], input=text, text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{arguments}: {done.stderr}")
    return done.stdout


def pod(name, labels, spec, **more):
    spec = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0, **spec, **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def build(world):
    kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    kubectl("delete", "nodes", "--all")
    items = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": n["name"], "labels": n["labels"]},
              "spec": n["spec"], "status": {"allocatable": n["allocatable"], "capacity": n["allocatable"]}}
             for n in world["nodes"]]
    items += [pod(p["name"], p.get("labels", {}), p.get("spec", {}), nodeName=p["node"])
              for p in world["pods"]]
    if items:
        kubectl("create", "-f", "-", document={"apiVersion": "v1", "kind": "List", "items": items})
    time.sleep(1)


def ask(labels, spec):
    kubectl("create", "-f", "-", document=pod("new", labels, spec))
    for _ in range(100):
        found = json.loads(kubectl("get", "pod", "new", "-o", "json"))
        conditions = {c["type"]: c for c in found.get("status", {}).get("conditions", [])}
        scheduled = conditions.get("PodScheduled")
        if scheduled:
            kubectl("delete", "pod", "new", "--force", "--grace-period=0")
            time.sleep(0.2)
            return found["spec"].get("nodeName") or scheduled["message"]
        time.sleep(0.1)
    raise SystemExit(f"no answer for {spec}")


def main():
    kubectl("create", "-f", "-", document={
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "never"},
        "value": 0, "preemptionPolicy": "Never"})
    cases, last = [], None
    for world, labels, spec in CASES:
        if world != last:
            build(WORLDS[world])
            last = world
        cases.append({"world": world, "labels": labels, "spec": spec, "answer": ask(labels, spec)})
        print(world, "->", cases[-1]["answer"])
    recorded = {"about": "answers of kube-scheduler v1.37.1; see record-scheduling.py",
                "worlds": WORLDS, "cases": cases}
    target = pathlib.Path(__file__).with_name("scheduling.json")
    target.write_text(json.dumps(recorded, indent=1) + "\n")


main()
