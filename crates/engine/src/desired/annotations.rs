//! Annotation switches of an object in Git.

use super::error::DesiredStateError;
use super::hook::{self, Hook, HookRole, PhaseWave};
use moorline_api as api;
use moorline_core::did_you_mean::nearest_name;
use moorline_core::object::{GroupKind, Object};
use moorline_core::position::SourcePosition;

/// The parsed annotation switches of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnnotationSwitches {
    /// Wave in which the object is applied.
    pub wave: i32,
    /// The object is never changed.
    pub reconcile_disabled: bool,
    /// The object is created and never updated.
    pub apply_once: bool,
    /// The object is never pruned.
    pub prune_disabled: bool,
    /// The object may be deleted and recreated when an immutable field changes.
    pub recreate: bool,
    /// The object is a hook and runs in a phase of a sync.
    pub hook: Option<Hook>,
    /// The object is a hook that never runs here.
    pub skipped: bool,
    /// Position of the earliest hook that needs this object, if it is before the object's own.
    pub needed_by_hook_at: Option<PhaseWave>,
}

/// Maximum number of unknown annotations of one object that are reported.
const MAX_UNKNOWN: usize = 20;

const WAVE: &str = "a whole number such as -1 or 10";
const TIME: &str = "a time such as 2030-01-31T12:00:00Z";
const DISABLED: &str = "\"disabled\" or absent";
const ENABLED: &str = "\"enabled\" or absent";
const ONCE: &str = "\"once\" or absent";

impl AnnotationSwitches {
    /// Reads the annotations of an object; an invalid value is reported, never guessed.
    pub(super) fn read(
        object: &Object,
        place: impl Fn(&str, &str) -> SourcePosition,
        problems: &mut Vec<DesiredStateError>,
    ) -> Self {
        let mut reading = AnnotationReader { object, place, problems };
        reading.refuse_unknown();
        reading.refuse_misplaced();
        reading.refuse_no_time();
        // Only validated here: it took effect when the object was rendered.
        reading.substitutes();
        let kind = reading.hook();
        Self {
            wave: reading.wave(),
            reconcile_disabled: reading.switch(api::RECONCILE_ANNOTATION, "disabled", DISABLED),
            apply_once: reading.switch(api::APPLY_ANNOTATION, "once", ONCE),
            prune_disabled: reading.switch(api::PRUNE_ANNOTATION, "disabled", DISABLED),
            // A hook that replaces its previous run is still updated in place where possible.
            recreate: reading.switch(api::RECREATE_ANNOTATION, "enabled", ENABLED)
                || matches!(kind, HookRole::Hook(hook) if hook.replaces_previous),
            hook: match kind {
                HookRole::Hook(hook) => Some(hook),
                HookRole::Object | HookRole::Skipped => None,
            },
            skipped: kind == HookRole::Skipped,
            needed_by_hook_at: None,
        }
    }

    /// Returns the position of the object in the order of applies.
    pub fn phase_wave(&self) -> PhaseWave {
        let phase = self.hook.and_then(|hook| hook.phase).unwrap_or_default();
        let own = PhaseWave { phase, wave: self.wave };
        self.needed_by_hook_at.map_or(own, |early| early.min(own))
    }
}

struct AnnotationReader<'a, P> {
    object: &'a Object,
    place: P,
    problems: &'a mut Vec<DesiredStateError>,
}

