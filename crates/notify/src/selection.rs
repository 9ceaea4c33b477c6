//! A Notifier with its expressions compiled: which Syncs and transitions it hears of.
//!
//! In: the resource. Out: [`CompiledNotifier`], or every error in it.
//!
//! An expression sees the transition, never an object. Each evaluation has a limit on its steps; a
//! filter without a value lets the notification pass, and a message without one is the usual text.

use std::time::Duration;

use moorline_api::{
    ChangeCounts, DurationText, NotificationRecord, Notifier, NotifierSpec, NotifierTarget,
    PullRequestOptions, Transition, TransitionDetails,
};
use moorline_cel::{
    CelValue, Expression, ExpressionProblem, Kind, Language, StepBudget, Variable, evaluate, read,
};
use serde_json::{Value, json};

use crate::subject::Subject;
use crate::text::usual_text;

/// Maximum number of steps of one evaluation.
const MAX_STEPS: usize = 10_000;
/// Maximum number of characters of a message.
const MAX_TEXT: usize = 3_000;
/// Name that selects all namespaces.
const ALL: &str = "*";

/// The variables of expressions, in the order of their values.
const VARIABLES: [Variable; 7] = [
    Variable { name: "sync", kind: Kind::Any },
    Variable { name: "transition", kind: Kind::Any },
    Variable { name: "revision", kind: Kind::Any },
    Variable { name: "previousRevision", kind: Kind::Any },
    Variable { name: "counts", kind: Kind::Any },
    Variable { name: "reason", kind: Kind::Any },
    Variable { name: "message", kind: Kind::Any },
];

/// A kind of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Commit statuses on GitHub.
    Github,
    /// Commit statuses on GitLab.
    Gitlab,
    /// Commit statuses on Gitea or Forgejo.
    Gitea,
    /// A chat with incoming webhooks of Slack's form.
    Slack,
    /// Microsoft Teams.
    Teams,
    /// Alertmanager.
    Alertmanager,
    /// A generic webhook.
    Webhook,
    /// CloudEvents.
    CloudEvents,
}

impl Service {
    /// Returns the name of its field in the spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Gitea => "gitea",
            Self::Slack => "slack",
            Self::Teams => "teams",
            Self::Alertmanager => "alertmanager",
            Self::Webhook => "webhook",
            Self::CloudEvents => "cloudEvents",
        }
    }

    /// True if it shows the state of a commit.
    pub const fn is_commit_status(self) -> bool {
        matches!(self, Self::Github | Self::Gitlab | Self::Gitea)
    }
}

/// A Notifier that was read and checked.
#[derive(Debug, Clone)]
pub struct CompiledNotifier {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Box<str>,
    /// The generation of its spec.
    pub generation: Option<i64>,
    /// The service.
    pub service: Service,
    /// The URL and the Secret of the service.
    pub target: NotifierTarget,
    spec: NotifierSpec,
    filter: Option<Expression>,
    message: Option<Expression>,
    /// True if Syncs of other namespaces may be selected.
    is_of_daemon: bool,
}

impl CompiledNotifier {
    /// Checks a Notifier; `daemon` is the namespace of the daemon.
    pub fn compile(notifier: &Notifier, daemon: &str) -> Result<Self, Vec<String>> {
        let (spec, mut errors) = (&notifier.spec, Vec::new());
        let namespace = notifier.metadata.namespace.clone().unwrap_or_default();
        let mut compile = |field: &str, text: Option<&String>| {
            let text = text?;
            match read(text, Language::Small, &VARIABLES) {
                Ok((expression, _)) => Some(expression),
                Err(found) => {
                    let problem = found.into_iter().next().map(|error| match error.problem {
                        ExpressionProblem::Syntax(words) => words,
                        problem => problem.to_string(),
                    });
                    errors.push(format!("spec.{field}: {}", problem.unwrap_or_default()));
                    None
                }
            }
        };
        let filter = compile("filter", spec.filter.as_ref());
        let message = compile("message", spec.message.as_ref());
        let mut targets = targets(spec).into_iter();
        let target = match (targets.next(), targets.next()) {
            (Some(target), None) => Some(target),
            _ => {
                errors.push("spec: exactly one service is needed".to_owned());
                None
            }
        };
        if spec.throttle.as_ref().is_some_and(|throttle| throttle.duration().is_none()) {
            errors.push("spec.throttle: write a duration from 5s to 24h, such as 10m".to_owned());
        }
        let others = spec.syncs.iter().flat_map(|syncs| &syncs.namespaces).any(|it| **it != *namespace);
        if others && namespace != daemon {
            errors.push(format!(
                "spec.syncs.namespaces: only a Notifier in {daemon}, the namespace of the daemon, may name other namespaces"
            ));
        }
        let (Some((service, target)), true) = (target, errors.is_empty()) else { return Err(errors) };
        Ok(Self {
            is_of_daemon: namespace == daemon,
            namespace: namespace.into(),
            name: notifier.metadata.name.clone().unwrap_or_default().into(),
            uid: notifier.metadata.uid.clone().unwrap_or_default().into(),
            generation: notifier.metadata.generation,
            service,
            target: target.clone(),
            spec: spec.clone(),
            filter,
            message,
        })
    }

