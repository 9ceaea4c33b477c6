//! Search engines and related kinds.
//!
//! In: nothing.
//! Out: rules.

use super::super::Health;
use super::super::live::Live;
use super::super::sentence::told;
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{Fails, Waits};
use super::rule::Reading::{Count as Counts, Flag, Odd as Reads, Word as Says};
use super::rule::Switch::Annotation;
use super::rule::{Answer, COUNT, Count, Odd, Project, Switch, WORD, Word, reads, row};

/// Annotation that stops the operator from managing the object.
const UNMANAGED: [Switch; 1] = [Annotation("eck.k8s.elastic.co/managed", "false")];

/// Kibana and the others are red until their first Pod is ready, so red is progressing until the
/// deadline.
const HEALTH: Word =
    Word { at: "status.health", well: &["green"], busy: &["yellow", "red", "unknown"], ..WORD };

const ASSOCIATION: Word = Word {
    at: "status.associationStatus",
    well: &["Established"],
    busy: &["Pending", "Unknown"],
    wrong: &["Failed"],
    needed: false,
    ..WORD
};

const SHARDS: Odd = Odd {
    words: "`status.health` is `green`, or `yellow` with a single node",
    answers: &[Answer::Progressing, Answer::Degraded],
    judge: shards,
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Elastic Cloud on Kubernetes", rows: &[
        row("elasticsearch.k8s.elastic.co", &["Elasticsearch"], 30, reads(WhereWritten, &[
            Says(Word {
                well: &["Ready"],
                busy: &["ApplyingChanges", "MigratingData", "Stalled", "NodeShutdownStalled"],
                wrong: &["Invalid"],
                ..WORD
            }),
            Reads(SHARDS),
        ]).asleep(&UNMANAGED)),
        row("kibana.k8s.elastic.co", &["Kibana"], 15, reads(WhereWritten, &[
            Says(HEALTH),
            Says(ASSOCIATION),
            Counts(Count { have: "status.availableNodes", of: "spec.count", noun: "node", be: "available", ..COUNT }),
        ]).asleep(&UNMANAGED)),
        row("apm.k8s.elastic.co", &["ApmServer"], 15, reads(WhereWritten, &[Says(HEALTH), Says(ASSOCIATION)]).asleep(&UNMANAGED)),
        row("enterprisesearch.k8s.elastic.co", &["EnterpriseSearch"], 15, reads(WhereWritten, &[Says(HEALTH), Says(ASSOCIATION)]).asleep(&UNMANAGED)),
        row("maps.k8s.elastic.co", &["ElasticMapsServer"], 15, reads(WhereWritten, &[Says(HEALTH), Says(ASSOCIATION)]).asleep(&UNMANAGED)),
        row("beat.k8s.elastic.co", &["Beat"], 15, reads(WhereWritten, &[Says(HEALTH)]).asleep(&UNMANAGED)),
        row("agent.k8s.elastic.co", &["Agent"], 15, reads(WhereWritten, &[Says(HEALTH)]).asleep(&UNMANAGED)),
        row("logstash.k8s.elastic.co", &["Logstash"], 15, reads(WhereWritten, &[Says(HEALTH)]).asleep(&UNMANAGED)),
        row("stackconfigpolicy.k8s.elastic.co", &["StackConfigPolicy"], 10, reads(WhereWritten, &[Says(Word {
            well: &["Ready"],
            busy: &["ApplyingChanges", "Unknown"],
            wrong: &["Invalid", "Error", "Conflict"],
            ..WORD
        })])),
    ]},
    Project { name: "OpenSearch Operator", rows: &[
        row("opensearch.opster.io", &["OpenSearchCluster"], 30, reads(Nowhere, &[
            Says(Word { well: &["RUNNING"], busy: &["PENDING", "UPGRADING"], ..WORD }),
            Reads(SHARDS),
        ])),
    ]},
    Project { name: "Solr Operator", rows: &[
        row("solr.apache.org", &["SolrCloud"], 30, reads(Nowhere, &[
            Counts(Count { or: 3, noun: "node", ..COUNT }),
            Counts(Count { have: "status.upToDateNodes", or: 3, noun: "node", be: "up to date", ..COUNT }),
        ])),
        row("solr.apache.org", &["SolrBackup"], 60, reads(Nowhere, &[Flag("status.finished", Waits), Flag("status.successful", Fails)])),
        row("solr.apache.org", &["SolrPrometheusExporter"], 10, reads(Nowhere, &[Flag("status.ready", Waits)])),
    ]},
];

/// Judges the shards. A replica shard without a second node stays unassigned for good. During
/// changes shards move.
fn shards(live: Live<'_>) -> Option<Health> {
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
        other => Health::progressing(format!("its health is {}", told(other))),
    })
}
