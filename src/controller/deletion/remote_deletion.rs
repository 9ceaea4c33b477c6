//! Deletes the objects of a Sync that live in another cluster than the Sync.
//!
//! In: a Sync that is being deleted. Out: the objects that stay.
//!
//! The deletion waits without end for a cluster that does not answer or refuses the access: only a
//! person may decide to leave its objects. The end of the Sync's own namespace leaves them as well.

use tokio::time::{sleep, timeout_at};

use super::orphans::Orphans;
use super::{DeletionContext, GRACE, delete, status_texts, terminating_parent};
use crate::clock;
use crate::controller::chance;
use crate::controller::spec::ValidatedSpec;

/// Reasons of objects that are waited for.
const PASSING: [&str; 2] = ["Timeout", "Forbidden"];

/// Text about a delete hook that failed, which a person has to see to.
const HOOK_FAILED: &str = "a delete hook failed or was not done in time, so nothing is deleted (HookFailed); it runs again once its object there is deleted";

/// Deletes the objects, and returns those that stay.
///
/// # Guarantees
///
/// No object stays because the cluster does not answer, refuses a request, or takes too long.
pub(super) async fn delete_remote(going: &DeletionContext<'_>, valid_spec: &ValidatedSpec) -> Orphans {
    let (context, name) = (going.context, going.resource_recorder.name());
    let (mut pauses, first) = (context.pauses().cluster, clock::now() + valid_spec.timeout);
    let _ = timeout_at(first.into(), context.peers.wait_for_dependents(name, GRACE)).await;
    loop {
        if let Ok(Some(why)) = terminating_parent(context, name).await {
            return Orphans::all(None, name, why);
        }
        let until = clock::now() + valid_spec.timeout;
        let open = match delete(going, valid_spec, until).await {
            Ok(orphans) => match still_open(&orphans) {
                None => return orphans,
                Some(open) => open,
            },
            Err(failure) => failure.to_string(),
        };
        going.report_status(status_texts::away(name, &open));
        sleep(pauses.failed(chance())).await;
    }
}

/// Returns the reason to try again, if the objects that are left do not stay for good.
fn still_open(orphans: &Orphans) -> Option<String> {
    let open = orphans.objects.iter().find(|(_, why)| PASSING.contains(why));
    match (open, orphans.all) {
        (Some((id, why)), _) => Some(format!("{id} is not deleted yet ({why})")),
        (None, Some("HookFailed")) => Some(HOOK_FAILED.to_owned()),
        (None, Some(why)) => Some(format!("nothing could be deleted ({why})")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ObjectId;

    #[test]
    fn only_what_stays_for_good_ends_the_deletion() {
        let id = ObjectId::parse("/ConfigMap|shop/a").unwrap();
        for (why, all, expect) in [
            (None, None, false),
            (Some("Protected"), None, false),
            (Some("Timeout"), None, true),
            (Some("Forbidden"), None, true),
            (None, Some("HooksUnknown"), true),
            (None, Some("HookFailed"), true),
            (Some("Protected"), Some("Unseen"), true),
        ] {
            let objects = why.map(|why| (id.clone(), why)).into_iter().collect();
            assert_eq!(still_open(&Orphans { objects, all }).is_some(), expect, "{why:?} {all:?}");
        }
    }
}
