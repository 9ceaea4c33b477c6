//! Reads the form of an action.
//!
//! In: the kind of action, and the fields of a form. Out: the action and the token of the session.
//! Texts are cut to the length that annotations show, and control characters are left out.

use super::{Action, ActionError, ActionKind};
use crate::object::ObjectId;
use crate::serve::page::{MAX_REASON, form_value, is_workload};

/// The most bytes of a form.
pub(in crate::serve) const MAX_FORM: usize = 8 << 10;

/// Returns the action and the token.
pub(in crate::serve) fn parse_form(kind: ActionKind, form: &str) -> Result<(Action, String), ActionError> {
    let text = |name: &str| -> Option<String> {
        let value = form_value(form, name)?;
        let text: String = value.trim().chars().filter(|it| !it.is_control()).collect();
        Some(text).filter(|text| !text.is_empty())
    };
    let needed = |name: &str| {
        text(name).ok_or_else(|| ActionError::Invalid(format!("the field {name} of the form is empty")))
    };
    let action = match kind {
        ActionKind::Sync => Action::Sync,
        ActionKind::Suspend => Action::Suspend,
        ActionKind::Resume => Action::Resume,
        ActionKind::Approve => Action::Approve(needed("hash")?),
        ActionKind::Rollback => Action::Rollback {
            revision: needed("revision")?,
            reason: needed("reason")?.chars().take(MAX_REASON).collect(),
        },
        ActionKind::Release => Action::Release(needed("revision")?),
        ActionKind::Retry => Action::Retry,
        ActionKind::Restart => Action::Restart(workload(&needed("object")?)?),
    };
    Ok((action, text("csrf").unwrap_or_default()))
}

/// The workload of an id; only these have Pods that a change of their template replaces.
fn workload(text: &str) -> Result<ObjectId, ActionError> {
    let wrong = |text: &str| {
        ActionError::Invalid(format!(
            "{text}: only a Deployment, a StatefulSet or a DaemonSet can be restarted"
        ))
    };
    let id = ObjectId::parse(text).ok_or_else(|| wrong("the object is not known"))?;
    if is_workload(&id) { Ok(id) } else { Err(wrong(&id.to_string())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_what_its_action_needs() {
        let long = format!("revision=main%401&reason={}", "x".repeat(300));
        let rollback =
            |revision: &str, reason: String| Action::Rollback { revision: revision.to_owned(), reason };
        let web = ObjectId::parse("apps/Deployment|shop/web").unwrap();
        for (kind, form, expect) in [
            (ActionKind::Sync, "csrf=ab", Ok(Action::Sync)),
            (ActionKind::Approve, "hash=abc", Ok(Action::Approve("abc".to_owned()))),
            (ActionKind::Approve, "hash=+", Err("hash")),
            (
                ActionKind::Rollback,
                "revision=main%401&reason=too+slow%0a",
                Ok(rollback("main@1", "too slow".to_owned())),
            ),
            (ActionKind::Rollback, &long, Ok(rollback("main@1", "x".repeat(MAX_REASON)))),
            (ActionKind::Rollback, "revision=main%401", Err("reason")),
            (ActionKind::Release, "revision=main%401", Ok(Action::Release("main@1".to_owned()))),
            (ActionKind::Release, "", Err("revision")),
            (ActionKind::Restart, "object=apps%2FDeployment%7Cshop%2Fweb", Ok(Action::Restart(web))),
            (ActionKind::Restart, "object=%2FSecret%7Cshop%2Fweb", Err("only a Deployment")),
            (ActionKind::Restart, "object=web", Err("only a Deployment")),
        ] {
            match (parse_form(kind, form), expect) {
                (Ok((found, _)), Ok(expect)) => assert_eq!(found, expect, "{form}"),
                (Err(refused), Err(part)) => assert!(refused.to_string().contains(part), "{refused}"),
                (found, expect) => panic!("{form}: {found:?} and not {expect:?}"),
            }
        }
        assert_eq!(parse_form(ActionKind::Sync, "csrf=ab").unwrap().1, "ab");
    }
}
