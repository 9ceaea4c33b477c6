//! The chart as an archive: its bytes, its way through a registry, and its README.

use std::fs;

use moorline_test_support::programs::{command, find, run};
use moorline_test_support::registry::Registry;

use crate::support::{done, folder, refused, word};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const IMAGE: &str = "registry.example.com/moorline";

#[test]
fn a_packed_chart_comes_back_from_a_registry_with_the_image_of_its_release() {
    let (one, two) = (folder("chart-one"), folder("chart-two"));
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    let helm_digest = format!("sha256:{}", "fedcba9876543210".repeat(4));
    let image = ["--image", IMAGE, "--digest", &digest, "--helm-digest", &helm_digest];
    for out in [&one, &two] {
        done(&[&["chart", "--out", word(out)], &image[..]].concat());
    }
    let name = format!("moorline-{VERSION}.tgz");
    assert_eq!(fs::read(one.join(&name)).expect("a chart"), fs::read(two.join(&name)).expect("a chart"));

    let (Some(helm), Some(registry)) = (find("helm"), Registry::start()) else { return };
    let home = folder("chart-helm");
    let helm = |arguments: &[&str]| {
        let mut command = command(&helm);
        for name in ["CACHE", "CONFIG", "DATA"] {
            command.env(format!("HELM_{name}_HOME"), home.join(name));
        }
        run(command.args(arguments))
    };
    let charts = format!("oci://{}/charts", registry.address);
    helm(&["push", word(&one.join(&name)), &charts, "--plain-http"])
        .unwrap_or_else(|error| panic!("{error}"));
    let chart = format!("{charts}/moorline");
    let rendered = |more: &[&str]| {
        let template = ["template", "moorline", &chart, "--version", VERSION, "--plain-http"];
        helm(&[&template, more].concat()).unwrap_or_else(|error| panic!("{error}"))
    };
    assert!(rendered(&[]).contains(&format!("image: \"{IMAGE}@{digest}\"")));
    assert!(
        rendered(&["--set", "image.variant=helm"]).contains(&format!("image: \"{IMAGE}@{helm_digest}\""))
    );
    let shown = helm(&["show", "chart", &chart, "--version", VERSION, "--plain-http"]).expect("the chart");
    for line in ["home: https://example.com/moorline", "artifacthub.io/license: Apache-2.0", "kubeVersion:"] {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
    let linted = helm(&["lint", word(&one.join(&name))]).unwrap_or_else(|error| panic!("{error}"));
    assert!(linted.contains("0 chart(s) failed") && !linted.contains("[WARNING]"), "{linted}");
}

#[test]
fn a_digest_that_is_none_is_refused() {
    let out = folder("chart-refused");
    let image = ["--image", IMAGE, "--digest", "latest", "--helm-digest", "latest"];
    let (_, reason) = refused(&[&["chart", "--out", word(&out)], &image[..]].concat());
    assert!(reason.contains("\"latest\" is no digest such as sha256:..."), "{reason}");
    let (code, reason) = refused(&["chart", "--image", IMAGE, "--out", word(&out)]);
    assert_eq!(code, 64);
    assert!(reason.contains("are given together"), "{reason}");
}

#[test]
fn the_readme_of_the_chart_has_the_values_of_the_chart() {
    done(&["chart-readme", "--check"]);
}
