//! Token reviews: the person that a bearer token belongs to, as the API server says.
//!
//! In: a token and the audience that it has to be for.
//! Out: a [`ReviewedUser`], or none if the server does not accept the token. The token is sent to
//! the API server only, and is in no error.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::Cluster;
use crate::api_client::ApiRequest;
use crate::api_error::ApiError;
use moorline_metrics::RequestClass;

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// A user as the API server knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewedUser {
    /// The name.
    pub name: String,
    /// The unique id.
    pub uid: Option<String>,
    /// The groups.
    pub groups: Vec<String>,
    /// Further attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Asks for the user of a token; `None` if it is not valid, or not for the audience.
///
/// # Guarantees
///
/// One create request without retry. It changes no object.
///
/// # Errors
///
/// Any [`ApiError`]; it does not have the token.
pub async fn review_token(
    cluster: &Cluster,
    token: &str,
    audience: &str,
) -> Result<Option<ReviewedUser>, ApiError> {
    let spec = json!({"token": token, "audiences": [audience]});
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec});
    let call = ApiRequest::new(RequestClass::Verify, "create", REVIEWS.to_owned())
        .content("application/json", body.to_string().into_bytes());
    let answer: Value = cluster.0.wire.send(call).await?.json()?;
    Ok(user_of(&answer["status"], audience))
}

/// Reads the user. A server that does not know audiences names none, and is not believed.
fn user_of(status: &Value, audience: &str) -> Option<ReviewedUser> {
    let audiences = status["audiences"].as_array()?;
    if status["authenticated"] != true || !audiences.iter().any(|one| one == audience) {
        return None;
    }
    let user = &status["user"];
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let name = user["username"].as_str().filter(|name| !name.is_empty())?;
    let extra = user["extra"].as_object().into_iter().flatten();
    Some(ReviewedUser {
        name: name.to_owned(),
        uid: user["uid"].as_str().filter(|uid| !uid.is_empty()).map(str::to_owned),
        groups: texts(&user["groups"]),
        extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_user_for_our_audience_is_read() {
        let user = json!({"username": "ada", "uid": "7", "groups": ["a"], "extra": {"scopes": ["b"]}});
        let sound = json!({"authenticated": true, "audiences": ["console"], "user": user});
        let read = user_of(&sound, "console").unwrap();
        assert_eq!((&*read.name, read.uid.as_deref(), read.groups.len()), ("ada", Some("7"), 1));
        assert_eq!(read.extra["scopes"], ["b"]);
        for (path, value) in [
            ("/authenticated", json!(false)),
            ("/authenticated", json!("true")),
            ("/audiences", json!(["https://kubernetes.default.svc"])),
            ("/audiences", Value::Null),
            ("/user/username", json!("")),
        ] {
            let mut wrong = sound.clone();
            *wrong.pointer_mut(path).unwrap() = value;
            assert_eq!(user_of(&wrong, "console"), None, "{path}");
        }
    }
}
