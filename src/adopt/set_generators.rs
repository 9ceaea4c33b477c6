//! Generators of an ApplicationSet to those of a SyncSet.
//!
//! In: `spec.generators`. Out: the generators, the names that they give to placeholders, and the
//! shortest interval. A generator that a SyncSet does not have is refused by its name.

use serde_json::{Map, Value, json};

use super::argocd::kind_of_revision;
use super::go_duration::convert_go_duration;
use super::set_placeholders::{Meaning, ParameterNames, expression, parameter};
use super::sync_builder::{SyncBuilder, is_set, text};

/// Generators that a SyncSet does not have.
const REFUSED: [(&str, &str); 6] = [
    ("scmProvider", "a SyncSet lists no repositories: write them into a list"),
    ("pullRequest", "write pullRequests by hand: its Syncs need a ServiceAccount of their own"),
    ("plugin", "a SyncSet asks no services: write what the plugin answers into a list or into files"),
    ("clusterDecisionResource", "clusters are Secrets that labels select: write clusters"),
    ("selector", "parameters are not filtered: let the generator give only those that are meant"),
    ("template", "a SyncSet has one template: write several SyncSets"),
];
/// Most generators of a SyncSet, and of a merge.
const MAX_GENERATORS: usize = 4;
/// Most globs of a generator.
const MAX_GLOBS: usize = 16;
/// Known fields.
const GENERATOR: [&str; 10] = [
    "clusterDecisionResource",
    "clusters",
    "git",
    "list",
    "matrix",
    "merge",
    "plugin",
    "pullRequest",
    "scmProvider",
    "selector",
];
const LIST: [&str; 3] = ["elements", "elementsYaml", "template"];
const GIT: [&str; 8] = [
    "directories",
    "files",
    "pathParamPrefix",
    "repoURL",
    "requeueAfterSeconds",
    "revision",
    "template",
    "values",
];
const CLUSTERS: [&str; 4] = ["flatList", "selector", "template", "values"];
const MATRIX: [&str; 2] = ["generators", "template"];
const MERGE: [&str; 3] = ["generators", "mergeKeys", "template"];
/// The label of the Secrets in which Argo CD keeps clusters.
const CLUSTER_LABEL: (&str, &str) = ("argocd.argoproj.io/secret-type", "cluster");
/// Names of a cluster in Argo CD that the name of its Secret replaces.
const CLUSTER_NAMES: [&str; 2] = ["name", "nameNormalized"];

/// Converted generators.
#[derive(Default)]
pub(super) struct ConvertedGenerators {
    pub(super) generators: Vec<Value>,
    pub(super) names: ParameterNames,
    /// The shortest interval, in seconds.
    pub(super) seconds: Option<u64>,
    /// True if clusters are among them.
    pub(super) has_clusters: bool,
    /// Elements of all lists.
    pub(super) elements: Vec<Map<String, Value>>,
}

/// Converts all generators of a spec.
pub(super) fn convert_generators(spec: &Value, draft: &mut SyncBuilder) -> ConvertedGenerators {
    let mut found = ConvertedGenerators::default();
    found.names.is_go = spec["goTemplate"] == Value::Bool(true);
    let all = spec["generators"].as_array().cloned().unwrap_or_default();
    for (at, generator) in all.iter().enumerate() {
        let place = format!("spec.generators[{at}]");
        if let Some(converted) = found.outer(generator, &place, draft) {
            found.generators.push(converted);
        }
    }
    if all.is_empty() || all.len() > MAX_GENERATORS {
        draft.refuse("spec.generators", format!("a SyncSet has one to {MAX_GENERATORS} generators"));
    }
    found
}

impl ConvertedGenerators {
    /// Returns the interval of a SyncSet.
    pub(super) fn interval(&self) -> Option<String> {
        Some(convert_go_duration(&format!("{}s", self.seconds?))?.0)
    }

