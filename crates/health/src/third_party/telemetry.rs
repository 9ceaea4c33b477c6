//! Monitoring, logging and dashboards.
//!
//! In: nothing.
//! Out: rules.

use super::super::Health;
use super::rule::Check::{
    Custom as Reads, FailedIfFalse, FailedIfTrue, IfReported, Phase as Reporting, ProgressingIfTrue, Required,
};
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{Fails, Waits};
use super::rule::Switch::{Is, True};
use super::rule::{
    CustomCheck, MissingStatus, PHASE_DEFAULTS, PhaseCheck, Project, Rule, Verdict, kind_rule, no_status,
    status_rule,
};
use crate::message::count_of_are;
use crate::object_view::ObjectView;

const PROMETHEUS: Rule =
    status_rule(WhereWritten, &[Required("Reconciled", Fails), Required("Available", Waits)])
        .with_suspended_by(&[True("spec.paused")]);

/// Exactly one of these conditions is true at a time.
const STACK: Rule = status_rule(
    WhereWritten,
    &[
        FailedIfTrue(&["Failed", "Degraded", "ConfigurationError"]),
        ProgressingIfTrue(&["Pending"]),
        Required("Ready", Waits),
    ],
)
.with_suspended_by(&[Is("spec.managementState", "Unmanaged")]);

/// Conditions of operators that are written in Ansible.
const ANSIBLE: Rule = status_rule(Nowhere, &[FailedIfTrue(&["Failure"]), IfReported("Successful", Waits)]);

const VICTORIA: PhaseCheck = PhaseCheck {
    path: "status.updateStatus",
    healthy: &["operational"],
    progressing: &["expanding"],
    failed: &["failed"],
    suspended: &["paused"],
    message: "status.reason",
    ..PHASE_DEFAULTS
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "AWX Operator", rows: &[kind_rule("awx.ansible.com", &["AWX", "AWXBackup", "AWXRestore"], 30, ANSIBLE)] },
    Project { name: "Fluent Operator", rows: &[no_status("fluentbit.fluent.io", &["*"])] },
    Project { name: "Grafana Operator", rows: &[
        kind_rule("grafana.integreatly.org", &["Grafana"], 15, status_rule(Nowhere, &[
            Reporting(PhaseCheck {
                path: "status.stageStatus",
                healthy: &["success"],
                progressing: &["in progress"],
                failed: &["failed"],
                message: "status.lastMessage",
                ..PHASE_DEFAULTS
            }),
            Reporting(PhaseCheck { path: "status.stage", healthy: &["complete"], is_free_text: true, ..PHASE_DEFAULTS }),
        ])),
        kind_rule("grafana.integreatly.org", &[
            "GrafanaAlertRuleGroup", "GrafanaContactPoint", "GrafanaDashboard", "GrafanaDatasource", "GrafanaFolder",
            "GrafanaLibraryPanel", "GrafanaMuteTiming", "GrafanaNotificationPolicy", "GrafanaNotificationTemplate",
        ], 5, status_rule(WhereWritten, &[
            FailedIfTrue(&["InvalidSpec", "NotificationPolicyLoopDetected"]),
            FailedIfFalse(&[
                "AlertGroupSynchronized", "ContactPointSynchronized", "DashboardSynchronized", "DatasourceSynchronized",
                "FolderSynchronized", "LibraryPanelSynchronized", "MuteTimingSynchronized", "NotificationPolicySynchronized",
                "NotificationTemplateSynchronized",
            ]),
            ProgressingIfTrue(&["NoMatchingInstance", "NoMatchingFolder"]),
        ]).with_suspended_by(&[True("spec.suspend")])),
    ]},
    Project { name: "Jaeger Operator", rows: &[
        kind_rule("jaegertracing.io", &["Jaeger"], 15, status_rule(Nowhere, &[Reporting(PhaseCheck { healthy: &["Running"], failed: &["Failed"], ..PHASE_DEFAULTS })])),
    ]},
    Project { name: "Kiali", rows: &[kind_rule("kiali.io", &["Kiali", "OSSMConsole"], 15, ANSIBLE)] },
    Project { name: "Loki and Tempo Operators", rows: &[
        kind_rule("loki.grafana.com", &["LokiStack"], 30, STACK),
        kind_rule("tempo.grafana.com", &["TempoStack", "TempoMonolithic"], 30, STACK),
        no_status("loki.grafana.com", &["AlertingRule", "RecordingRule", "RulerConfig"]),
    ]},
    Project { name: "OpenTelemetry Operator", rows: &[
        kind_rule("opentelemetry.io", &["OpenTelemetryCollector"], 15, status_rule(Nowhere, &[Reads(CustomCheck {
            description: "`status.version` is set; `status.scale.statusReplicas` is complete where it is reported",
            verdicts: &[Verdict::Progressing],
            judge: collector,
        })]).with_suspended_by(&[Is("spec.managementState", "unmanaged")])),
        no_status("opentelemetry.io", &["Instrumentation", "OpAMPBridge"]),
    ]},
    Project { name: "Prometheus Operator", rows: &[
        kind_rule("monitoring.coreos.com", &["Prometheus", "PrometheusAgent", "Alertmanager", "ThanosRuler"], 15, PROMETHEUS),
        no_status("monitoring.coreos.com", &[
            "ServiceMonitor", "PodMonitor", "Probe", "PrometheusRule", "ScrapeConfig", "AlertmanagerConfig",
        ]),
    ]},
    Project { name: "VictoriaMetrics Operator", rows: &[
        kind_rule("operator.victoriametrics.com", &[
            "VMSingle", "VMCluster", "VMAgent", "VMAlert", "VMAlertmanager", "VMAuth", "VLSingle", "VLCluster", "VLogs",
        ], 15, status_rule(WhereWritten, &[Reporting(VICTORIA)]).with_suspended_by(&[True("spec.paused")])),
        // Older versions report nothing about scrape configurations.
        kind_rule("operator.victoriametrics.com", &[
            "VMAlertmanagerConfig", "VMNodeScrape", "VMPodScrape", "VMProbe", "VMRule", "VMScrapeConfig", "VMServiceScrape",
            "VMStaticScrape", "VMUser",
        ], 5, status_rule(WhereWritten, &[Reporting(VICTORIA)]).with_missing_status(MissingStatus::Healthy)),
    ]},
];

/// Judges a text such as `2/3`: 2 of 3 replicas are ready. A sidecar has no replicas of its own.
fn collector(live: ObjectView<'_>) -> Option<Health> {
    let ready = live.text(&["status", "scale", "statusReplicas"]).and_then(|text| text.split_once('/'));
    let counts = ready.and_then(|(ready, all)| Some((ready.parse::<u64>().ok()?, all.parse::<u64>().ok()?)));
    match counts {
        Some((ready, all)) if ready < all => {
            Some(Health::progressing(format!("{} ready", count_of_are(ready, all, "replica"))))
        }
        Some(_) => Some(Health::Healthy),
        None => live.text(&["status", "version"]).map(|_| Health::Healthy),
    }
}
