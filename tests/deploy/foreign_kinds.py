"""Schemas of `spec` for the kinds that Kubernetes does not bring: CloudNativePG, its Barman plugin, the Prometheus
operator, Gateway API.

No package for Python holds theirs. These were written down here, mostly without the projects' schemas at hand, and name
what the manifests use, or are likely to use next; any other field is refused. A field that is missing here may well
exist: look it up, then add it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
DURATION: Schema = {"type": "string", "pattern": r"^([0-9]+(h|m|s|ms)){1,4}$"}
QUANTITIES: Schema = {
    "type": "object",
    "additionalProperties": {"type": "string", "pattern": r"^[0-9.]+(m|[KMGT]i?)?$"},
}


def fields(*required: str, **properties: Schema) -> Schema:
    """An object with these fields and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def several(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def one_of(*values: str) -> Schema:
    return {"enum": list(values)}


NAME = fields("name", name=TEXT)
KEY = fields("name", "key", name=TEXT, key=TEXT)
RESOURCES = fields(requests=QUANTITIES, limits=QUANTITIES)
SELECTOR = fields("matchLabels", matchLabels=TEXTS)
STORAGE = fields(
    "size", size={"type": "string", "pattern": "^[0-9]+[MGT]i$"}, storageClass=TEXT, resizeInUseVolumes=FLAG
)
PLUGIN = fields("name", name=TEXT, enabled=FLAG, isWALArchiver=FLAG, parameters=TEXTS)

INITDB = fields(
    database=TEXT,
    owner=TEXT,
    secret=NAME,
    dataChecksums=FLAG,
    encoding=TEXT,
    localeProvider=TEXT,
    postInitApplicationSQLRefs=fields(configMapRefs=several(KEY), secretRefs=several(KEY)),
)
RECOVERY = fields(
    "source",
    source=TEXT,
    database=TEXT,
    owner=TEXT,
    recoveryTarget=fields(
        targetTime=TEXT, targetLSN=TEXT, targetXID=TEXT, targetName=TEXT, targetImmediate=FLAG, backupID=TEXT
    ),
)
MANAGED_ROLE = fields(
    "name",
    name=TEXT,
    ensure=one_of("present", "absent"),
    comment=TEXT,
    login=FLAG,
    inherit=FLAG,
    inRoles=several(TEXT),
    connectionLimit=COUNT,
    passwordSecret=NAME,
)
CLUSTER = fields(
    "instances",
    "storage",
    instances={"type": "integer", "minimum": 1},
    imageName=TEXT,
    primaryUpdateStrategy=one_of("unsupervised", "supervised"),
    bootstrap={**fields(initdb=INITDB, recovery=RECOVERY), "maxProperties": 1},
    managed=fields(roles=several(MANAGED_ROLE)),
    postgresql=fields(
        parameters=TEXTS,
        synchronous=fields(
            "method",
            "number",
            method=one_of("any", "first"),
            number={"type": "integer", "minimum": 1},
            dataDurability=one_of("required", "preferred"),
        ),
    ),
    certificates=fields(serverAltDNSNames=several(TEXT), serverTLSSecret=TEXT, serverCASecret=TEXT),
    affinity=fields(
        enablePodAntiAffinity=FLAG,
        topologyKey=TEXT,
        podAntiAffinityType=one_of("preferred", "required"),
        nodeSelector=TEXTS,
    ),
    resources=RESOURCES,
    storage=STORAGE,
    walStorage=STORAGE,
    plugins=several(PLUGIN),
    externalClusters=several(fields("name", name=TEXT, plugin=PLUGIN, connectionParameters=TEXTS)),
)

POOLER = fields(
    "cluster",
    "pgbouncer",
    cluster=NAME,
    type=one_of("rw", "ro", "r"),
    instances=COUNT,
    pgbouncer=fields(poolMode=one_of("session", "transaction"), parameters=TEXTS, paused=FLAG),
    template=fields(
        metadata=fields(labels=TEXTS, annotations=TEXTS),
        spec=fields(
            "containers",
            containers=several(fields("name", name=one_of("pgbouncer"), image=TEXT, resources=RESOURCES)),
            topologySpreadConstraints=several(
                fields(
                    "topologyKey",
                    "maxSkew",
                    "whenUnsatisfiable",
                    topologyKey=TEXT,
                    maxSkew=COUNT,
                    whenUnsatisfiable=one_of("ScheduleAnyway", "DoNotSchedule"),
                    labelSelector=SELECTOR,
                )
            ),
        ),
    ),
)

SCHEDULED_BACKUP = fields(
    "cluster",
    "schedule",
    schedule={"type": "string", "pattern": r"^\S+( \S+){5}$"},
    immediate=FLAG,
    suspend=FLAG,
    backupOwnerReference=one_of("none", "self", "cluster"),
    cluster=NAME,
    method=one_of("barmanObjectStore", "volumeSnapshot", "plugin"),
    pluginConfiguration=fields("name", name=TEXT, parameters=TEXTS),
    target=one_of("primary", "prefer-standby"),
)

OBJECT_STORE = fields(
    "configuration",
    retentionPolicy={"type": "string", "pattern": "^[1-9][0-9]*[dwm]$"},
    configuration=fields(
        "destinationPath",
        destinationPath=TEXT,
        endpointURL=TEXT,
        s3Credentials=fields(accessKeyId=KEY, secretAccessKey=KEY, region=KEY, inheritFromIAMRole=FLAG),
        wal=fields(
            compression=one_of("bzip2", "gzip", "lz4", "snappy", "xz", "zstd"),
            encryption=one_of("AES256", "aws:kms"),
            maxParallel={"type": "integer", "minimum": 1},
        ),
        data=fields(
            compression=one_of("bzip2", "gzip", "snappy"),
            encryption=one_of("AES256", "aws:kms"),
            jobs={"type": "integer", "minimum": 1},
            immediateCheckpoint=FLAG,
        ),
    ),
)

SERVICE_MONITOR = fields(
    "selector",
    "endpoints",
    selector=SELECTOR,
    jobLabel=TEXT,
    endpoints=several(
        fields(
            port=TEXT,
            path=TEXT,
            scheme=one_of("http", "https"),
            interval=DURATION,
            scrapeTimeout=DURATION,
            authorization=fields(type=TEXT, credentials=KEY),
        )
    ),
)

RULE: Schema = {
    **fields(
        "expr",
        alert=TEXT,
        record=TEXT,
        expr=TEXT,
        labels=TEXTS,
        annotations=TEXTS,
        **{"for": DURATION, "keep_firing_for": DURATION},
    ),
    "oneOf": [{"required": ["alert"]}, {"required": ["record"]}],
}
PROMETHEUS_RULE = fields(groups=several(fields("name", name=TEXT, interval=DURATION, rules=several(RULE))))

HTTP_ROUTE = fields(
    parentRefs=several(fields("name", name=TEXT, namespace=TEXT, sectionName=TEXT, port=COUNT)),
    hostnames=several(TEXT),
    rules=several(
        fields(
            matches=several(fields(path=fields(type=one_of("Exact", "PathPrefix", "RegularExpression"), value=TEXT))),
            timeouts=fields(request=DURATION, backendRequest=DURATION),
            backendRefs=several(fields("name", name=TEXT, namespace=TEXT, port=COUNT, weight=COUNT)),
        )
    ),
)

SPECS: Mapping[str, Schema] = {
    "postgresql.cnpg.io/v1 Cluster": CLUSTER,
    "postgresql.cnpg.io/v1 Pooler": POOLER,
    "postgresql.cnpg.io/v1 ScheduledBackup": SCHEDULED_BACKUP,
    "barmancloud.cnpg.io/v1 ObjectStore": OBJECT_STORE,
    "monitoring.coreos.com/v1 ServiceMonitor": SERVICE_MONITOR,
    "monitoring.coreos.com/v1 PrometheusRule": PROMETHEUS_RULE,
    "gateway.networking.k8s.io/v1 HTTPRoute": HTTP_ROUTE,
}
"""By apiVersion and kind."""
