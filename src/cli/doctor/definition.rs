//! Checks the CustomResourceDefinition of Sync: it is served, and is the one of this program.

use serde_json::Value;

use super::super::version::DEFINITION;
use super::finding::Finding;
use crate::api;
use crate::cluster::{Connection, CrdComparison, Lookup, compare_definitions};

/// Name of the check.
const CHECK: &str = "definition";

pub(super) async fn check(connection: &Connection) -> anyhow::Result<Finding> {
    Ok(judge(&connection.look_up(DEFINITION).await, &api::definition()?))
}

fn judge(live: &Lookup, own: &Value) -> Finding {
    let live = match live {
        Lookup::Found(live) => live,
        Lookup::Missing => {
            let remedy = "install it: moorline crd | kubectl apply --server-side -f -";
            return Finding::error(CHECK, "there is no CustomResourceDefinition of Sync", remedy);
        }
        Lookup::Forbidden => {
            let remedy = "get the permission to get customresourcedefinitions";
            return Finding::unknown(CHECK, "you may not read the CustomResourceDefinition of Sync", remedy);
        }
        Lookup::Failed(cause) => {
            let message = format!("the CustomResourceDefinition of Sync cannot be read: {cause}");
            return Finding::unknown(CHECK, message, "try again");
        }
    };
    let conditions = live["status"]["conditions"].as_array();
    let is_established =
        |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
    if !conditions.into_iter().flatten().any(is_established) {
        let remedy = "look at its conditions: kubectl describe crd syncs.moorline.dev";
        return Finding::error(CHECK, "the CustomResourceDefinition of Sync is not served", remedy);
    }
    match compare_definitions(live, own) {
        CrdComparison::Same => Finding::ok(
            CHECK,
            "the CustomResourceDefinition of Sync is served, and is the one of this program",
        ),
        CrdComparison::Newer(version) => Finding::warning(
            CHECK,
            format!(
                "the CustomResourceDefinition of Sync is of Moorline {version}, which is newer than this program"
            ),
            format!("use moorline {version}"),
        ),
        CrdComparison::Different => Finding::warning(
            CHECK,
            "the CustomResourceDefinition of Sync differs from the one of this program: the API server drops fields that it \
             does not have",
            "if the daemon is of this version: moorline crd | kubectl apply --server-side --force-conflicts -f -",
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_definition_is_missing_unserved_different_or_the_same() {
        let own = api::definition().unwrap();
        let check = |live: &Lookup, level: Level, part: &str| {
            let found = judge(live, &own);
            assert!(found.level == level && found.text().contains(part), "{found:?}");
        };
        let served =
            json!([{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]);
        let live = |change: &dyn Fn(&mut Value)| {
            let mut live = own.clone();
            live["status"]["conditions"] = served.clone();
            change(&mut live);
            Lookup::Found(live)
        };
        check(&Lookup::Missing, Level::Error, "moorline crd | kubectl apply");
        check(&Lookup::Forbidden, Level::Unknown, "get customresourcedefinitions");
        check(&Lookup::Failed("no".into()), Level::Unknown, "cannot be read: no");
        check(&live(&|_| {}), Level::Ok, "is the one of this program");
        check(&live(&|live| live["status"] = json!({})), Level::Error, "is not served");
        check(&live(&|live| live["spec"]["versions"] = json!([])), Level::Warning, "--force-conflicts");
        let newer =
            |live: &mut Value| live["metadata"]["annotations"]["moorline.dev/version"] = "99.0.0".into();
        check(&live(&newer), Level::Warning, "use moorline 99.0.0");
    }
}
