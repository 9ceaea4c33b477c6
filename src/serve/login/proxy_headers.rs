//! Headers of an authenticating proxy, which are trusted on its own connections only.
//!
//! In: headers, and true if the connection has the proxy's certificate. Out: the person, none
//! without headers, or a refusal. A request with such a header and no certificate is refused,
//! and not taken for an unknown viewer.

use axum::http::HeaderMap;
use axum::http::header::HeaderName;

use super::names::{NameError, NameRules};
use crate::serve::viewer::Person;

/// The headers that a proxy sets.
#[derive(Debug, Clone)]
pub(super) struct ProxyHeaders {
    pub(super) user: HeaderName,
    pub(super) groups: Option<HeaderName>,
    pub(super) names: NameRules,
}

/// The reason why headers are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProxyError {
    #[error("headers of a proxy are accepted only with its client certificate")]
    Untrusted,
    #[error("the proxy must set the header of the user exactly once, in ASCII")]
    User,
    #[error("the headers of the proxy are refused: {0}")]
    Name(#[from] NameError),
}

impl ProxyHeaders {
    pub(super) fn person(
        &self,
        headers: &HeaderMap,
        is_of_the_proxy: bool,
    ) -> Result<Option<Person>, ProxyError> {
        let groups = self.groups.as_ref().map(|name| headers.get_all(name));
        let mut users = headers.get_all(&self.user).iter();
        let user = users.next();
        let has_groups = groups.as_ref().is_some_and(|groups| groups.iter().next().is_some());
        if user.is_none() && !has_groups {
            return Ok(None);
        }
        if !is_of_the_proxy {
            return Err(ProxyError::Untrusted);
        }
        let (Some(user), None) = (user, users.next()) else { return Err(ProxyError::User) };
        let user = user.to_str().map_err(|_| ProxyError::User)?;
        let mut known = Vec::new();
        for line in groups.iter().flatten() {
            let line = line.to_str().map_err(|_| NameError::Group)?;
            known.extend(line.split(',').map(str::trim).filter(|group| !group.is_empty()));
        }
        Ok(Some(self.names.person(user, known)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_believed_only_with_the_certificate() {
        let proxy = ProxyHeaders {
            user: HeaderName::from_static("x-user"),
            groups: Some(HeaderName::from_static("x-groups")),
            names: NameRules { prefix: "sso:".into(), groups: "".into() },
        };
        let person = |lines: &[(&'static str, &str)], trusted: bool| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, value.parse().unwrap());
            }
            let person = proxy.person(&headers, trusted)?;
            Ok(person.map(|person| (person.user, person.groups.join(" "))))
        };
        let ada = [("x-user", "ada"), ("x-groups", "a, b"), ("x-groups", "c")];
        let groups = "sso:a sso:b sso:c system:authenticated";
        assert_eq!(person(&ada, true), Ok(Some(("sso:ada".to_owned(), groups.to_owned()))));
        assert_eq!(person(&ada, false), Err(ProxyError::Untrusted));
        assert_eq!(person(&ada[1..], false), Err(ProxyError::Untrusted), "groups alone");
        assert_eq!(person(&[], false), Ok(None));
        assert_eq!(person(&[], true), Ok(None));
        assert_eq!(person(&ada[1..], true), Err(ProxyError::User));
        assert_eq!(person(&[ada[0], ada[0]], true), Err(ProxyError::User));
        let reserved = Err(ProxyError::Name(NameError::Reserved));
        assert_eq!(person(&[("x-user", "system:admin")], true), reserved);
        assert_eq!(person(&[ada[0], ("x-groups", "a,system:masters")], true), reserved);
    }
}