impl<P: Fn(&str, &str) -> SourcePosition> AnnotationReader<'_, P> {
    fn refuse_unknown(&mut self) {
        let Some(annotations) = self.object.metadata("annotations").and_then(|found| found.as_object())
        else {
            return;
        };
        let is_unknown =
            |key: &&String| key.starts_with(api::KEY_PREFIX) && !api::ANNOTATIONS.contains(&key.as_str());
        for key in annotations.keys().filter(is_unknown).take(MAX_UNKNOWN) {
            let nearest = nearest_name(key, api::ANNOTATIONS);
            self.problems.push(DesiredStateError::UnknownAnnotation {
                place: (self.place)("annotations", key),
                key: key.clone(),
                nearest,
            });
        }
    }

    /// Reports annotations of ours that are used as labels, and those of Syncs on other objects:
    /// both would have no effect.
    fn refuse_misplaced(&mut self) {
        let labels = api::ANNOTATIONS.into_iter().filter(|key| self.object.label(key).is_some());
        // The only one that also works as a label.
        let labels = labels.filter(|key| *key != api::SUBSTITUTE_ANNOTATION);
        for key in labels.collect::<Vec<_>>() {
            self.misplaced("labels", key, "is an annotation; as a label it has no effect");
        }
        let kind = self.object.id.group_kind();
        let is_definition = kind == GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
        if !is_definition && self.object.annotation(api::VERSION_ANNOTATION).is_some() {
            let rule = "belongs on the CustomResourceDefinition of Syncs; here it has no effect";
            self.misplaced("annotations", api::VERSION_ANNOTATION, rule);
        }
        if kind == GroupKind::new("moorline.dev", "Sync") {
            return;
        }
        let of_syncs = [
            api::APPROVE_ANNOTATION,
            api::APPROVED_BY_ANNOTATION,
            api::DELETION_ANNOTATION,
            api::HOLD_BY_ANNOTATION,
            api::HOLD_REASON_ANNOTATION,
            api::HOLD_REVISION_ANNOTATION,
            api::MOVES_TO_ANNOTATION,
            api::REQUEST_ANNOTATION,
            api::REQUESTED_BY_ANNOTATION,
            api::SUSPEND_BY_ANNOTATION,
        ];
        for key in of_syncs {
            if self.object.annotation(key).is_some() {
                self.misplaced("annotations", key, "belongs on a Sync; here it has no effect");
            }
        }
    }

    fn misplaced(&mut self, field: &str, key: &'static str, rule: &'static str) {
        let place = (self.place)(field, key);
        self.problems.push(DesiredStateError::MisplacedAnnotation { place, key, rule });
    }

    fn substitutes(&mut self) {
        self.switch(api::SUBSTITUTE_ANNOTATION, "disabled", DISABLED);
        let key = api::SUBSTITUTE_ANNOTATION;
        if let Some(text) = self.object.label(key).filter(|text| *text != "disabled") {
            let (place, found) = ((self.place)("labels", key), text.to_owned());
            self.problems.push(DesiredStateError::InvalidAnnotation {
                place,
                key,
                expected: DISABLED,
                found,
            });
        }
    }

    fn refuse_no_time(&mut self) {
        if let Some(text) = self.object.annotation(api::PAUSE_ANNOTATION)
            && !is_time(text)
        {
            self.bad(api::PAUSE_ANNOTATION, TIME, text)
        }
    }

    fn hook(&mut self) -> HookRole {
        let object = self.object;
        match hook::read(|key| object.annotation(key)) {
            Ok(kind) => kind,
            Err((key, expected, found)) => {
                self.bad::<bool>(key, expected, found);
                HookRole::Object
            }
        }
    }

    fn wave(&mut self) -> i32 {
        // Helm's weights order its hooks and do not apply to other objects.
        let weight =
            self.object.annotation(api::HELM_HOOK_ANNOTATIONS[0]).map(|_| api::HELM_WEIGHT_ANNOTATION);
        [api::WAVE_ANNOTATION, api::ARGO_WAVE_ANNOTATION]
            .into_iter()
            .chain(weight)
            .find_map(|key| Some((key, self.object.annotation(key)?)))
            .map_or(0, |(key, text)| text.trim().parse().unwrap_or_else(|_| self.bad(key, WAVE, text)))
    }

    fn switch(&mut self, key: &'static str, on: &str, expected: &'static str) -> bool {
        match self.object.annotation(key) {
            None => false,
            Some(text) if text == on => true,
            Some(text) => self.bad(key, expected, text),
        }
    }

    fn bad<T: Default>(&mut self, key: &'static str, expected: &'static str, found: &str) -> T {
        let place = (self.place)("annotations", key);
        self.problems.push(DesiredStateError::InvalidAnnotation {
            place,
            key,
            expected,
            found: found.to_owned(),
        });
        T::default()
    }
}

/// True for the form of RFC 3339 times. The calendar date is validated when the time is used.
fn is_time(text: &str) -> bool {
    let form = |text: &str, form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                form => byte == form,
            })
    };
    let Some((start, rest)) = text.split_at_checked("0000-00-00T00:00:00".len()) else { return false };
    let zone = match rest.strip_prefix('.') {
        Some(rest) => rest.trim_start_matches(|char: char| char.is_ascii_digit()),
        None => rest,
    };
    form(start, "0000-00-00T00:00:00") && (zone == "Z" || form(zone, "+00:00") || form(zone, "-00:00"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use moorline_core::object::{ObjectId, Origin};

    fn read(annotations: Value) -> (AnnotationSwitches, Vec<String>) {
        let body = json!({"metadata": {"annotations": annotations}});
        let Value::Object(body) = body else { unreachable!("a literal mapping") };
        let origin = Origin { file: "a.yaml".into(), document: 0, line: 1, item: None };
        let id = ObjectId::new("", "ConfigMap", "", "a").unwrap();
        let object = Object { id, version: "v1".into(), body, origin };
        let place = |_: &str, _: &str| SourcePosition { file: "a.yaml".to_owned(), line: 4, column: 2 };
        let mut problems = Vec::new();
        let switches = AnnotationSwitches::read(&object, place, &mut problems);
        (switches, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn every_switch_is_read() {
        let none = AnnotationSwitches::default();
        let good = |annotations, expect| assert_eq!(read(annotations), (expect, Vec::new()));
        good(json!({}), none);
        good(json!({"other.dev/prune": "whatever"}), none);
        good(json!({"moorline.dev/prune": "disabled"}), AnnotationSwitches { prune_disabled: true, ..none });
        good(
            json!({"moorline.dev/reconcile": "disabled"}),
            AnnotationSwitches { reconcile_disabled: true, ..none },
        );
        good(json!({"moorline.dev/apply": "once"}), AnnotationSwitches { apply_once: true, ..none });
        good(json!({"moorline.dev/recreate": "enabled"}), AnnotationSwitches { recreate: true, ..none });
        good(json!({"moorline.dev/wave": "-3"}), AnnotationSwitches { wave: -3, ..none });
        good(json!({"argocd.argoproj.io/sync-wave": " 7 "}), AnnotationSwitches { wave: 7, ..none });
        let both = json!({"argocd.argoproj.io/sync-wave": "7", "moorline.dev/wave": "1"});
        good(both, AnnotationSwitches { wave: 1, ..none });
    }

    #[test]
    fn what_means_nothing_is_a_problem() {
        let bad = |annotations, expect: &str| assert_eq!(read(annotations).1, [expect]);
        bad(
            json!({"moorline.dev/prune": "false"}),
            "a.yaml:4:2: annotation moorline.dev/prune must be \"disabled\" or absent, found \"false\"",
        );
        bad(
            json!({"moorline.dev/wave": "1.5"}),
            "a.yaml:4:2: annotation moorline.dev/wave must be a whole number such as -1 or 10, found \"1.5\"",
        );
        bad(
            json!({"moorline.dev/purne": "disabled"}),
            "a.yaml:4:2: there is no annotation moorline.dev/purne; did you mean moorline.dev/prune?",
        );
    }
}
