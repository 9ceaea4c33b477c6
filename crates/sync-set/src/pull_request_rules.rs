//! Rules of a template whose Syncs apply pull requests.
//!
//! In: a SyncSet. Out: every field that must not be, or that is missing. A pull request is a text
//! of a stranger: nothing of a Secret may become a part of what it renders, and its objects are
//! written by an account that may do little.

use moorline_api::{SyncSet, ValuesKind};

use crate::generate::pull_request_generators;

/// Returns the errors of a template for pull requests.
pub(crate) fn check_template(set: &SyncSet) -> Vec<String> {
    if pull_request_generators(&set.spec).is_empty() {
        return Vec::new();
    }
    const TEMPLATE: &str = "spec.template.spec";
    let spec = &set.spec.template.spec;
    let mut errors = Vec::new();
    let account = spec.service_account_name.as_ref();
    if account.is_none_or(|account| Some(account) == set.spec.service_account_name.as_ref()) {
        errors.push(format!(
            "{TEMPLATE}.serviceAccountName: name a ServiceAccount for the Syncs of pull requests alone, not the one of the SyncSet: \
             a pull request is a text of others"
        ));
    }
    if spec.decryption.is_some() {
        errors.push(format!(
            "{TEMPLATE}.decryption: files of a pull request are not decrypted: its author could copy encrypted files from elsewhere"
        ));
    }
    let variables = spec.render.substitute.iter().flat_map(|substitute| &substitute.from);
    let values = spec.render.helm.iter().flat_map(|helm| &helm.values_from);
    for (field, mut kinds) in [
        (
            "substitute.from",
            Box::new(variables.map(|from| from.kind)) as Box<dyn Iterator<Item = ValuesKind>>,
        ),
        ("helm.valuesFrom", Box::new(values.map(|from| from.kind))),
    ] {
        if kinds.any(|kind| kind == ValuesKind::Secret) {
            errors.push(format!(
                "{TEMPLATE}.render.{field}: a pull request gets no values of Secrets, because it could write them into any object"
            ));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_template_for_pull_requests_has_an_account_of_its_own_and_no_secrets() {
        let secret = json!([{"kind": "Secret", "name": "a"}]);
        let map = json!([{"kind": "ConfigMap", "name": "a"}]);
        let cases: [(Value, &[&str]); 7] = [
            (json!({"serviceAccountName": "preview"}), &[]),
            (json!({}), &["serviceAccountName"]),
            (json!({"serviceAccountName": "deployer"}), &["serviceAccountName"]),
            (
                json!({"serviceAccountName": "preview", "decryption": {"sops": {"secretRef": {"name": "keys"}}}}),
                &["decryption"],
            ),
            (
                json!({"serviceAccountName": "preview", "render": {"substitute": {"from": secret}}}),
                &["render.substitute.from"],
            ),
            (
                json!({"serviceAccountName": "preview", "render": {"helm": {"valuesFrom": secret}}}),
                &["render.helm.valuesFrom"],
            ),
            (json!({"serviceAccountName": "preview", "render": {"substitute": {"from": map}}}), &[]),
        ];
        for (template, expect) in cases {
            let mut set = json!({
                "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet", "metadata": {"name": "previews"},
                "spec": {
                    "serviceAccountName": "deployer", "name": "'a'",
                    "generators": [{"pullRequests": {
                        "github": {"url": "https://api.github.com", "secretRef": {"name": "token"}}, "repository": "team/shop",
                    }}],
                    "template": {"spec": {"source": {"git": {"url": "https://git.example.com/team/shop.git"}}}},
                },
            });
            let given = template.as_object().unwrap().clone();
            set["spec"]["template"]["spec"].as_object_mut().unwrap().extend(given);
            let errors = check_template(&serde_json::from_value(set.clone()).unwrap());
            let fields: Vec<_> = errors.iter().filter_map(|error| error.split(": ").next()).collect();
            let expect: Vec<_> = expect.iter().map(|field| format!("spec.template.spec.{field}")).collect();
            assert_eq!(fields, expect, "{template}");
            set["spec"]["generators"] = json!([{"list": {"elements": [{}]}}]);
            assert!(check_template(&serde_json::from_value(set).unwrap()).is_empty());
        }
    }
}