    /// Returns its name as records have it.
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Returns the time within which a transition is sent once.
    pub fn throttle(&self) -> Option<Duration> {
        self.spec.throttle.as_ref().and_then(DurationText::duration)
    }

    /// Returns the options of plans of pull requests, if it has them.
    pub fn pull_requests(&self) -> Option<&PullRequestOptions> {
        self.spec.pull_requests.as_ref().filter(|_| self.service.is_commit_status())
    }

    /// True if it sends nothing for now.
    pub fn is_suspended(&self) -> bool {
        self.spec.suspend
    }

    /// True if the transition is one of those that are sent.
    pub fn is_on(&self, transition: Transition) -> bool {
        self.spec.transitions.contains(&transition)
    }

    /// True if it has a text of its own.
    pub fn has_message(&self) -> bool {
        self.message.is_some()
    }

    /// True if the Sync is one of those that it hears of.
    pub fn selects(&self, subject: &Subject) -> bool {
        if self.is_suspended() {
            return false;
        }
        if self.service.is_commit_status()
            && !subject.repository.as_ref().is_some_and(|repository| repository.is_on(&self.target.url))
        {
            return false;
        }
        let syncs = self.spec.syncs.clone().unwrap_or_default();
        let is_named = |all: &[String], name: &str| all.iter().any(|one| one == name);
        let is_near = match syncs.namespaces.is_empty() {
            true => self.namespace == subject.namespace,
            false if self.is_of_daemon => {
                is_named(&syncs.namespaces, &subject.namespace) || is_named(&syncs.namespaces, ALL)
            }
            false => self.namespace == subject.namespace && is_named(&syncs.namespaces, &subject.namespace),
        };
        is_near
            && (syncs.names.is_empty() || is_named(&syncs.names, &subject.name))
            && syncs.match_labels.iter().all(|(key, value)| subject.labels.get(key) == Some(value))
    }

    /// True if the filter lets a transition pass.
    pub fn passes(&self, subject: &Subject, transition: Transition, details: &TransitionDetails) -> bool {
        let Some(filter) = &self.filter else { return true };
        let values = values(subject, transition, details);
        let found = evaluate(filter, &given(&values), true, &mut StepBudget::new(MAX_STEPS));
        found.and_then(|found| found.into_bool("the whole expression")).unwrap_or(true)
    }

    /// Returns the text of a notification.
    pub fn text(&self, subject: &Subject, record: &NotificationRecord) -> String {
        let details = record.details.clone().unwrap_or_default();
        let values = values(subject, record.transition, &details);
        let own = self.message.as_ref().and_then(|message| {
            match evaluate(message, &given(&values), false, &mut StepBudget::new(MAX_STEPS)) {
                Ok(CelValue::Text(text)) if !text.trim().is_empty() => Some(text.into_owned()),
                _ => None,
            }
        });
        let text = own.unwrap_or_else(|| usual_text(subject, record.transition, &details));
        text.chars().filter(|char| *char == '\n' || !char.is_control()).take(MAX_TEXT).collect()
    }
}

/// Returns the services of a spec.
fn targets(spec: &NotifierSpec) -> Vec<(Service, &NotifierTarget)> {
    let all = [
        (Service::Github, &spec.github),
        (Service::Gitlab, &spec.gitlab),
        (Service::Gitea, &spec.gitea),
        (Service::Slack, &spec.slack),
        (Service::Teams, &spec.teams),
        (Service::Alertmanager, &spec.alertmanager),
        (Service::Webhook, &spec.webhook),
        (Service::CloudEvents, &spec.cloud_events),
    ];
    all.into_iter().filter_map(|(service, target)| Some((service, target.as_ref()?))).collect()
}

/// Returns the values of the variables.
fn values(subject: &Subject, transition: Transition, details: &TransitionDetails) -> [Value; 7] {
    let ChangeCounts { created, changed, pruned, repaired } = details.changes;
    [
        json!({"cluster": subject.cluster, "namespace": subject.namespace, "name": subject.name, "labels": subject.labels}),
        json!(transition.to_string()),
        json!(details.revision),
        json!(details.previous_revision),
        json!({"created": created, "changed": changed, "pruned": pruned, "repaired": repaired, "objects": details.objects}),
        json!(details.reason),
        json!(details.message),
    ]
}

fn given(values: &[Value; 7]) -> Vec<CelValue<'_>> {
    values
        .iter()
        .zip(&VARIABLES)
        .map(|(value, variable)| CelValue::from_json(value, &variable.kind))
        .collect()
}