    fn outer(&mut self, generator: &Value, place: &str, draft: &mut SyncBuilder) -> Option<Value> {
        let kinds = ["list", "git", "clusters", "matrix", "merge"];
        if kinds.into_iter().filter(|kind| generator[*kind].is_object()).count() > 1 {
            draft.refuse(place, "write one kind in each generator");
        }
        for (kind, known) in [("matrix", MATRIX.as_slice()), ("merge", &MERGE)] {
            let Some(whole) = generator.get(kind).filter(|whole| whole.is_object()) else { continue };
            let inside = format!("{place}.{kind}");
            draft.mark_unknown_lost(whole, &inside, known);
            draft.refuse_each(whole, &inside, &REFUSED[5..]);
            draft.refuse_each(generator, place, &REFUSED[..5]);
            let inner = whole["generators"].as_array().cloned().unwrap_or_default();
            let keys = merge_keys(whole, kind, (&inner, &inside), draft);
            let mut converted = Vec::new();
            for (at, inner) in inner.iter().enumerate() {
                let place = format!("{inside}.generators[{at}]");
                for nested in ["matrix", "merge"].iter().filter(|nested| is_set(&inner[**nested])) {
                    draft.refuse(
                        format!("{place}.{nested}"),
                        "matrix and merge have lists, Git and clusters inside",
                    );
                }
                converted.extend(self.leaf(inner, &place, (kind == "merge").then_some(&keys), draft));
            }
            let fits =
                if kind == "matrix" { inner.len() == 2 } else { (2..=MAX_GENERATORS).contains(&inner.len()) };
            if !fits {
                draft.refuse(&*inside, "matrix has two generators, and merge two to four");
            }
            let keys: Vec<&String> = keys.iter().map(|(_, new)| new).collect();
            return Some(match kind {
                "matrix" => json!({"matrix": converted}),
                _ => json!({"merge": {"keys": keys, "generators": converted}}),
            });
        }
        self.leaf(generator, place, None, draft)
    }

    /// Converts a list, a repository or clusters; `keys` are those of the merge around it.
    fn leaf(
        &mut self,
        generator: &Value,
        place: &str,
        keys: Option<&Vec<(String, String)>>,
        draft: &mut SyncBuilder,
    ) -> Option<Value> {
        draft.mark_unknown_lost(generator, place, &GENERATOR);
        draft.refuse_each(generator, place, &REFUSED[..5]);
        for (kind, known) in [("list", LIST.as_slice()), ("git", &GIT), ("clusters", &CLUSTERS)] {
            let Some(own) = generator.get(kind).filter(|own| own.is_object()) else { continue };
            let place = format!("{place}.{kind}");
            draft.mark_unknown_lost(own, &place, known);
            draft.refuse_each(own, &place, &REFUSED[5..]);
            return Some(match kind {
                "list" => self.list(own, &place, keys, draft),
                "git" => self.git(own, &place, keys.is_some(), draft),
                _ => self.clusters(own, &place, keys.is_some(), draft),
            });
        }
        None
    }

    fn list(
        &mut self,
        list: &Value,
        place: &str,
        keys: Option<&Vec<(String, String)>>,
        draft: &mut SyncBuilder,
    ) -> Value {
        if is_set(&list["elementsYaml"]) {
            draft.refuse(format!("{place}.elementsYaml"), "write the elements as a list");
        }
        let mut elements = Vec::new();
        for element in list["elements"].as_array().into_iter().flatten().filter_map(Value::as_object) {
            if format!("{element:?}").contains("{{") {
                draft.refuse(format!("{place}.elements"), "an element is a literal, without placeholders");
            }
            let mut new = Value::Object(Map::new());
            for (name, value) in element {
                let key = keys.and_then(|keys| keys.iter().find(|(old, _)| old == name));
                put(&mut new, key.map_or(name, |(_, new)| new), value.clone());
            }
            elements.extend(new.as_object().cloned());
        }
        for element in &elements {
            self.add_names("", &Value::Object(element.clone()));
        }
        self.elements.extend(elements.iter().cloned());
        json!({"list": {"elements": elements}})
    }

    /// Adds the names of an element; those inside of mappings have dots.
    fn add_names(&mut self, before: &str, value: &Value) {
        for (name, value) in value.as_object().into_iter().flatten() {
            let name = format!("{before}{name}");
            if value.is_object() {
                self.add_names(&format!("{name}."), value);
            }
            self.names.add(&name, Meaning { cel: parameter(&name), is_text: value.is_string() });
        }
    }

