//! Locates submodules.
//!
//! In: the text of `.gitmodules`, and the address of the repository itself.
//! Out: the address of a submodule. Only submodules on the same server are followed, because the
//! repository's credentials may be sent only there; the daemon's own disk is refused.

use super::address::{Address, Kind};
use moorline_core::tree::normalise;

/// Maximum number of bytes of `.gitmodules` that are read.
const MAX_BYTES: usize = 256 * 1024;

/// Returns the address of the submodule at `path`, or the reason for not following it.
pub(super) fn address(said: &str, path: &str, from: &Address) -> Result<Address, &'static str> {
    let Some(url) = url(&said[..said.floor_char_boundary(MAX_BYTES)], path) else {
        return Err("it is a submodule without a URL in .gitmodules");
    };
    let address = match url.starts_with("./") || url.starts_with("../") {
        true => relative(from, &url),
        false => Address::remote(&url).ok(),
    };
    match address {
        Some(address) if is_beside(&address, from) => Ok(address),
        Some(_) => Err("it is a submodule on another server or of another user there, which is not followed"),
        None => Err("it is a submodule whose URL is not supported"),
    }
}

/// Returns the URL for a path in `.gitmodules`.
fn url(said: &str, path: &str) -> Option<String> {
    let mut found = (false, None);
    for line in said.lines().map(str::trim) {
        if line.starts_with('[') {
            if let (true, Some(url)) = found {
                return Some(url);
            }
            found = (false, None);
        } else if let Some((field, value)) = line.split_once('=') {
            let value = value.trim().trim_matches('"');
            match field.trim().to_ascii_lowercase().as_str() {
                "path" => found.0 = value.trim_end_matches('/') == path,
                "url" => found.1 = Some(value.to_owned()),
                _ => {}
            }
        }
    }
    found.1.filter(|_| found.0)
}

/// Resolves a URL relative to the repository.
fn relative(from: &Address, url: &str) -> Option<Address> {
    let whole = from.to_string();
    let (head, path) = match whole.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/')?;
            (format!("{scheme}://{host}/"), path)
        }
        None => {
            let (login, path) = whole.split_once(':')?;
            (format!("{login}:"), path)
        }
    };
    Address::remote(&format!("{head}{}", normalise(path, url)?)).ok()
}

/// True if both have the same server, port and user or scheme.
fn is_beside(one: &Address, other: &Address) -> bool {
    match (one.kind(), other.kind()) {
        (Kind::Http(one), Kind::Http(other)) => {
            (one.tls, &one.host, one.port) == (other.tls, &other.host, other.port)
        }
        (Kind::Ssh(one), Kind::Ssh(other)) => {
            (&one.user, &one.host, one.port) == (&other.user, &other.host, other.port)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, from: &str, expect: Result<&str, &str>) {
        let said = format!(
            "[submodule \"other\"]\n\tpath = lib\n\turl = https://elsewhere/x.git\n[submodule \"base\"]\n\tpath = base/\n\turl = {url}\n\tbranch = main\n"
        );
        let from = Address::remote(from).unwrap();
        let found = address(&said, "base", &from).map(|address| address.to_string());
        match expect {
            Ok(expect) => assert_eq!(
                found.as_deref(),
                Ok(Address::remote(expect).unwrap().to_string().as_str()),
                "{url}"
            ),
            Err(expect) => assert!(found.as_ref().is_err_and(|why| why.contains(expect)), "{url}: {found:?}"),
        }
    }

    #[test]
    fn only_what_lies_on_the_same_server_is_followed() {
        let from = "https://host/group/shop.git";
        check("https://host/group/base.git", from, Ok("https://host/group/base.git"));
        check("../base.git", from, Ok("https://host/group/base.git"));
        check("../../other/base.git", from, Ok("https://host/other/base.git"));
        check("./base.git", from, Ok("https://host/group/shop.git/base.git"));
        check("\"../base.git\"", from, Ok("https://host/group/base.git"));
        check("../../../base.git", from, Err("a submodule whose URL is not supported"));
        for other in [
            "https://host:8443/base.git",
            "http://host/base.git",
            "https://elsewhere/base.git",
            "ssh://git@host/base.git",
        ] {
            check(other, from, Err("on another server"));
        }
        for local in [
            "file:///etc",
            "/etc",
            "../../../../etc",
            "ext::sh -c id",
            "https://user:secret@host/base.git",
            "-u",
        ] {
            check(local, from, Err("a submodule whose URL is not supported"));
        }
        let over_ssh = "git@host:group/shop.git";
        check("../base.git", over_ssh, Ok("git@host:group/base.git"));
        check("git@host:other/base.git", over_ssh, Ok("git@host:other/base.git"));
        check("root@host:other/base.git", over_ssh, Err("of another user"));
    }

    #[test]
    fn a_submodule_without_a_path_is_reported() {
        let from = Address::remote("https://host/a.git").unwrap();
        for said in [
            "",
            "[submodule \"a\"]\n path = a\n",
            "[submodule \"b\"]\n path = b\n url = https://host/b.git",
            "nonsense",
        ] {
            assert!(address(said, "a", &from).is_err_and(|why| why.contains("without a URL")), "{said}");
        }
    }
}
