//! Prints the health of an object: `kubectl get deploy web -o json | object_health`.
//!
//! The exit code is 0 for a healthy or suspended object and 1 for every other one.

use std::error::Error;
use std::io::stdin;
use std::process::ExitCode;

use moorline_core::object::GroupKind;
use moorline_health::{Context, Health, health};
use serde_json::Value;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let object: Value = serde_json::from_reader(stdin().lock())?;
    let body = object.as_object().ok_or("the input is no object")?;
    let text = |field: &str| body.get(field).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    let found = health(&GroupKind::new(group, text("kind")), body, &Context::default());
    match found.message() {
        Some(why) => println!("{}: {why}", found.name()),
        None => println!("{}", found.name()),
    }
    let good = matches!(found, Health::Healthy | Health::Suspended);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
