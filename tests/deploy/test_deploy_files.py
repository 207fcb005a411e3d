"""The files of deploy/: each is read by its own grammar, and what they name is there."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragotel.store import Store
from served import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
YAML = sorted(DEPLOY.glob("**/*.yaml"))
KINDS = {
    "Namespace": "v1",
    "Secret": "v1",
    "Service": "v1",
    "PersistentVolumeClaim": "v1",
    "StatefulSet": "apps/v1",
    "Deployment": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
}


def documents(path: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(path.read_text("utf-8")) if each]


OBJECTS = [each for path in (DEPLOY / "kubernetes").glob("*.yaml") for each in documents(path)]


def pod_of(thing: dict[str, Any]) -> dict[str, Any] | None:
    """The pod that an object starts."""
    spec = thing.get("spec", {})
    template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
    return template["spec"] if template else None


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", []), *pod["containers"]]


PODS = [pod for thing in OBJECTS if (pod := pod_of(thing)) is not None]


@pytest.mark.parametrize("path", YAML, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_a_yaml_file_parses(path: Path) -> None:
    """And is not empty."""
    assert documents(path)


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("**/*.xml")), ids=lambda path: path.name)
def test_a_server_s_file_parses(path: Path) -> None:
    """Its root is what ClickHouse merges."""
    assert ElementTree.parse(path).getroot().tag == "clickhouse"


def test_settings_of_the_profiles_are_the_engine_s(engine: Store) -> None:
    """The engine knows each by its name."""
    names = {
        setting.tag
        for path in (DEPLOY / "clickhouse" / "users.d").glob("*.xml")
        for profile in ElementTree.parse(path).getroot().iterfind("profiles/*")
        for setting in profile
        if setting.tag != "constraints"
    }
    known = engine.query(
        "select name from system.settings where name in {names:Array(String)}",
        {"names": sorted(names)},
    ).result_rows
    assert {row[0] for row in known} == names


def test_settings_of_the_server_are_the_engine_s(engine: Store) -> None:
    """Those that the engine lists: plain ones and those of MergeTree."""
    plain, trees = set(), set()
    for path in (DEPLOY / "clickhouse" / "config.d").glob("*.xml"):
        root = ElementTree.parse(path).getroot()
        trees |= {each.tag for each in root.iterfind("merge_tree/*")}
        plain |= {each.tag for each in root if not len(each) and not each.attrib}
    lists = {"system.server_settings": plain, "system.merge_tree_settings": trees}
    for table, names in lists.items():
        known = engine.query(
            f"select name from {table} where name in {{names:Array(String)}}",
            {"names": sorted(names)},
        ).result_rows
        # These two are read from the file by name, and stand in no list.
        unlisted = {"timezone", "ignore_empty_sql_security_in_create_view_query"}
        assert names - {row[0] for row in known} <= unlisted


@pytest.mark.parametrize("thing", OBJECTS, ids=lambda o: f"{o['kind']}-{o['metadata']['name']}")
def test_an_object_has_its_kind_s_shape(thing: dict[str, Any]) -> None:
    """Version, name, namespace; selectors that find their pods; claims and mounts that exist."""
    assert thing["apiVersion"] == KINDS[thing["kind"]]
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", thing["metadata"]["name"])
    if thing["kind"] != "Namespace":
        assert thing["metadata"]["namespace"] == "ragotel"
    if thing["kind"] in ("StatefulSet", "Deployment"):
        spec = thing["spec"]
        assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    pod = pod_of(thing)
    if pod is None:
        return
    claimed = {each["metadata"]["name"] for each in thing["spec"].get("volumeClaimTemplates", [])}
    volumes = {each["name"] for each in pod.get("volumes", [])} | claimed
    for container in containers(pod):
        assert {each["name"] for each in container.get("volumeMounts", [])} <= volumes
    if thing["kind"] in ("Job", "CronJob"):
        assert pod["restartPolicy"] in ("Never", "OnFailure")


def test_every_secret_s_key_is_in_the_example() -> None:
    """The same keys in env.example, which both ways of starting read."""
    wanted = {
        variable["valueFrom"]["secretKeyRef"]["key"]
        for pod in PODS
        for container in containers(pod)
        for variable in container.get("env", [])
        if "valueFrom" in variable
    }
    (secret,) = (each for each in OBJECTS if each["kind"] == "Secret")
    lines = (DEPLOY / "env.example").read_text("utf-8").splitlines()
    example = {line.partition("=")[0] for line in lines if line and not line.startswith("#")}
    assert wanted <= set(secret["stringData"]) == example
    compose = (DEPLOY / "compose.yaml").read_text("utf-8")
    assert set(re.findall(r"\$\{(\w+):\?", compose)) == example


def test_services_of_compose_wait_for_services_that_exist() -> None:
    """And every mounted file is in the repository; ports are open on this machine alone."""
    (compose,) = documents(DEPLOY / "compose.yaml")
    services = compose["services"]
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (DEPLOY / source).is_file()
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        if "build" in service:
            context = DEPLOY / service["build"]["context"]
            assert (context / service["build"]["dockerfile"]).is_file()


def test_the_collector_gets_only_variables_that_its_configuration_reads() -> None:
    """Those of compose and of Kubernetes; none is spelt wrong."""
    known = set(
        re.findall(r"\$\{env:(\w+)", (REPOSITORY / "collector" / "otelcol.yaml").read_text("utf-8"))
    )
    (compose,) = documents(DEPLOY / "compose.yaml")
    given = set(compose["services"]["collector"]["environment"])
    (collector,) = (
        container
        for pod in PODS
        for container in containers(pod)
        if container["name"] == "collector"
    )
    assert given == {each["name"] for each in collector["env"]} <= known


def test_kustomize_s_files_exist() -> None:
    """Each config map that a pod mounts is generated, from files that are there."""
    (kustomization,) = documents(DEPLOY / "kustomization.yaml")
    maps = {each["name"]: each["files"] for each in kustomization["configMapGenerator"]}
    for path in (*kustomization["resources"], *(f for files in maps.values() for f in files)):
        assert (DEPLOY / path).is_file()
    mounted = {
        volume["configMap"]["name"]
        for pod in PODS
        for volume in pod.get("volumes", [])
        if "configMap" in volume
    }
    assert mounted == set(maps)


def test_dockerfiles_copy_what_is_there() -> None:
    """The build's context is the repository's root."""
    for path in (DEPLOY / "Dockerfile", DEPLOY / "collector" / "Dockerfile"):
        for line in re.findall(r"(?m)^COPY (?!--from)(.+)$", path.read_text("utf-8")):
            for source in line.split()[:-1]:
                assert (REPOSITORY / source).exists(), source


def test_the_statements_of_a_page_parse(engine: Store) -> None:
    """Backups and restores, as the page shows them."""
    text = (DEPLOY / "backup.md").read_text("utf-8")
    blocks = "".join(re.findall(r"(?s)```sql\n(.*?)```", text))
    found = [each.strip() for each in re.sub(r"(?m)^--.*$", "", blocks).split(";\n")]
    assert len([each for each in found if each]) == 7
    for statement in filter(None, found):
        engine.query("select formatQuerySingleLine({sql:String})", {"sql": statement})
