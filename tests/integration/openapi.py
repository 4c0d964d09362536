#!/usr/bin/env python3
"""proto/openapi.yaml against the daemon, in both directions: each path, parameter and field that it
names is served, and nothing else is."""

import copy
import datetime
import pathlib
import re
import tempfile

from harness import Daemon, Fixture, build_fixture, need_root, program
from tap import Suite, check, check_equal

try:
    import yaml
except ImportError:
    yaml = None

TOP = pathlib.Path(__file__).resolve().parents[2]
PID, MINE, BARE, FAILURES = 4242, 4244, 4293, 4250
ADDRESS = "0xc000123000"

# A value that each parameter takes, and one that it does not.
VALUES = {"format": ("text", "xml"), "mode": ("stop", "x"), "depth": ("census", "x"),
          "max_age": ("5", "3601"), "max_pause": ("0.5", "0"), "timeout": ("30", "601"),
          "start": ("2026-01-27T22:18:11.12Z", "x"), "dead": ("1", "2"),
          "label": ("tenant=acme", "tenant"), "by": ("@module", "@x"), "detail": ("1", "2"),
          "max_depth": ("7", "0"), "max_samples": ("9", "0"), "min_bytes": ("64", "-1"),
          "sample": ("retained", "all"), "labels": ("1", "2"), "debug": ("0", "3"),
          "gc": ("1", "x"), "seconds": ("1", "0"), "over": ("0.02", "0"),
          "since": (None, "x"), "keep": ("30", "86401"),
          "scan": ("0123456789abcdef", "0123456789abcdeF"), "type": ("main.Order", ""),
          "limit": ("5", "10001"), "cursor": ("0123456789abcdef.1", "x"), "top": ("2", "0"),
          "retained": ("1", "2"), "garbage": ("1", "2"), "contents": ("1", "2"),
          "object": ("0xc000123000", "c000123000")}

# The same where a path takes others, and what else it must be given to answer at all.
HEAP, GOROUTINE, DIFF = "/debug/pprof/heap", "/debug/pprof/goroutine", "/diff"
OF_OBJECTS = ("/histogram", "/objects", f"/object/{ADDRESS}", "/dominators")
OTHER_VALUES = {("/profile", "format"): ("pprof", "json"), ("/profile", "depth"): ("full", "census"),
                ("/profile", "by"): ("@module", "tenant"), (HEAP, "depth"): ("full", "census"),
                (HEAP, "by"): ("@module", "tenant"), ("/debug/pprof", "format"): ("html", "pprof"),
                (DIFF, "depth"): ("full", "census"), (DIFF, "by"): ("@module", "tenant"),
                **{(path, "depth"): ("full", "census") for path in OF_OBJECTS}}
# What a path takes and has no answer to yet.
ABSENT = {(GOROUTINE, "seconds")}

# Fields that a parameter or an error adds.
ASKED_FOR = {"pids", "selection", "groups", "top_types", "parked_goroutines"}
ASKED_OF_OBJECTS = {"globals", "garbage", "finalizable"}

suite = Suite()
daemon = None
document = None


# ---- a validator for the part of JSON Schema that the document uses ----

KNOWN = {"type", "nullable", "enum", "minimum", "maximum", "exclusiveMinimum", "pattern", "format",
         "minLength", "default", "description", "properties", "required", "additionalProperties",
         "items", "$ref"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}


def resolve(schema):
    while "$ref" in schema:
        target = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        schema = target
    return schema


def has_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def validate_object(value, schema, where):
    properties = schema.get("properties", {})
    for key in schema.get("required", []):
        check(key in value, f"{where}.{key} is missing")
    for key, item in value.items():
        if key in properties:
            validate(item, properties[key], f"{where}.{key}")
        else:
            other = schema.get("additionalProperties", True)
            check(other is not False, f"{where}.{key} is not in the document")
            if isinstance(other, dict):
                validate(item, other, f"{where}.{key}")


def validate_string(value, schema, where):
    if "pattern" in schema:
        check(re.search(schema["pattern"], value), f"{where}: {value!r}")
    if schema.get("format") == "date-time":
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", value),
              f"{where}: {value!r}")
        datetime.datetime.fromisoformat(value[:19])


