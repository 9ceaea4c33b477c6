//! Redaction of outcomes of objects that contain a value of a Secret.
//!
//! In: an outcome.
//! Out: the same, with paths cut where a value may begin. Messages of servers were already removed
//! when they were received.

use super::{Change, Hold, Outcome};
use crate::desired::redact_path;
use crate::observed::Drift;

impl Outcome {
    /// Removes everything that may be a value.
    pub fn redact(&mut self) {
        match self {
            Self::Updated(Change::Drifted(drift)) | Self::Held(Hold::DriftReported(drift)) => {
                redact_drift(drift)
            }
            Self::Held(Hold::Conflict { fields, .. }) => {
                fields.iter_mut().for_each(|field| *field = redact_path(field).into());
            }
            Self::Held(Hold::Contested(contest)) => hide(&mut contest.fields),
            Self::Created
            | Self::Adopted(_)
            | Self::Updated(_)
            | Self::Recreated
            | Self::Kept
            | Self::HandedOver(_)
            | Self::Pruned { .. }
            | Self::Held(_)
            | Self::Failed(_) => {}
        }
    }
}

fn redact_drift(drift: &mut Drift) {
    hide(&mut drift.fields);
}

fn hide(fields: &mut [String]) {
    fields.iter_mut().for_each(|field| *field = redact_path(field).into_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_tells_a_value() {
        let fields = || vec!["spec.tls[hosts=hunter2].name".to_owned()];
        let drift = || Box::new(Drift { fields: fields(), ..Drift::default() });
        for mut outcome in [
            Outcome::Updated(Change::Drifted(drift())),
            Outcome::Held(Hold::DriftReported(drift())),
            Outcome::Held(Hold::Conflict {
                managers: Vec::new(),
                fields: vec![".spec.tls[hosts=\"hunter2\"]".into()],
            }),
        ] {
            outcome.redact();
            let told = format!("{outcome:?}");
            assert!(told.contains("spec.tls[…]") && !told.contains("hunter2"), "{told}");
        }
    }
}
