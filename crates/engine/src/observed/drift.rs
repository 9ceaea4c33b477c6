//! Drift: changes that others made to fields that Git sets.
//!
//! In: the result of `drift_detection.rs` or of a dry-run comparison.
//! Out: [`Drift`], and its description for people.

use moorline_core::grammar;

/// Fields that others changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drift {
    /// Paths of the fields. Empty if our entry is gone and no other manager took its fields.
    pub fields: Vec<String>,
    /// Manager that changed them, if `managedFields` show it: a removed field leaves no trace of
    /// its remover.
    pub manager: Option<String>,
    /// Time of that manager's last write.
    pub time: Option<String>,
}

/// Maximum number of fields in a sentence.
const MAX_NAMED: usize = 3;

impl Drift {
    /// Describes the changed fields as the subject of a sentence.
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

    /// Describes the author and the time of the change, as far as they are known.
    pub fn author(&self) -> String {
        match (&self.manager, &self.time) {
            (Some(manager), Some(time)) => format!("{manager} at {time}"),
            (Some(manager), None) => manager.clone(),
            (None, _) => "an unknown manager".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_fields_are_shown_as_a_number() {
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
