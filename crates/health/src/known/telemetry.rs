//! Monitoring, logging and dashboards.
//!
//! In: nothing.
//! Out: rules.

use super::super::Health;
use super::super::live::Live;
use super::super::sentence::of_are;
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{Fails, Waits};
use super::rule::Reading::{Busy, Heeds, Needs, Odd as Reads, Refused, Trouble, Word as Says};
use super::rule::Switch::{Is, True};
use super::rule::{Answer, Odd, Project, Rule, Silence, WORD, Word, reads, row, still};

const PROMETHEUS: Rule = reads(WhereWritten, &[Needs("Reconciled", Fails), Needs("Available", Waits)])
    .asleep(&[True("spec.paused")]);

/// Exactly one of these conditions is true at a time.
const STACK: Rule = reads(
    WhereWritten,
    &[Trouble(&["Failed", "Degraded", "ConfigurationError"]), Busy(&["Pending"]), Needs("Ready", Waits)],
)
.asleep(&[Is("spec.managementState", "Unmanaged")]);

/// Conditions of operators that are written in Ansible.
const ANSIBLE: Rule = reads(Nowhere, &[Trouble(&["Failure"]), Heeds("Successful", Waits)]);

const VICTORIA: Word = Word {
    at: "status.updateStatus",
    well: &["operational"],
    busy: &["expanding"],
    wrong: &["failed"],
    asleep: &["paused"],
    message: "status.reason",
    ..WORD
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "AWX Operator", rows: &[row("awx.ansible.com", &["AWX", "AWXBackup", "AWXRestore"], 30, ANSIBLE)] },
    Project { name: "Fluent Operator", rows: &[still("fluentbit.fluent.io", &["*"])] },
    Project { name: "Grafana Operator", rows: &[
        row("grafana.integreatly.org", &["Grafana"], 15, reads(Nowhere, &[
            Says(Word {
                at: "status.stageStatus",
                well: &["success"],
                busy: &["in progress"],
                wrong: &["failed"],
                message: "status.lastMessage",
                ..WORD
            }),
            Says(Word { at: "status.stage", well: &["complete"], open: true, ..WORD }),
        ])),
        row("grafana.integreatly.org", &[
            "GrafanaAlertRuleGroup", "GrafanaContactPoint", "GrafanaDashboard", "GrafanaDatasource", "GrafanaFolder",
            "GrafanaLibraryPanel", "GrafanaMuteTiming", "GrafanaNotificationPolicy", "GrafanaNotificationTemplate",
        ], 5, reads(WhereWritten, &[
            Trouble(&["InvalidSpec", "NotificationPolicyLoopDetected"]),
            Refused(&[
                "AlertGroupSynchronized", "ContactPointSynchronized", "DashboardSynchronized", "DatasourceSynchronized",
                "FolderSynchronized", "LibraryPanelSynchronized", "MuteTimingSynchronized", "NotificationPolicySynchronized",
                "NotificationTemplateSynchronized",
            ]),
            Busy(&["NoMatchingInstance", "NoMatchingFolder"]),
        ]).asleep(&[True("spec.suspend")])),
    ]},
    Project { name: "Jaeger Operator", rows: &[
        row("jaegertracing.io", &["Jaeger"], 15, reads(Nowhere, &[Says(Word { well: &["Running"], wrong: &["Failed"], ..WORD })])),
    ]},
    Project { name: "Kiali", rows: &[row("kiali.io", &["Kiali", "OSSMConsole"], 15, ANSIBLE)] },
    Project { name: "Loki and Tempo Operators", rows: &[
        row("loki.grafana.com", &["LokiStack"], 30, STACK),
        row("tempo.grafana.com", &["TempoStack", "TempoMonolithic"], 30, STACK),
        still("loki.grafana.com", &["AlertingRule", "RecordingRule", "RulerConfig"]),
    ]},
    Project { name: "OpenTelemetry Operator", rows: &[
        row("opentelemetry.io", &["OpenTelemetryCollector"], 15, reads(Nowhere, &[Reads(Odd {
            words: "`status.version` is there; `status.scale.statusReplicas` is complete where it is reported",
            answers: &[Answer::Progressing],
            judge: collector,
        })]).asleep(&[Is("spec.managementState", "unmanaged")])),
        still("opentelemetry.io", &["Instrumentation", "OpAMPBridge"]),
    ]},
    Project { name: "Prometheus Operator", rows: &[
        row("monitoring.coreos.com", &["Prometheus", "PrometheusAgent", "Alertmanager", "ThanosRuler"], 15, PROMETHEUS),
        still("monitoring.coreos.com", &[
            "ServiceMonitor", "PodMonitor", "Probe", "PrometheusRule", "ScrapeConfig", "AlertmanagerConfig",
        ]),
    ]},
    Project { name: "VictoriaMetrics Operator", rows: &[
        row("operator.victoriametrics.com", &[
            "VMSingle", "VMCluster", "VMAgent", "VMAlert", "VMAlertmanager", "VMAuth", "VLSingle", "VLCluster", "VLogs",
        ], 15, reads(WhereWritten, &[Says(VICTORIA)]).asleep(&[True("spec.paused")])),
        // Older versions report nothing about scrape configurations.
        row("operator.victoriametrics.com", &[
            "VMAlertmanagerConfig", "VMNodeScrape", "VMPodScrape", "VMProbe", "VMRule", "VMScrapeConfig", "VMServiceScrape",
            "VMStaticScrape", "VMUser",
        ], 5, reads(WhereWritten, &[Says(VICTORIA)]).silent(Silence::Fine)),
    ]},
];

/// Judges a text such as `2/3`: 2 of 3 replicas are ready. A sidecar has no replicas of its own.
fn collector(live: Live<'_>) -> Option<Health> {
    let ready = live.text(&["status", "scale", "statusReplicas"]).and_then(|text| text.split_once('/'));
    let counts = ready.and_then(|(ready, all)| Some((ready.parse::<u64>().ok()?, all.parse::<u64>().ok()?)));
    match counts {
        Some((ready, all)) if ready < all => {
            Some(Health::progressing(format!("{} ready", of_are(ready, all, "replica"))))
        }
        Some(_) => Some(Health::Healthy),
        None => live.text(&["status", "version"]).map(|_| Health::Healthy),
    }
}
