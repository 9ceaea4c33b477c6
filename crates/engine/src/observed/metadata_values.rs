//! Values in the metadata of live objects.

use moorline_api as api;
use serde_json::Value;

use moorline_core::object::Object;

/// True for an object that is being deleted.
pub(super) fn is_deleting(object: &Object) -> bool {
    object.metadata("deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// Returns the finalizers of an object that is being deleted; empty for others.
pub(super) fn finalizers(object: &Object) -> Box<[Box<str>]> {
    let all = object.metadata("finalizers").filter(|_| is_deleting(object)).and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|one| Some(one.as_str()?.into())).collect()
}

/// Reads the wave. An invalid value was not written by us and counts as 0.
pub(super) fn wave(object: &Object) -> i32 {
    let text =
        object.annotation(api::WAVE_ANNOTATION).or_else(|| object.annotation(api::ARGO_WAVE_ANNOTATION));
    text.and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

/// Parses an RFC 3339 time to milliseconds since 1970; none if it is invalid.
pub(super) fn time(text: &str) -> Option<i64> {
    Some(text.parse::<jiff::Timestamp>().ok()?.as_millisecond())
}
