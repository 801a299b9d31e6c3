"""The manifests render, are valid to the last field, and hold together: names, ports, variables, connections, time."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from service.kit.settings import Settings
from service.launch.processes import DRAIN_MARGIN_S
from service.worker import loop
from tests.deploy.kubernetes import BUILD, MANIFESTS, RENDERED, ROOT, Document, copies, install, problems, render

pytestmark = pytest.mark.timeout(300)

VARIANTS = {
    "managed": ["base", "components/gateway", "components/autoscaling", "components/network-policy"],
    "recovered": ["overlays/highly-available", "components/recovered-database"],
}
"""What docs/kubernetes.md tells people to put together, beside the overlays."""

NOT_READ = {"DATABASE_LOGIN", "DATABASE_PASSWORD", "DATABASE_ADDRESS"}
"""Variables that a URL is made of."""

PRIVATE = [
    *("10.0.0.1", "172.16.0.1", "172.31.255.254", "192.168.1.1", "100.64.0.1", "169.254.169.254", "127.0.0.1"),
    *("192.0.0.192", "168.63.129.16", "::1", "fd00::1", "fe80::1", "fec0::1", "64:ff9b::a00:1", "::ffff:10.0.0.1"),
    *("2002:a00:1::1", "2001::1"),
]
"""Where neither a model nor a receiver of webhooks is, unless somebody says so."""

NOTIFIER, LISTENER = 1, 1  # connections beside the pool: of each process that queues jobs, of each worker
MIGRATION, POOLER_LOOKUPS, RESERVE = 2, 2, 10  # RESERVE: Postgres keeps 3, the operator takes some, people the rest


@pytest.fixture(scope="module")
def rendered() -> dict[str, list[Document]]:
    install()
    return {name: render(MANIFESTS / name) for name in RENDERED} | {name: variant(name) for name in VARIANTS}


def variant(name: str) -> list[Document]:
    """An overlay as somebody would write it."""
    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    parts = [f"../../../deploy/kubernetes/{part}" for part in VARIANTS[name]]
    written = {"namespace": "loxodon", "resources": parts[:1], "components": parts[1:]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(written))
    return render(folder)


@pytest.fixture(params=[*RENDERED[:2], *VARIANTS])
def overlay(rendered: dict[str, list[Document]], request: pytest.FixtureRequest) -> list[Document]:
    return rendered[request.param]


def of_kind(documents: list[Document], kind: str) -> dict[str, Any]:
    return {each["metadata"]["name"]: each for each in documents if each["kind"] == kind}


def pods(documents: list[Document]) -> Iterator[tuple[str, Any]]:
    for kind in ("Deployment", "Job"):
        for name, each in of_kind(documents, kind).items():
            yield name, each["spec"]["template"]


def containers(pod: Any) -> list[Any]:
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def environment(documents: list[Document], container: Any) -> dict[str, str]:
    """What the container would find, with `secret` for each value of a Secret."""
    maps = {name: each["data"] for name, each in of_kind(documents, "ConfigMap").items()}
    found: dict[str, str] = {}
    for source in container["envFrom"]:
        if "configMapRef" in source:
            found |= maps[source["configMapRef"]["name"]]
    for each in container["env"]:
        if "value" in each:
            assert set(re.findall(r"\$\((\w+)\)", each["value"])) <= found.keys(), f"{each['name']} stands too early"
            found[each["name"]] = re.sub(r"\$\((\w+)\)", lambda name: found[name[1]], each["value"])
        elif "configMapKeyRef" in each["valueFrom"]:
            chosen = each["valueFrom"]["configMapKeyRef"]
            found[each["name"]] = maps[chosen["name"]][chosen["key"]]
        else:
            found[each["name"]] = "secret-of-twenty-characters"
    if "LOXODON_DATABASE_CA_FILE" in found:  # only a pod has it
        found["LOXODON_DATABASE_CA_FILE"] = __file__
    return found


def test_all_is_valid_strictly(rendered: dict[str, list[Document]]) -> None:
    assert not problems([each for documents in rendered.values() for each in documents])


def test_a_field_that_nobody_knows_is_found(rendered: dict[str, list[Document]]) -> None:
    small = rendered["overlays/small"]
    api, cluster = of_kind(small, "Deployment")["loxodon-api"], of_kind(small, "Cluster")["loxodon-db"]
    misspelt = [api | {"spec": api["spec"] | {"replica": 2}}, cluster | {"spec": cluster["spec"] | {"instance": 3}}]
    found = "\n".join(problems(misspelt))
    assert "replica" in found
    assert "instance" in found


def test_pods_have_no_rights(overlay: list[Document]) -> None:
    """As the Pod Security Standard `restricted`, which the namespace enforces, and more."""
    for name, pod in pods(overlay):
        spec = pod["spec"]
        assert not spec["automountServiceAccountToken"], name
        assert not spec["enableServiceLinks"], "the Service loxodon would set LOXODON_PORT"
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for each in containers(pod):
            assert each["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert "memory" in each["resources"]["limits"]
            assert {"name": "tmp", "mountPath": "/tmp"} in each["volumeMounts"]
            assert {mount["name"] for mount in each["volumeMounts"]} <= {volume["name"] for volume in spec["volumes"]}


def test_every_container_starts_with_its_own_login(overlay: list[Document]) -> None:
    """The service reads its environment, each URL reaches the right Secret, and none finds another's."""
    variables = {"loxodon-api": "DATABASE_URL", "loxodon-worker": "LOXODON_WORKER_DATABASE_URL"}
    variables["loxodon-migrate"] = "LOXODON_OWNER_DATABASE_URL"
    for name, pod in pods(overlay):
        for each in containers(pod):
            found = environment(overlay, each)
            settings = Settings.from_env(found)
            urls = {variable for variable in found if variable.endswith("DATABASE_URL")}
            assert urls == {variables[name]}
            secrets = {
                source["valueFrom"]["secretKeyRef"]["name"]
                for source in each["env"]
                if "secretKeyRef" in source.get("valueFrom", {})
            }
            assert secrets - {"loxodon-first-key"} == {name}
            assert settings.server.host == "0.0.0.0"


