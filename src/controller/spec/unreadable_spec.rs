//! Errors of a spec that is not of the form of a Sync.
//!
//! In: a spec as the API server gave it. Out: [`SpecError`] with the field and the form that is
//! expected.

use serde_json::{Value, json};

use super::SpecError;
use crate::api::SyncSpec;
use crate::yaml::expectation;

/// Names the field of a spec that cannot be read. The message contains the type that was expected,
/// never the value: a URL in the wrong place is as secret as one in the right place.
pub(super) fn unreadable(spec: &Value) -> SpecError {
    let sound = json!({"source": {"git": {"url": "https://host/path"}}});
    let fields = spec.as_object().into_iter().flatten();
    let broken = fields.filter_map(|(name, value)| {
        let mut probe = sound.clone();
        probe[name] = value.clone();
        let error = serde_json::from_value::<SyncSpec>(probe).err()?.to_string();
        let expected = expectation(&error).map_or_else(String::new, |text| format!("; {text}"));
        Some((name, expected))
    });
    let (field, expected) =
        broken.map(|(name, expected)| (format!(".{name}"), expected)).next().unwrap_or_default();
    SpecError {
        field: format!("spec{field}").into(),
        message: format!(
            "this version of Moorline cannot read it{expected}; see `kubectl explain sync.spec{field}`"
        )
        .into(),
    }
}
