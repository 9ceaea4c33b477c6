//! What others changed of the fields that Git sets.
//!
//! In: the words of `judge.rs` and of a comparison. Out: [`Drift`], and how it is told to people.

use moorline_core::grammar;

/// What somebody changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drift {
    /// The paths of the fields. None are known where our entry is gone and nobody took what was in it.
    pub fields: Vec<String>,
    /// The tool that changed them, where the managed fields tell: what is removed leaves no author.
    pub manager: Option<String>,
    /// When that tool wrote last.
    pub time: Option<String>,
}

/// The most fields that a sentence names.
const MAX_NAMED: usize = 3;

impl Drift {
    /// What was changed, as the subject of a sentence.
    pub fn subject(&self) -> String {
        match self.fields.as_slice() {
            [] => "fields were".to_owned(),
            [only] => format!("{only} was"),
            fields => {
                let named = fields.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>();
                match fields.len().saturating_sub(MAX_NAMED) {
                    0 => format!("{} were", named.join(", ")),
                    more => format!("{} and {} were", named.join(", "), grammar::more(more, "field")),
                }
            }
        }
    }

    /// Who changed them, and when, as far as that is known.
    pub fn author(&self) -> String {
        match (&self.manager, &self.time) {
            (Some(manager), Some(time)) => format!("{manager} at {time}"),
            (Some(manager), None) => manager.clone(),
            (None, _) => "somebody".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_told_by_their_number() {
        let subject = |count: usize| {
            let fields = (0..count).map(|at| format!("data.{at}")).collect();
            Drift { fields, ..Drift::default() }.subject()
        };
        assert_eq!(subject(0), "fields were");
        assert_eq!(subject(1), "data.0 was");
        assert_eq!(subject(3), "data.0, data.1, data.2 were");
        assert_eq!(subject(4), "data.0, data.1, data.2 and 1 more field were");
        assert_eq!(subject(5), "data.0, data.1, data.2 and 2 more fields were");
    }
}
