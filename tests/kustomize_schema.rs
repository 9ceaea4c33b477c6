//! The table of Kubernetes' own kinds is what its script makes of the OpenAPI document that kustomize carries.
//!
//! The script needs Go, and the modules in `tests/kustomize/go.mod` from Go's cache or its proxy. Without them the
//! test is skipped, and says so; where `CI` is set, that is a failure.

use std::path::Path;
use std::process::Command;

use moorline_test_support::programs::report_skipped;

#[test]
fn the_table_is_what_the_script_makes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Go's installer leaves it to people to put its folder into PATH.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/local/go/bin";
    let made = Command::new("sh")
        .args(["-c", "exec go run ./schema"])
        .env("PATH", path)
        .env("GOFLAGS", "-mod=readonly")
        .current_dir(root.join("tests/kustomize"))
        .output();
    let why = match made {
        Ok(made) if made.status.success() => {
            let path = root.join("crates/kustomize/src/schema/kubernetes.txt");
            let committed = std::fs::read_to_string(path).expect("the table can be read");
            let made = String::from_utf8(made.stdout).expect("the script writes text");
            let differs = made.lines().zip(committed.lines()).find(|(made, committed)| made != committed);
            assert_eq!(differs, None, "make it anew as tests/kustomize/schema/main.go says");
            assert_eq!(made.len(), committed.len(), "make it anew as tests/kustomize/schema/main.go says");
            return;
        }
        Ok(made) => String::from_utf8_lossy(&made.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    report_skipped(&format!("the script that makes the table of kinds does not run: {why}"));
}