def validate(value, schema, where):
    schema = resolve(schema)
    check(set(schema) <= KNOWN, f"{where}: this test does not know {set(schema) - KNOWN}")
    if value is None:
        check(schema.get("nullable"), f"{where} is null")
        return
    if "type" not in schema:
        return
    check(has_type(value, schema["type"]), f"{where} is {value!r}, not {schema['type']}")
    if "enum" in schema:
        check(value in schema["enum"], f"{where} is {value!r}")
    if "minimum" in schema:
        check(value >= schema["minimum"], f"{where} is {value!r}")
    if schema["type"] == "object":
        validate_object(value, schema, where)
    elif schema["type"] == "array":
        for index, item in enumerate(value):
            validate(item, schema["items"], f"{where}[{index}]")
    elif schema["type"] == "string":
        validate_string(value, schema, where)


# ---- what the document says ----

def operations():
    """Each path with its operation and its query parameters by name."""
    for path, item in document["paths"].items():
        operation = item["get"]
        check_equal(set(item) - {"parameters"}, {"get"}, f"methods of {path}")
        parameters = [resolve(p) for p in
                      item.get("parameters", []) + operation.get("parameters", [])]
        yield path, operation, {p["name"]: p for p in parameters if p["in"] == "query"}


def fill(path, pid=PID, name="mine"):
    return path.replace("{pid}", str(pid)).replace("{name}", name).replace("{address}", ADDRESS)


def end_of(path):
    return re.sub(r"^/(pid|comm)/[^/]*", "", path).replace("{address}", ADDRESS)


def kept_scan(path):
    """The id of a scan that is kept of the process that the path names."""
    pid = MINE if path.startswith("/comm") else PID
    return daemon.get(f"/pid/{pid}/mappings?keep=600").json()["scan"]["id"]


def values_of(path, name):
    if name in ("scan", "since"):
        return kept_scan(path), VALUES[name][1]
    if name == "cursor":
        row = "ffffffff.1" if "dominators" in path else "1"
        return f"{kept_scan(path)}.{row}", VALUES[name][1]
    return OTHER_VALUES.get((end_of(path), name), VALUES[name])


def needs(path, names):
    if end_of(path) == GOROUTINE and "format" not in names:
        return [("format", "json")]
    if end_of(path) == DIFF and not {"over", "since"} & names:
        return [("since", kept_scan(path)) if "scan" in names else ("over", "0.02")]
    return []


def request(path, *parameters, separator="?", pid=PID):
    """The path filled in, with what it needs."""
    given = [*parameters, *needs(path, {name for name, _ in parameters})]
    words = [f"{name}={value}" for name, value in given]
    if separator == "/":
        return "/".join([fill(path, pid), *words])
    return fill(path, pid) + ("?" + "&".join(words) if words else "")


def schema_of(operation, content_type="application/json", status="200"):
    return resolve(operation["responses"][status])["content"][content_type]["schema"]


def required_everywhere(schema, where, seen=()):
    """Every property of an object is required: a field that is not known is null, not absent."""
    schema = resolve(schema)
    if id(schema) in seen:
        return
    seen = (*seen, id(schema))
    properties = schema.get("properties", {})
    optional = set(properties) - set(schema.get("required", []))
    check(optional <= ASKED_FOR | ASKED_OF_OBJECTS, f"{where}: {optional} may be absent")
    for key, value in properties.items():
        required_everywhere(value, f"{where}.{key}", seen)
    if "items" in schema:
        required_everywhere(schema["items"], f"{where}[]", seen)


def fields_of(value):
    """The names of all fields at any depth."""
    if isinstance(value, list):
        return set().union(*map(fields_of, value))
    if isinstance(value, dict):
        return set(value).union(*map(fields_of, value.values()))
    return set()


# ---- tests ----

@suite.test("each path is served, and for comm as for pid")
def _():
    for path, operation, _ in operations():
        answer = daemon.get(request(path))
        check_equal(answer.status, 200, path)
        kind = answer.headers["Content-Type"].partition(";")[0]
        check(kind in resolve(operation["responses"]["200"])["content"], f"{path}: {kind}")
        if "{pid}" in path:
            check(path.replace("/pid/{pid}", "/comm/{name}") in document["paths"], path)


