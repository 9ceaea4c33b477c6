//! Converts health expressions of Flux to health rules of a Sync.
//!
//! In: `healthCheckExprs` of a Kustomization or a HelmRelease, whose variables are the fields of an
//! object. Out: `health.rules`, whose variable is the whole object, in the order of Flux.

use serde_json::{Value, json};

use super::sync_builder::{SyncBuilder, text};

/// Fields of objects that expressions use as variables.
const VARIABLES: [&str; 6] = ["apiVersion", "data", "kind", "metadata", "spec", "status"];

/// The most rules of a Sync, and the most bytes of an expression.
const MAX: (usize, usize) = (32, 2048);

/// An object that its controller has not seen since its last change is progressing for Flux.
const UNSEEN: &str = "(has(object.status.observedGeneration) && object.status.observedGeneration != object.metadata.generation)";

/// Converts the health expressions.
pub(super) fn convert_health_expressions(spec: &Value, draft: &mut SyncBuilder) {
    let mut rules = Vec::new();
    for (at, entry) in spec["healthCheckExprs"].as_array().into_iter().flatten().enumerate() {
        match rule(entry).filter(|_| rules.len() < MAX.0) {
            Some(rule) => rules.push(rule),
            None => draft.mark_lost(
                format!("spec.healthCheckExprs[{at}]"),
                "this rule is too long, or names a variable like a field: write it as health.rules, in which the object is the variable object",
            ),
        }
    }
    if !rules.is_empty() {
        draft.spec["health"]["rules"] = rules.into();
    }
}

fn rule(entry: &Value) -> Option<Value> {
    let version = text(entry, "/apiVersion");
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let expression = |field: &str| match text(entry, &format!("/{field}")) {
        "" => Some(None),
        written => qualify(written).map(Some),
    };
    let (current, failed, running) =
        (expression("current")??, expression("failed")?, expression("inProgress")?);
    // Flux asks first if the object is progressing, and a Sync if it is degraded.
    let running = match running {
        Some(running) => format!("{UNSEEN} || ({running})"),
        None => UNSEEN.to_owned(),
    };
    let mut rule = json!({"group": group, "kind": text(entry, "/kind"), "healthy": current});
    if let Some(failed) = failed {
        rule["degraded"] = format!("!({running}) && ({failed})").into();
    }
    rule["progressing"] = running.into();
    let fits = |field: &str| text(&rule, &format!("/{field}")).len() <= MAX.1;
    ["healthy", "degraded", "progressing"].into_iter().all(fits).then_some(rule)
}

/// Writes `object.` before each variable that is a field of the object; none if the expression
/// gives such a name to a variable of its own, or has a text that is not closed.
fn qualify(expression: &str) -> Option<String> {
    let mut written = String::with_capacity(expression.len());
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '\'' | '"' => text_end(rest, is_raw(&written))?,
            first if first.is_ascii_alphabetic() || first == '_' => {
                rest.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(rest.len())
            }
            first => first.len_utf8(),
        };
        let (token, after) = rest.split_at(end);
        if VARIABLES.contains(&token) && !written.trim_end().ends_with('.') {
            // The first argument of a macro is the name of a variable.
            let is_declared = written.trim_end().ends_with('(') && after.trim_start().starts_with(',');
            let is_key = written.trim_end().ends_with(['{', ',']) && after.trim_start().starts_with(':');
            if is_declared || is_key {
                return None;
            }
            written.push_str("object.");
        }
        written.push_str(token);
        rest = after;
    }
    Some(written)
}

/// True if a text begins here whose backslashes are no escapes.
fn is_raw(before: &str) -> bool {
    let word =
        before.rsplit(|char: char| !char.is_ascii_alphanumeric() && char != '_').next().unwrap_or_default();
    ["r", "R", "br", "rb", "bR", "Rb", "Br", "rB", "BR", "RB"].contains(&word)
}

/// Returns the number of bytes of the text that begins here.
fn text_end(rest: &str, is_raw: bool) -> Option<usize> {
    let quote = rest.get(..3).filter(|it| ["'''", "\"\"\""].contains(it)).or_else(|| rest.get(..1))?;
    let mut at = quote.len();
    while let Some(left) = rest.get(at..).filter(|left| !left.is_empty()) {
        if left.starts_with(quote) {
            return Some(at + quote.len());
        }
        let escaped = if left.starts_with('\\') && !is_raw { 1 } else { 0 };
        at += left.chars().take(1 + escaped).map(char::len_utf8).sum::<usize>();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_fields_of_the_object() {
        for (written, expect) in [
            ("status.phase == 'ready'", Some("object.status.phase == 'ready'")),
            (
                "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')",
                Some("object.status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')"),
            ),
            ("has(status.a) && spec . b", Some("has(object.status.a) && object.spec . b")),
            ("data['status.x'] == \"it's spec\"", Some("object.data['status.x'] == \"it's spec\"")),
            (r"r'\' == metadata.name", Some(r"r'\' == object.metadata.name")),
            (r"'\' status' == kind", Some(r"'\' status' == object.kind")),
            ("'''a' status''' == mystatus", Some("'''a' status''' == mystatus")),
            ("status.all(status, status.a)", None),
            ("'open", None),
        ] {
            assert_eq!(qualify(written).as_deref(), expect, "{written}");
        }
    }

    #[test]
    fn a_rule_keeps_the_order_of_flux() {
        let of = |spec: Value| {
            let sync = crate::api::SyncName::new("moorline", "shop");
            let mut draft = SyncBuilder::new(crate::adopt::RequestedSync { sync, secret: None });
            convert_health_expressions(&json!({"healthCheckExprs": [spec]}), &mut draft);
            (draft.spec["health"]["rules"][0].clone(), draft.lost.len())
        };
        let (rule, lost) = of(json!({"apiVersion": "example.com/v1", "kind": "Shop", "current": "status.a",
            "failed": "status.b", "inProgress": "status.c"}));
        let running = format!("{UNSEEN} || (object.status.c)");
        let expect = json!({"group": "example.com", "kind": "Shop", "healthy": "object.status.a",
            "degraded": format!("!({running}) && (object.status.b)"), "progressing": running});
        assert_eq!((rule, lost), (expect, 0));
        let (rule, _) = of(json!({"apiVersion": "v1", "kind": "Pod", "current": "status.a"}));
        assert_eq!((&rule["group"], &rule["degraded"]), (&json!(""), &Value::Null));
        for wrong in [
            json!({"apiVersion": "v1", "kind": "Pod"}),
            json!({"apiVersion": "v1", "kind": "Pod", "current": "'"}),
            json!({"apiVersion": "v1", "kind": "Pod", "current": "a".repeat(3000)}),
        ] {
            assert_eq!(of(wrong).1, 1);
        }
    }
}