    fn git(&mut self, git: &Value, place: &str, is_merged: bool, draft: &mut SyncBuilder) -> Value {
        let mut source = SyncBuilder::new(draft.requested.clone());
        source.url(&format!("{place}.repoURL"), text(git, "/repoURL"), "");
        draft.refused.append(&mut source.refused);
        let mut new = source.spec["source"]["git"].take();
        if let Some(reference) = kind_of_revision(text(git, "/revision")) {
            new["ref"] = reference;
        }
        for field in ["repoURL", "revision"] {
            if text(git, &format!("/{field}")).contains("{{") {
                draft.refuse(format!("{place}.{field}"), "a generator has no placeholders");
            }
        }
        let (directories, files) = (globs(&git["directories"]), globs(&git["files"]));
        for (field, found) in [("directories", &directories), ("files", &files)] {
            if found.iter().flat_map(|(include, exclude)| [include, exclude]).any(|all| all.len() > MAX_GLOBS)
            {
                draft
                    .refuse(format!("{place}.{field}"), format!("a generator has at most {MAX_GLOBS} globs"));
            }
            if found.iter().flat_map(|(include, _)| include).any(|glob| glob.contains("{{")) {
                draft.refuse(format!("{place}.{field}"), "a generator has no placeholders");
            }
        }
        if let Some((include, mut exclude)) = directories {
            // Argo CD does not cross folders by two stars either, and skips hidden folders.
            let include: Vec<String> = include.iter().map(|glob| glob.replace("**", "*")).collect();
            exclude.extend(include.iter().filter_map(|glob| hidden(glob)));
            new["folders"] = json!({"include": include, "exclude": exclude});
        }
        if let Some((include, exclude)) = files {
            if include.iter().any(|glob| glob.contains('*')) {
                let why = "in Argo CD a star may also cross folders, here only ** does: see which Syncs the plan has";
                draft.mark_lost(format!("{place}.files"), why);
            }
            new["files"] = json!({"include": include, "exclude": exclude});
        }
        let prefix = Some(text(git, "/pathParamPrefix")).filter(|prefix| !prefix.is_empty());
        let prefix = prefix.map_or_else(String::new, |prefix| format!("{prefix}."));
        self.add_paths(&prefix, is_set(&git["files"]));
        self.values(&git["values"], (place, is_merged), draft);
        let seconds = git["requeueAfterSeconds"].as_u64().filter(|seconds| *seconds > 0);
        self.seconds = [self.seconds, seconds].into_iter().flatten().min();
        json!({"git": new})
    }

    /// Adds the names of a path, of a folder or of a file.
    fn add_paths(&mut self, prefix: &str, is_files: bool) {
        let (folder, parts) = match is_files {
            false => ("params.folder.path", "params.folder.parts".to_owned()),
            true => ("params.file.folder", "params.file.folder.split('/')".to_owned()),
        };
        let name = match is_files {
            false => "params.folder.name".to_owned(),
            true => format!("{parts}[size({parts}) - 1]"),
        };
        let plain = format!("{name}.lowerAscii().replace('_', '-').replace(' ', '-')");
        let (path, segments) = match self.names.is_go {
            true => (format!("{prefix}path.path"), format!("{prefix}path.segments")),
            false => (format!("{prefix}path"), format!("{prefix}path")),
        };
        self.names.add(path, Meaning::text(folder));
        self.names.add_list(segments, &parts);
        self.names.add(format!("{prefix}path.basename"), Meaning::text(name));
        self.names.add(format!("{prefix}path.basenameNormalized"), Meaning::text(plain));
        if is_files {
            self.names.add(format!("{prefix}path.filename"), Meaning::text("params.file.name"));
            self.names.is_open = true;
        }
    }

