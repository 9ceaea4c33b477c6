//! Search engines and related kinds.
//!
//! In: nothing.
//! Out: rules.

use super::super::Health;
use super::rule::Check::{BoolField, Custom as Reads, Phase as Reporting, Reached as Counts};
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{Fails, Waits};
use super::rule::Switch::Annotation;
use super::rule::{
    COUNT_DEFAULTS, CountCheck, CustomCheck, PHASE_DEFAULTS, PhaseCheck, Project, Switch, Verdict, kind_rule,
    status_rule,
};
use crate::message::quote;
use crate::object_view::ObjectView;

/// Annotation that stops the operator from managing the object.
const UNMANAGED: [Switch; 1] = [Annotation("eck.k8s.elastic.co/managed", "false")];

/// Kibana and the others are red until their first Pod is ready, so red is progressing until the
/// deadline.
const HEALTH: PhaseCheck = PhaseCheck {
    path: "status.health",
    healthy: &["green"],
    progressing: &["yellow", "red", "unknown"],
    ..PHASE_DEFAULTS
};

const ASSOCIATION: PhaseCheck = PhaseCheck {
    path: "status.associationStatus",
    healthy: &["Established"],
    progressing: &["Pending", "Unknown"],
    failed: &["Failed"],
    needed: false,
    ..PHASE_DEFAULTS
};

const SHARDS: CustomCheck = CustomCheck {
    description: "`status.health` is `green`, or `yellow` with a single node",
    verdicts: &[Verdict::Progressing, Verdict::Degraded],
    judge: shards,
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Elastic Cloud on Kubernetes", rows: &[
        kind_rule("elasticsearch.k8s.elastic.co", &["Elasticsearch"], 30, status_rule(WhereWritten, &[
            Reporting(PhaseCheck {
                healthy: &["Ready"],
                progressing: &["ApplyingChanges", "MigratingData", "Stalled", "NodeShutdownStalled"],
                failed: &["Invalid"],
                ..PHASE_DEFAULTS
            }),
            Reads(SHARDS),
        ]).with_suspended_by(&UNMANAGED)),
        kind_rule("kibana.k8s.elastic.co", &["Kibana"], 15, status_rule(WhereWritten, &[
            Reporting(HEALTH),
            Reporting(ASSOCIATION),
            Counts(CountCheck { actual: "status.availableNodes", wanted: "spec.count", noun: "node", be: "available", ..COUNT_DEFAULTS }),
        ]).with_suspended_by(&UNMANAGED)),
        kind_rule("apm.k8s.elastic.co", &["ApmServer"], 15, status_rule(WhereWritten, &[Reporting(HEALTH), Reporting(ASSOCIATION)]).with_suspended_by(&UNMANAGED)),
        kind_rule("enterprisesearch.k8s.elastic.co", &["EnterpriseSearch"], 15, status_rule(WhereWritten, &[Reporting(HEALTH), Reporting(ASSOCIATION)]).with_suspended_by(&UNMANAGED)),
        kind_rule("maps.k8s.elastic.co", &["ElasticMapsServer"], 15, status_rule(WhereWritten, &[Reporting(HEALTH), Reporting(ASSOCIATION)]).with_suspended_by(&UNMANAGED)),
        kind_rule("beat.k8s.elastic.co", &["Beat"], 15, status_rule(WhereWritten, &[Reporting(HEALTH)]).with_suspended_by(&UNMANAGED)),
        kind_rule("agent.k8s.elastic.co", &["Agent"], 15, status_rule(WhereWritten, &[Reporting(HEALTH)]).with_suspended_by(&UNMANAGED)),
        kind_rule("logstash.k8s.elastic.co", &["Logstash"], 15, status_rule(WhereWritten, &[Reporting(HEALTH)]).with_suspended_by(&UNMANAGED)),
        kind_rule("stackconfigpolicy.k8s.elastic.co", &["StackConfigPolicy"], 10, status_rule(WhereWritten, &[Reporting(PhaseCheck {
            healthy: &["Ready"],
            progressing: &["ApplyingChanges", "Unknown"],
            failed: &["Invalid", "Error", "Conflict"],
            ..PHASE_DEFAULTS
        })])),
    ]},
    Project { name: "OpenSearch Operator", rows: &[
        kind_rule("opensearch.opster.io", &["OpenSearchCluster"], 30, status_rule(Nowhere, &[
            Reporting(PhaseCheck { healthy: &["RUNNING"], progressing: &["PENDING", "UPGRADING"], ..PHASE_DEFAULTS }),
            Reads(SHARDS),
        ])),
    ]},
    Project { name: "Solr Operator", rows: &[
        kind_rule("solr.apache.org", &["SolrCloud"], 30, status_rule(Nowhere, &[
            Counts(CountCheck { default_wanted: 3, noun: "node", ..COUNT_DEFAULTS }),
            Counts(CountCheck { actual: "status.upToDateNodes", default_wanted: 3, noun: "node", be: "up to date", ..COUNT_DEFAULTS }),
        ])),
        kind_rule("solr.apache.org", &["SolrBackup"], 60, status_rule(Nowhere, &[BoolField("status.finished", Waits), BoolField("status.successful", Fails)])),
        kind_rule("solr.apache.org", &["SolrPrometheusExporter"], 10, status_rule(Nowhere, &[BoolField("status.ready", Waits)])),
    ]},
];

/// Judges the shards. A replica shard without a second node stays unassigned for good. During
/// changes shards move.
fn shards(live: ObjectView<'_>) -> Option<Health> {
    let health = live.text(&["status", "health"])?;
    let of = |list: &str, count: &str| -> u64 {
        let sets = live.items(&["spec", list]).iter();
        sets.filter_map(|set| set.get(count)?.as_u64()).fold(0, u64::saturating_add)
    };
    let nodes = of("nodeSets", "count").saturating_add(of("nodePools", "replicas"));
    let at_rest = matches!(live.text(&["status", "phase"]), Some("Ready" | "RUNNING"));
    Some(match health {
        "green" => Health::Healthy,
        "yellow" if nodes == 1 => Health::Healthy,
        "yellow" => Health::progressing("its health is yellow: copies of shards are missing"),
        "red" if at_rest => Health::degraded("its health is red: shards are missing"),
        other => Health::progressing(format!("its health is {}", quote(other))),
    })
}
