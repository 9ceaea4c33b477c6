//! Decides if changed files touch what a Sync reads.
//!
//! In: paths of changed files, and paths of files and folders that were read. Out: true or false.

/// True if one of the changed files is one of those that were read, or is in one of these folders.
pub fn touches(changed: &[Box<str>], read: &[Box<str>]) -> bool {
    read.iter().any(|read| changed.iter().any(|changed| is_at(changed, read)))
}

/// True if a path is another one, or is below it. The empty one is the root.
fn is_at(path: &str, place: &str) -> bool {
    let place = place.trim_matches('/');
    let rest = path.strip_prefix(place);
    place.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_touches_what_is_read() {
        for (changed, read, expect) in [
            ("apps/web/a.yaml", "apps/web", true),
            ("apps/web", "apps/web", true),
            ("apps/web-2/a.yaml", "apps/web", false),
            ("apps/a.yaml", "apps/web", false),
            ("base/a.yaml", "base/a.yaml", true),
            ("base/a.yaml.orig", "base/a.yaml", false),
            ("anything", "", true),
            ("apps/web/a.yaml", "apps/web/", true),
        ] {
            assert_eq!(
                touches(&[changed.into()], &["other".into(), read.into()]),
                expect,
                "{changed} {read}"
            );
        }
        assert!(!touches(&[], &["".into()]) && !touches(&["a".into()], &[]));
    }
}
