//! Two field managers apply one object to an API server inside the process; prints the manager of
//! each field.

use moorline_managed_fields::entries;
use moorline_sandbox::{Options, Sandbox};
use serde_json::{Value, json};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop"}, "data": data})
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::new(&Options { seed: 7, ..Options::default() });
    sandbox.apply(CONFIG_MAPS, &config_map(&json!({"color": "green", "size": "small"})), "alice")?;
    // The apply is forced: the field that bob sets becomes his, the other one stays with alice.
    sandbox.apply(CONFIG_MAPS, &config_map(&json!({"color": "blue"})), "bob")?;

    let live = sandbox.get(&format!("{CONFIG_MAPS}/shop")).ok_or("the object is not found")?;
    println!("data: {}", live["data"]);
    let metadata = live["metadata"].as_object().ok_or("the object has no metadata")?;
    for entry in entries(metadata) {
        for path in entry.fields.leaf_paths() {
            println!("{}: {}", entry.manager, path.server_form());
        }
    }
    Ok(())
}