@suite.test("no route is missing in the document")
def _():
    source = (TOP / "daemon/route.c").read_text()
    table = source[source.index("routes[]"):source.index("{ 0 }")]
    served = {"/" + re.sub(r"\*", "{pid}", path, count=1).replace("*", "{address}")
              for path in re.findall(r'METHODS_READ,\s*"([^"]*)"', table)}
    documented = {path for path in document["paths"] if not path.startswith("/comm")}
    check_equal(served, documented, "paths")


@suite.test("each parameter takes its values and no others")
def _():
    for path, _, parameters in operations():
        for name, parameter in parameters.items():
            good, bad = values_of(path, name)
            enum = parameter["schema"].get("enum")
            check(not enum or good in map(str, enum), f"{name}={good}")
            for separator in "?", "/":
                for value, status in (good, 200), (bad, 400):
                    if value == good and (end_of(path), name) in ABSENT:
                        status = 404
                    answer = daemon.get(request(path, (name, value), separator=separator))
                    check_equal(answer.status, status, f"{path}{separator}{name}={value}: "
                                f"{answer.body[:200]}")


@suite.test("values of enumerations and bounds are the daemon's")
def _():
    path = f"/pid/{PID}/goroutines"
    parameters = dict((p, q) for p, _, q in operations())["/pid/{pid}/goroutines"]
    for name, parameter in parameters.items():
        schema = parameter["schema"]
        for value in schema.get("enum", []):
            check_equal(daemon.get(f"{path}?{name}={value}").status, 200, f"{name}={value}")
        if "maximum" in schema:
            top = schema["maximum"]
            check_equal(daemon.get(f"{path}?{name}={top}").status, 200, f"{name}={top}")
            check_equal(daemon.get(f"{path}?{name}={top + 1}").status, 400, f"{name}={top + 1}")
            lowest = 400 if schema.get("exclusiveMinimum") else 200
            check_equal(daemon.get(f"{path}?{name}=0").status, lowest, f"{name}=0")


@suite.test("a path refuses the parameters that others take")
def _():
    for path, _, parameters in operations():
        for name, (good, _) in VALUES.items():
            if name not in parameters:
                answer = daemon.get(request(path, (name, good)))
                check_equal(answer.status, 400, f"{path}?{name}")
                check("bad_request" in answer.text() and name in answer.text(), answer.text())


@suite.test("answers have the fields that the document gives them")
def _():
    for path, operation, _ in operations():
        if "application/json" not in resolve(operation["responses"]["200"])["content"]:
            continue
        schema = schema_of(operation)
        required_everywhere(schema, path)
        for pid in PID, MINE, BARE:
            validate(daemon.get(request(path, pid=pid)).json(), schema, path)
        depth = dict((p, q) for p, _, q in operations())[path].get("depth")
        if depth and "census" in depth["schema"]["enum"]:
            validate(daemon.get(request(path, ("depth", "census"), ("max_age", 9))).json(),
                     schema, path)
        if "label" in dict((p, q) for p, _, q in operations())[path]:
            for depth in "full", "census":
                found = daemon.get(f"{fill(path)}?label=tenant=acme&by=job&detail=1&depth={depth}")
                validate(found.json(), schema, path)
                check(ASKED_FOR - {"pids"} <= fields_of(found.json()), path)


@suite.test("what is asked of objects is added")
def _():
    operation = document["paths"]["/pid/{pid}/histogram"]["get"]
    plain = daemon.get(f"/pid/{PID}/histogram").json()
    check(not ASKED_OF_OBJECTS & set(plain), "fields that were not asked for")
    check(all(row["retained_bytes"] is None for row in plain["types"]), "retained_bytes")
    asked = daemon.get(f"/pid/{PID}/histogram?garbage=1&retained=1").json()
    validate(asked, schema_of(operation), "/histogram")
    check_equal(ASKED_OF_OBJECTS & set(asked), ASKED_OF_OBJECTS, "fields that were asked for")
    check(all(row["retained_bytes"] is not None for row in asked["types"]), "retained_bytes")