    fn clusters(&mut self, clusters: &Value, place: &str, is_merged: bool, draft: &mut SyncBuilder) -> Value {
        self.has_clusters = true;
        if is_set(&clusters["flatList"]) {
            draft.refuse(
                format!("{place}.flatList"),
                "a SyncSet has a Sync for each cluster, not one with all",
            );
        }
        let mut selector = clusters["selector"].as_object().cloned().map_or_else(|| json!({}), Value::Object);
        if !is_set(&selector) {
            let why = "Argo CD's own cluster has no Secret: write a Sync, or a SyncSet with a list, for it";
            draft.mark_lost(format!("{place}.selector"), why);
        }
        selector["matchLabels"][CLUSTER_LABEL.0] = CLUSTER_LABEL.1.into();
        for name in CLUSTER_NAMES.into_iter().chain(["server"]) {
            self.names.add(name, Meaning::text("params.cluster.name"));
        }
        self.names.add_map("metadata.labels.", "params.cluster.labels");
        self.names.add_map("metadata.annotations.", "params.cluster.annotations");
        self.values(&clusters["values"], (place, is_merged), draft);
        json!({"clusters": {"selector": selector}})
    }

    /// Adds values of a generator as expressions.
    fn values(&mut self, values: &Value, (place, is_merged): (&str, bool), draft: &mut SyncBuilder) {
        if is_merged && is_set(values) {
            let why = "in a merge, later generators may change them: write them into a list";
            return draft.refuse(format!("{place}.values"), why);
        }
        for (name, value) in values.as_object().into_iter().flatten() {
            match self.names.read(value.as_str().unwrap_or_default()) {
                Ok(pieces) => {
                    let whole = expression(&pieces);
                    let cel = if pieces.len() > 1 { format!("({whole})") } else { whole };
                    self.names.add(format!("values.{name}"), Meaning::text(cel));
                }
                Err(why) => draft.refuse(format!("{place}.values.{name}"), why),
            }
        }
    }
}

/// Returns the keys of a merge, each with its name in a SyncSet.
fn merge_keys(
    whole: &Value,
    kind: &str,
    (inner, place): (&[Value], &str),
    draft: &mut SyncBuilder,
) -> Vec<(String, String)> {
    let has_clusters = inner.iter().any(|inner| inner["clusters"].is_object());
    let keys = whole["mergeKeys"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let rename = |key: &str| match key {
        "server" if has_clusters => {
            let why = "clusters have the names of their Secrets: merge by name, and write these names into the lists";
            draft.refuse(format!("{place}.mergeKeys"), why);
            (key.to_owned(), "cluster.name".to_owned())
        }
        key if has_clusters && CLUSTER_NAMES.contains(&key) => (key.to_owned(), "cluster.name".to_owned()),
        key if key.starts_with("path") && inner.iter().any(|inner| inner["git"].is_object()) => {
            draft.refuse(format!("{place}.mergeKeys"), "merge by a key of the files or lists, not by a path");
            (key.to_owned(), key.to_owned())
        }
        key => (key.to_owned(), key.to_owned()),
    };
    let keys: Vec<(String, String)> = keys.map(rename).collect();
    if kind == "merge" && keys.is_empty() {
        draft.refuse(format!("{place}.mergeKeys"), "merge needs keys");
    }
    keys
}

/// Returns the globs that select, and those that exclude; none for a field that is not set.
fn globs(all: &Value) -> Option<(Vec<String>, Vec<String>)> {
    let (mut include, mut exclude) = (Vec::new(), Vec::new());
    for one in all.as_array().filter(|all| !all.is_empty())? {
        let glob = text(one, "/path").trim_start_matches("./").trim_matches('/').to_owned();
        let list = if one["exclude"] == Value::Bool(true) { &mut exclude } else { &mut include };
        list.push(glob);
    }
    Some((include, exclude))
}

/// Returns the glob of the hidden folders that a glob selects.
fn hidden(glob: &str) -> Option<String> {
    let (before, last) = glob.rsplit_once('/').map_or(("", glob), |(before, last)| (before, last));
    let slash = if before.is_empty() { "" } else { "/" };
    last.starts_with('*').then(|| format!("{before}{slash}.{last}"))
}

/// Sets a value whose name has dots.
fn put(to: &mut Value, name: &str, value: Value) {
    let mut at = to;
    for part in name.split('.') {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[part];
    }
    *at = value;
}
