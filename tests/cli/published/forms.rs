//! The forms of issues have what GitHub needs to show them.
//!
//! In: `.github/ISSUE_TEMPLATE`. Out: nothing, or the field that is missing.

use std::collections::BTreeSet;

use serde_yaml::Value;

use super::{names, root, text};

/// Kinds of fields that a person fills in.
const FIELDS: [&str; 4] = ["checkboxes", "dropdown", "input", "textarea"];

#[test]
fn every_form_can_be_shown() {
    let forms = names(".github/ISSUE_TEMPLATE", ".yml");
    assert_eq!(forms, ["bug.yml", "config.yml", "feature.yml", "question.yml"]);
    for name in forms.iter().filter(|name| *name != "config.yml") {
        let form: Value =
            serde_yaml::from_str(&text(&format!(".github/ISSUE_TEMPLATE/{name}"))).expect("a form is YAML");
        assert_eq!(faults(&form), Vec::<String>::new(), "{name}");
    }
    assert!(root().join(".github/pull_request_template.md").exists());
}

/// Fields that a form lacks.
fn faults(form: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let keys = ["name", "description"].into_iter().filter(|key| !word(&form[*key]));
    let mut faults: Vec<String> = keys.map(str::to_owned).collect();
    let mut ids = BTreeSet::new();
    let mut required = 0;
    for field in form["body"].as_sequence().into_iter().flatten() {
        let kind = field["type"].as_str().unwrap_or_default();
        let attributes = &field["attributes"];
        if kind == "markdown" {
            faults.extend((!word(&attributes["value"])).then(|| "a text without its value".to_owned()));
            continue;
        }
        let id = field["id"].as_str().unwrap_or_default();
        let chosen = ["checkboxes", "dropdown"].contains(&kind);
        let has_options = attributes["options"].as_sequence().is_some_and(|options| !options.is_empty());
        let is_whole = FIELDS.contains(&kind) && word(&attributes["label"]) && chosen == has_options;
        if !is_whole || id.is_empty() || !ids.insert(id.to_owned()) {
            faults.push(format!("{kind} {id}"));
        }
        required += u32::from(field["validations"]["required"].as_bool() == Some(true));
    }
    faults.extend((required == 0).then(|| "a required field".to_owned()));
    faults
}

#[test]
fn a_field_that_is_not_whole_is_found() {
    let form =
        |body: &str| serde_yaml::from_str(&format!("name: A\ndescription: B.\nbody:\n{body}")).expect("YAML");
    let required = "  - {type: input, id: a, attributes: {label: A}, validations: {required: true}}\n";
    assert_eq!(faults(&form(required)), Vec::<String>::new());
    assert_eq!(faults(&form(&required.repeat(2))), ["input a"]);
    assert_eq!(
        faults(&form(&format!("{required}  - {{type: dropdown, id: b, attributes: {{label: B}}}}\n"))),
        ["dropdown b"]
    );
    assert_eq!(faults(&form("  - {type: markdown, attributes: {value: x}}\n")), ["a required field"]);
}