@suite.test("pages go on with the scan that the first one kept")
def _():
    for path, rows in ("objects", "objects"), ("dominators", "nodes"):
        first = daemon.get(f"/pid/{PID}/{path}").json()
        check(first[rows] and first["more"], path)
        second = daemon.get(f"/pid/{PID}/{path}?cursor={first['next_cursor']}").json()
        check_equal(second["scan"]["id"], first["scan"]["id"], "scan")
        check_equal((second[rows], second["more"], second["next_cursor"]), ([], False, None), path)
        other = daemon.get(f"/pid/{PID}/{path}?cursor={first['next_cursor']}&scan={'0' * 16}")
        check_equal(other.status, 400, "a cursor of another scan")
        gone = daemon.get(f"/pid/{PID}/{path}?cursor={'0' * 16}.{first['next_cursor'].partition('.')[2]}")
        check_equal((gone.status, gone.error_code()), (404, "not_found"), "a scan that is gone")


@suite.test("fields that are left out are noticed")
def _():
    operation = document["paths"]["/pid/{pid}/memusage"]["get"]
    answer = daemon.get(f"/pid/{PID}/memusage").json()
    for spoil in (lambda a: a.pop("labels"), lambda a: a["scan"].pop("id"),
                  lambda a: a.update(more=1), lambda a: a["memory"].update(bytes=-1),
                  lambda a: a["scan"]["trust"].update(goroutines=None)):
        spoilt = copy.deepcopy(answer)
        spoil(spoilt)
        try:
            validate(spoilt, schema_of(operation), "spoilt")
        except AssertionError:
            continue
        raise AssertionError("a spoilt answer is valid")


@suite.test("errors have the form and the codes that the document gives them")
def _():
    schema = document["components"]["schemas"]["Error"]
    codes = set()
    for path in ([f"/pid/{FAILURES + number}/memusage" for number in range(27)] +
                 ["/nowhere", "/comm/checkout", "/pid/4000", "/pids?x=1"]):
        answer = daemon.get(path)
        validate(answer.json(), schema, path)
        codes.add(answer.error_code())
    refused = daemon.request("POST", "/pids")
    validate(refused.json(), schema, "POST")
    codes.add(refused.error_code())
    listed = set(resolve(schema)["properties"]["error"]["properties"]["code"]["enum"])
    check_equal(codes, listed, "codes")
    description = document["components"]["responses"]["Error"]["description"]
    for code in listed:
        check(code in description, f"{code} is not explained")


@suite.test("a real program's answers have them too")
def _():
    need_root()
    path = build_fixture("demo", "1.26")
    with Daemon() as real, Fixture([path]) as target:
        for documented, operation, parameters in operations():
            if "{pid}" not in documented:
                continue
            path = documented
            if "{address}" in path:
                listed = real.get(f"/pid/{target.pid}/objects?limit=1&max_pause=10").json()
                path = path.replace("{address}", listed["objects"][0]["address"])
            more = [("max_pause", 10)] if "max_pause" in parameters else []
            answer = real.get(request(path, *more, pid=target.pid))
            check_equal(answer.status, 200, f"{path}: {answer.body[:300]}")
            if "application/json" in resolve(operation["responses"]["200"])["content"]:
                validate(answer.json(), schema_of(operation), documented)
        last = real.get(f"/pid/{target.pid}/mappings?keep=60&max_pause=10").json()["scan"]["id"]
        kept = real.get(f"/pid/{target.pid}/scans").json()
        check_equal(kept["scans"][0]["id"], last, "newest kept scan")
        validate(kept, schema_of(document["paths"]["/pid/{pid}/scans"]["get"]), "/scans")
        validate(real.get("/pids").json(), schema_of(document["paths"]["/pids"]["get"]), "/pids")


if yaml is None:
    print("1..0 # SKIP python3-yaml is not installed")
else:
    document = yaml.safe_load((TOP / "proto/openapi.yaml").read_text())
    with tempfile.TemporaryDirectory(prefix="goheapd-openapi-") as folder:
        config = pathlib.Path(folder, "goheapd.conf")
        config.write_text("min_stop_interval = 0\n")
        with Daemon("--agent", program("tests/support/fake_agent"), "--config",
                    config) as daemon:
            suite.run()