def test_variables_are_documented(overlay: list[Document]) -> None:
    documented = (ROOT / "docs" / "configuration.md").read_text()
    for _, pod in pods(overlay):
        for each in containers(pod):
            for name in environment(overlay, each).keys() - NOT_READ:
                assert f"`{name}`" in documented, name


def test_new_pods_wait_for_the_migration(overlay: list[Document]) -> None:
    for name, each in of_kind(overlay, "Deployment").items():
        (first,) = each["spec"]["template"]["spec"]["initContainers"]
        assert first["args"][0] == "wait-for-schema"
        assert ("--worker" in first["args"]) == (name == "loxodon-worker")
        (main,) = each["spec"]["template"]["spec"]["containers"]
        assert environment(overlay, first) | environment(overlay, main) == environment(overlay, main)
        assert each["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert list(of_kind(overlay, "Job")) == ["loxodon-migrate"]


def test_only_the_api_goes_through_the_pooler(overlay: list[Document]) -> None:
    for name, pod in pods(overlay):
        for each in containers(pod):
            found = environment(overlay, each)
            assert "pooler" not in found["DATABASE_ADDRESS"] or found["LOXODON_POOLER"] == "transaction"
            assert "pooler" not in found["DATABASE_ADDRESS"] or name == "loxodon-api"


def test_there_is_time_to_drain(overlay: list[Document]) -> None:
    found = {name: pod["spec"] for name, pod in pods(overlay)}
    api = found["loxodon-api"]
    before = int(api["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    drain = Settings.from_env({}).server.request_deadline_s + DRAIN_MARGIN_S
    assert api["terminationGracePeriodSeconds"] >= before + drain + 5
    worker = found["loxodon-worker"]
    assert worker["terminationGracePeriodSeconds"] >= loop.DRAIN_S + loop.FINAL_FLUSH_S + 5


def test_names_and_ports_meet(overlay: list[Document]) -> None:
    templates = dict(pods(overlay))
    labels = {name: pod["metadata"]["labels"] for name, pod in templates.items()}
    ports = {
        name: {port["name"]: port["containerPort"] for each in containers(pod) for port in each.get("ports", [])}
        for name, pod in templates.items()
    }
    settings = Settings.from_env(environment(overlay, containers(templates["loxodon-api"])[-1]))
    assert ports["loxodon-api"] == {"http": settings.server.port}
    assert ports["loxodon-worker"] == {"health": settings.jobs.port}
    for service in of_kind(overlay, "Service").values():
        (chosen,) = [name for name in labels if service["spec"]["selector"].items() <= labels[name].items()]
        assert all(port["targetPort"] in ports[chosen] for port in service["spec"]["ports"])
    for budget in of_kind(overlay, "PodDisruptionBudget").values():
        assert any(budget["spec"]["selector"]["matchLabels"].items() <= each.items() for each in labels.values())
    for scaler in of_kind(overlay, "HorizontalPodAutoscaler").values():
        target = of_kind(overlay, "Deployment")[scaler["spec"]["scaleTargetRef"]["name"]]
        assert "replicas" not in target["spec"], "applying it would undo what the autoscaler did"
    for monitor in of_kind(overlay, "ServiceMonitor").values():
        chosen = monitor["spec"]["selector"]["matchLabels"]
        (service,) = [
            each
            for each in of_kind(overlay, "Service").values()
            if chosen.items() <= each["metadata"]["labels"].items()
        ]
        assert {each["port"] for each in monitor["spec"]["endpoints"]} <= {
            each["name"] for each in service["spec"]["ports"]
        }


def test_nothing_is_open_but_what_stands_there(overlay: list[Document]) -> None:
    policies = of_kind(overlay, "NetworkPolicy")
    everything = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert policies["default-deny"]["spec"] == everything
    assert policies["worker"]["spec"]["ingress"][0]["from"], "its metrics need no key"


@pytest.mark.parametrize("address", PRIVATE)
def test_models_and_webhooks_are_public(overlay: list[Document], address: str) -> None:
    (rule,) = of_kind(overlay, "NetworkPolicy")["to-models"]["spec"]["egress"]
    for each in rule["to"]:
        block, left_out = each["ipBlock"]["cidr"], each["ipBlock"].get("except", [])
        inside = ip_address(address) in ip_network(block)
        assert not inside or any(ip_address(address) in ip_network(one) for one in left_out), address
    assert any(ip_address("93.184.216.34") in ip_network(each["ipBlock"]["cidr"]) for each in rule["to"])


def test_the_secrets_of_providers_reach_only_what_calls_them(overlay: list[Document]) -> None:
    for name, pod in pods(overlay):
        for each in containers(pod):
            given = {source["secretRef"]["name"] for source in each["envFrom"] if "secretRef" in source}
            assert given == ({"loxodon-providers"} if each["args"] in (["api"], ["worker"]) else set()), name


def test_the_database_proves_who_it_is(overlay: list[Document]) -> None:
    for name, pod in pods(overlay):
        (secret,) = [each["secret"] for each in pod["spec"]["volumes"] if each["name"] == "database-ca"]
        assert secret["secretName"] in ("loxodon-database-ca", "loxodon-db-ca", "loxodon-db-2-ca"), name
        for each in containers(pod):
            found = environment(overlay, each)
            assert found["LOXODON_DATABASE_TLS"] == "verify-full"
            assert not re.search(r"sslmode=(?!verify-full)", found["DATABASE_ADDRESS"]), name
            mounts = {mount["name"]: mount["mountPath"] for mount in each["volumeMounts"]}
            assert mounts["database-ca"] == "/etc/loxodon/database-ca", name


def most_pods(documents: list[Document], name: str) -> int:
    """With the one more of a roll-out."""
    scaler = of_kind(documents, "HorizontalPodAutoscaler").get(name)
    return (scaler["spec"]["maxReplicas"] if scaler else 1) + 1


@pytest.mark.parametrize("name", ["overlays/small", "overlays/highly-available", "recovered"])
def test_connections_fit(rendered: dict[str, list[Document]], name: str) -> None:
    """docs/operations.md explains the sum. The recovered database serves all of an overlay, past the pooler."""
    documents = rendered[name]
    templates = dict(pods(documents))
    per_pod = {
        each: Settings.from_env(environment(documents, containers(pod)[-1])).database.pool_size
        for each, pod in templates.items()
    }
    api = most_pods(documents, "loxodon-api") * (per_pod["loxodon-api"] + NOTIFIER)
    worker = most_pods(documents, "loxodon-worker") * (per_pod["loxodon-worker"] + NOTIFIER + LISTENER)
    address = environment(documents, containers(templates["loxodon-api"])[-1])["DATABASE_ADDRESS"]
    if address.startswith("loxodon-pooler:"):
        spec = of_kind(documents, "Pooler")["loxodon-pooler"]["spec"]
        parameters = {each: int(value) for each, value in spec["pgbouncer"]["parameters"].items()}
        assert parameters["max_client_conn"] >= api
        api = spec["instances"] * (parameters["default_pool_size"] + POOLER_LOOKUPS)
    recovered = address.startswith("loxodon-db-2")
    database = of_kind(rendered["recovery"] if recovered else documents, "Cluster")
    (cluster,) = database.values()
    most = int(cluster["spec"]["postgresql"]["parameters"]["max_connections"])
    assert api + worker + MIGRATION + RESERVE <= most, f"{api} of the API, {worker} of the worker"


def test_recovery_touches_nothing_of_the_first_database(rendered: dict[str, list[Document]]) -> None:
    recovery = rendered["recovery"]
    names = {each["metadata"]["name"] for each in recovery}
    assert not names & {each["metadata"]["name"] for each in rendered["overlays/highly-available"]}
    (cluster,) = of_kind(recovery, "Cluster").values()
    (store,) = of_kind(recovery, "ObjectStore")
    (source,) = cluster["spec"]["externalClusters"]
    assert cluster["spec"]["bootstrap"]["recovery"]["source"] == source["name"]
    assert cluster["spec"]["plugins"][0]["parameters"]["barmanObjectName"] == store
    assert source["plugin"]["parameters"]["barmanObjectName"] in of_kind(
        rendered["overlays/highly-available"], "ObjectStore"
    )
    old = of_kind(rendered["overlays/highly-available"], "Cluster")["loxodon-db"]["spec"]["postgresql"]["parameters"]
    new = cluster["spec"]["postgresql"]["parameters"]
    assert int(new["max_connections"]) >= int(old["max_connections"]), "or Postgres does not replay WAL"


def test_copies_are_up_to_date(rendered: dict[str, list[Document]]) -> None:
    for file, text in copies().items():
        assert file.read_text() == text, f"{file.relative_to(ROOT)}: make render"
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "rules.yaml").read_text())
    assert of_kind(rendered["overlays/highly-available"], "PrometheusRule")["loxodon"]["spec"] == rules


def test_the_cluster_is_made_with_our_statements(rendered: dict[str, list[Document]]) -> None:
    for name in RENDERED[:2]:
        references = of_kind(rendered[name], "Cluster")["loxodon-db"]["spec"]["bootstrap"]["initdb"]
        (reference,) = references["postInitApplicationSQLRefs"]["configMapRefs"]
        assert reference["key"] in of_kind(rendered[name], "ConfigMap")[reference["name"]]["data"]
