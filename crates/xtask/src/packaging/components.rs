//! Software bill of materials in the format CycloneDX 1.5.
//!
//! In: the packages of the program. Out: a document that is the same for the same packages and
//! commit.

use serde_json::{Value, json};

use super::checkout::Checkout;
use super::dependencies::{Package, Packages};

/// Writes the document.
pub(crate) fn document(packages: &Packages, checkout: &Checkout, triple: &str) -> Value {
    let program = format!("pkg:cargo/moorline@{}", checkout.version);
    let components: Vec<Value> =
        packages.values().filter(|package| package.url() != program).map(component).collect();
    let dependencies: Vec<Value> =
        packages.values().map(|package| json!({"ref": package.url(), "dependsOn": package.needs})).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": checkout.date(),
            "component": {
                "type": "application",
                "bom-ref": program,
                "name": "moorline",
                "version": checkout.version,
                "purl": program,
                "licenses": [{"expression": "Apache-2.0"}],
                "properties": [
                    {"name": "moorline:revision", "value": checkout.revision},
                    {"name": "moorline:target", "value": triple},
                ],
            },
        },
        "components": components,
        "dependencies": dependencies,
    })
}

fn component(package: &Package) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": package.url(),
        "name": package.name,
        "version": package.version,
        "purl": package.url(),
        "licenses": [{"expression": package.licence}],
    });
    if let Some(checksum) = &package.checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}
