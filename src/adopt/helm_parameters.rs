//! Converts single values of an Application's chart to inline values of a Sync.
//!
//! In: `helm.parameters`, and the inline values. Out: the values with those parameters in them, as
//! helm's `--set` would set them, or a reason why they would differ.

use serde_json::{Map, Value};

use super::sync_builder::{SyncBuilder, text};

/// Sets the parameters in the values, in their order.
pub(super) fn set_parameters(
    values: &mut Map<String, Value>,
    parameters: &Value,
    place: &str,
    draft: &mut SyncBuilder,
) {
    for (at, parameter) in parameters.as_array().into_iter().flatten().enumerate() {
        let is_text = parameter["forceString"] == Value::Bool(true);
        let parsed =
            match (split_name(text(parameter, "/name")), parse_value(text(parameter, "/value"), is_text)) {
                (Ok(keys), Ok(value)) => set(values, &keys, value),
                (Err(why), _) | (_, Err(why)) => Err(why),
            };
        if let Err(why) = parsed {
            draft.refuse(format!("{place}.parameters[{at}]"), format!("{why}: write it into valuesObject"));
        }
    }
}

/// Splits a name at its dots; a dot after a backslash belongs to a key.
fn split_name(name: &str) -> Result<Vec<String>, &'static str> {
    let (mut keys, mut key, mut chars) = (Vec::new(), String::new(), name.chars());
    while let Some(char) = chars.next() {
        match char {
            '.' => keys.push(std::mem::take(&mut key)),
            '\\' => key.push(chars.next().filter(|next| *next == '.').ok_or("the name has a backslash")?),
            '[' | ']' => return Err("it sets an item of a list, and the others come from the chart"),
            ',' | '=' | '{' | '}' | '$' => return Err("the name has a sign that helm reads in its own way"),
            char => key.push(char),
        }
    }
    keys.push(key);
    match keys.iter().any(String::is_empty) {
        true => Err("a part of the name is empty"),
        false => Ok(keys),
    }
}

/// Reads a value with the types of helm's `--set`: numbers with a point stay texts.
fn parse_value(value: &str, is_text: bool) -> Result<Value, &'static str> {
    if value.contains(['\\', '$']) || value.starts_with('{') {
        return Err("the value has a list, a backslash or a variable of Argo CD");
    }
    let is_number = value == "0" || !value.starts_with('0');
    Ok(match &*value.to_ascii_lowercase() {
        _ if is_text => value.into(),
        "true" => true.into(),
        "false" => false.into(),
        "null" => Value::Null,
        _ => match value.parse::<i64>() {
            Ok(number) if is_number => number.into(),
            Ok(_) | Err(_) => value.into(),
        },
    })
}

fn set(values: &mut Map<String, Value>, keys: &[String], value: Value) -> Result<(), &'static str> {
    let (key, rest) = match keys {
        [] => return Ok(()),
        [key, rest @ ..] => (key, rest),
    };
    if rest.is_empty() {
        values.insert(key.clone(), value);
        return Ok(());
    }
    let inner = values.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
    match inner {
        Value::Object(inner) => set(inner, rest, value),
        _ => Err("it sets a field of a value that is no mapping"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_has_the_type_that_helm_reads() {
        for (text, expect) in [
            ("true", json!(true)),
            ("null", Value::Null),
            ("False", json!(false)),
            ("TRUE", json!(true)),
            ("0", json!(0)),
            ("-12", json!(-12)),
            ("012", json!("012")),
            ("1.5", json!("1.5")),
            ("", json!("")),
            ("a,b=c", json!("a,b=c")),
            ("9223372036854775808", json!("9223372036854775808")),
        ] {
            assert_eq!(parse_value(text, false), Ok(expect), "{text}");
            assert_eq!(parse_value(text, true), Ok(json!(text)));
        }
        for text in ["{a,b}", "a\\,b", "$ARGOCD_APP_NAME"] {
            assert!(parse_value(text, true).is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_is_a_path_of_keys() {
        assert_eq!(split_name("a.b\\.c.d"), Ok(vec!["a".to_owned(), "b.c".to_owned(), "d".to_owned()]));
        for name in ["", "a..b", "a[0].b", "a\\b", "a=b"] {
            assert!(split_name(name).is_err(), "{name}");
        }
    }
}
