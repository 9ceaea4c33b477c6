//! Scans a chart for what it uses beside its own files.
//!
//! In: the files of a run. Out: whether a template may read the API versions of the server or call
//! `lookup`, and whether a values schema may refer outside of the chart: helm loads referenced
//! schemas from servers and from the disk. Files that cannot be scanned count as both, but not as a
//! call.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use serde_json::Value;

use super::ChartFiles;

/// Text in a template that reads the API versions; also found in text that becomes a template
/// later.
const API_VERSIONS_TEXT: &[u8] = b"APIVersions";
/// Texts of a template that looks for an object in the cluster.
const LOOKUP_TEXTS: [&[u8]; 2] = [b"lookup \"", b"lookup ("];
/// Name of the values schema of a chart.
const SCHEMA: &str = "values.schema.json";
/// Fields of a schema that refer to other schemas.
const NAMES: [&str; 5] = ["$ref", "$dynamicRef", "$recursiveRef", "$id", "id"];
/// Prefixes of the JSON Schema drafts that helm has built in.
const DRAFTS: [&str; 2] = ["http://json-schema.org/", "https://json-schema.org/"];
/// Most bytes that are unpacked in a scan, over all archives of a chart.
const MAX_UNPACKED: u64 = 64 * 1024 * 1024;

/// Result of a scan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ChartScan {
    /// A template may read the API versions that the server serves.
    pub(super) uses_api_versions: bool,
    /// A template looks for an object in the cluster. It is for a note only, so that a file that
    /// cannot be scanned does not count.
    pub(super) uses_lookup: bool,
    /// A schema may refer outside of the chart.
    pub(super) reaches_out: bool,
}

impl ChartScan {
    const ALL: Self = Self { uses_api_versions: true, uses_lookup: false, reaches_out: true };

    fn and(self, other: Self) -> Self {
        Self {
            uses_api_versions: self.uses_api_versions || other.uses_api_versions,
            uses_lookup: self.uses_lookup || other.uses_lookup,
            reaches_out: self.reaches_out || other.reaches_out,
        }
    }
}

/// Scans the files of a run.
pub(super) fn scan_chart(files: &ChartFiles) -> ChartScan {
    let mut left = MAX_UNPACKED;
    let look = |seen: ChartScan, (path, bytes): (&String, &std::sync::Arc<[u8]>)| {
        seen.and(match is_chart(path) {
            true => look_into(bytes, &mut left),
            false => ChartScan {
                uses_api_versions: holds(bytes, API_VERSIONS_TEXT),
                uses_lookup: calls_lookup(bytes),
                reaches_out: is_schema(path) && leads_out(bytes),
            },
        })
    };
    files.iter().fold(ChartScan::default(), look)
}

/// True for an archive that helm takes for a chart.
fn is_chart(path: &str) -> bool {
    path.ends_with(".tgz") && path.rsplit('/').nth(1) == Some("charts")
}

fn is_schema(path: &str) -> bool {
    path.rsplit('/').next() == Some(SCHEMA)
}

/// Scans an archive as a whole: any schema or archive inside it may refer outside.
fn look_into(archive: &[u8], left: &mut u64) -> ChartScan {
    let mut unpacked = Vec::new();
    let size = MultiGzDecoder::new(archive).take(*left).read_to_end(&mut unpacked);
    match size {
        Ok(size) if (size as u64) < *left => {
            *left -= size as u64;
            let inner = holds(&unpacked, b".tgz");
            let reaches_out = inner || holds(&unpacked, SCHEMA.as_bytes());
            let uses_api_versions = inner || holds(&unpacked, API_VERSIONS_TEXT);
            ChartScan { uses_api_versions, uses_lookup: calls_lookup(&unpacked), reaches_out }
        }
        Ok(_) | Err(_) => {
            *left = 0;
            ChartScan::ALL
        }
    }
}

fn holds(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|some| some == word)
}

fn calls_lookup(bytes: &[u8]) -> bool {
    LOOKUP_TEXTS.iter().any(|text| holds(bytes, text))
}

/// True for a schema that refers to another schema.
fn leads_out(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Value>(bytes).map_or(true, |schema| names_others(&schema))
}

fn names_others(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().any(|(key, value)| match (key.as_str(), value) {
            ("$schema", Value::String(draft)) => !DRAFTS.iter().any(|known| draft.starts_with(known)),
            (key, Value::String(named)) if NAMES.contains(&key) => !named.starts_with('#'),
            (_, value) => names_others(value),
        }),
        Value::Array(items) => items.iter().any(names_others),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn seen(files: &[(&str, &[u8])]) -> (bool, bool) {
        let files = files.iter().map(|(path, bytes)| ((*path).to_owned(), (*bytes).into())).collect();
        let ChartScan { uses_api_versions: asks, reaches_out, .. } = scan_chart(&files);
        (asks, reaches_out)
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(bytes).expect("memory");
        packer.finish().expect("memory")
    }

    #[test]
    fn a_schema_that_names_others_reaches_out() {
        let schema = |text: &str| seen(&[("chart/charts/a/values.schema.json", text.as_bytes())]).1;
        assert!(!schema(
            r##"{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#/x"}}}"##
        ));
        assert!(schema(r#"{"properties": {"a": [{"$ref": "http://example.com/s.json"}]}}"#));
        assert!(schema(r#"{"\u0024ref": "file:///etc/passwd"}"#));
        assert!(schema(r#"{"$schema": "https://example.com/draft"}"#));
        assert!(schema(r#"{"$id": "https://example.com/a", "$ref": "b.json"}"#));
        assert!(schema("no JSON"));
        assert!(!seen(&[("chart/other.json", br#"{"$ref": "http://example.com"}"#)]).1);
    }

    #[test]
    fn a_template_that_looks_into_the_cluster_is_found() {
        let looks = |path: &str, bytes: &[u8]| {
            scan_chart(&[(path.to_owned(), bytes.into())].into_iter().collect()).uses_lookup
        };
        let template = br#"{{ (lookup "v1" "Secret" .Release.Namespace "a").data }}"#;
        assert!(looks("chart/templates/a.yaml", template));
        assert!(looks("chart/charts/a.tgz", &packed(template)));
        assert!(looks("chart/templates/a.yaml", b"{{ lookup (printf \"v1\") \"Secret\" \"\" \"\" }}"));
        assert!(!looks("chart/templates/a.yaml", b"# a lookup of names"));
        assert!(!looks("chart/charts/a.tgz", b"no archive"));
    }

    #[test]
    fn archives_are_looked_through_within_one_bound() {
        assert_eq!(seen(&[("chart/charts/a.tgz", &packed(b"nothing"))]), (false, false));
        assert_eq!(seen(&[("chart/charts/a.tgz", &packed(b"x.APIVersions.y"))]), (true, false));
        assert_eq!(seen(&[("chart/charts/a.tgz", &packed(b"a/values.schema.json"))]), (false, true));
        assert_eq!(seen(&[("chart/charts/a.tgz", &packed(b"a/charts/b.tgz"))]), (true, true));
        assert_eq!(seen(&[("chart/charts/a.tgz", b"no archive")]), (true, true));
        assert_eq!(seen(&[("chart/files/a.tgz", b"no chart")]), (false, false));
        let large = packed(&vec![0; 40 << 20]);
        assert_eq!(seen(&[("chart/charts/a.tgz", &large)]), (false, false));
        assert_eq!(seen(&[("chart/charts/a.tgz", &large), ("chart/charts/b.tgz", &large)]), (true, true));
    }
}
