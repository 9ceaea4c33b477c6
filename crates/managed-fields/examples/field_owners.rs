//! Lists the fields of an object and the manager of each:
//! `kubectl get deploy web -o json --show-managed-fields | field_owners`.

use std::error::Error;
use std::io::stdin;

use moorline_managed_fields::{entries, pointer_of};
use serde_json::{Map, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let object: Value = serde_json::from_reader(stdin().lock())?;
    let none = Map::new();
    let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&none);
    for entry in entries(metadata) {
        for path in entry.fields.leaf_paths() {
            // A field that is gone since has no pointer; its path is shown as the server spells it.
            let field = pointer_of(&path, &object).unwrap_or_else(|| path.server_form());
            println!("{:<40} {field}", entry.author());
        }
    }
    Ok(())
}
