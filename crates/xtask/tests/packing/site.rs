//! The site of the documentation is built from the pages of this checkout, and each of its links
//! leads somewhere.
//!
//! In: mdBook, where `make tools` has fetched it. Out: nothing, or each link that leads nowhere.

use std::fs;
use std::path::Path;
use std::process::Command;

use moorline_test_support::programs::report_skipped;

#[test]
fn each_link_of_the_site_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
    if !root.join("target/dist-tools/bin/mdbook").is_file() {
        report_skipped("there is no mdbook in target/dist-tools; `make tools` fetches it");
        return;
    }
    for source in [None, Some("https://git.example.com/moorline")] {
        let mut make = Command::new(env!("CARGO_BIN_EXE_xtask"));
        make.arg("site").env_remove("MOORLINE_SOURCE");
        if let Some(source) = source {
            make.env("MOORLINE_SOURCE", source);
        }
        let output = make.output().expect("xtask starts");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success() && !said.contains("WARN"), "{said}");
        let page = |path: &str| fs::read_to_string(root.join("target/site").join(path)).expect("a page");
        assert_eq!(
            page("docs/install.html").contains("https://git.example.com/moorline/blob/"),
            source.is_some()
        );
        // A reader without scripts gets the list of pages in a frame; one with scripts can search.
        let first = page("index.html");
        assert!(first.contains("<noscript>") && first.contains("mdbook-search-toggle"), "{first}");
        assert!(
            page("README.ko.html").contains("lang=\"en\"") && page("docs/index.html").contains("<table>")
        );
    }
}
