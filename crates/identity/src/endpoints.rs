//! Addresses and names in clouds: fixed, unless the operator names others.
//!
//! In: the entries of a setting, such as `aws-sts=https://sts.example.com`,
//! `azure-vault=vault.example.com` or `gcp-provider=projects/…`.
//! Out: [`CloudEndpoints`]. Other addresses serve sovereign clouds, private endpoints and tests.
//! Nothing that a tenant writes is an address here.

use std::collections::BTreeMap;

use crate::gcp::GcpProvider;

/// Services of which the operator may name another address.
const SERVICES: [&str; 12] = [
    "aws-sts",
    "aws-ecr",
    "aws-kms",
    "aws-registry",
    "gcp-sts",
    "gcp-iamcredentials",
    "gcp-oauth",
    "gcp-kms",
    "gcp-registry",
    "azure-login",
    "azure-registry",
    "azure-devops",
];

/// Domains of Azure Key Vault in its clouds.
const VAULT_DOMAINS: [&str; 3] = ["vault.azure.net", "vault.azure.cn", "vault.usgovcloudapi.net"];

/// Maximum number of characters of an address.
const MAX_URL_LENGTH: usize = 512;

/// Addresses and names that differ from the public ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CloudEndpoints {
    services: BTreeMap<&'static str, Box<str>>,
    /// More domains of vaults; one with a port is a vault itself.
    vaults: Vec<Box<str>>,
    gcp_provider: Option<GcpProvider>,
}

impl CloudEndpoints {
    /// Reads the entries of a setting; `None` if one of them is malformed.
    pub fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut known = Self::default();
        for entry in entries {
            match entry.trim().split_once('=')? {
                ("azure-vault", domain) if is_domain(domain) => known.vaults.push(domain.into()),
                ("gcp-provider", name) => known.gcp_provider = Some(GcpProvider::new(name).ok()?),
                (service, url) => {
                    let service = SERVICES.into_iter().find(|known| *known == service)?;
                    let url = url.trim_end_matches('/');
                    is_base(url).then(|| known.services.insert(service, url.into()))?;
                }
            }
        }
        Some(known)
    }

    /// Returns the provider for ServiceAccounts that name none.
    pub fn gcp_provider(&self) -> Option<&GcpProvider> {
        self.gcp_provider.as_ref()
    }

    /// Returns the domains in which vaults may be.
    pub(crate) fn vault_domains(&self) -> impl Iterator<Item = &str> {
        VAULT_DOMAINS.into_iter().chain(self.vaults.iter().map(|domain| &**domain))
    }

    /// Returns the address of a service without a slash at its end.
    pub(crate) fn base(&self, service: &str, public: impl FnOnce() -> String) -> String {
        self.services.get(service).map_or_else(public, |url| url.to_string())
    }

    /// True if the operator names this host and port for a kind of servers that are many.
    pub fn has_host(&self, service: &str, host_and_port: &str) -> bool {
        self.services.get(service).and_then(|url| url.strip_prefix("https://")) == Some(host_and_port)
    }
}

/// True for a domain, or a host with a port.
fn is_domain(text: &str) -> bool {
    let sound = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.:".contains(&byte);
    !text.is_empty() && !text.starts_with('.') && text.len() <= MAX_URL_LENGTH && text.bytes().all(sound)
}

/// True for `https://host[:port][/path]`.
fn is_base(url: &str) -> bool {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/[]".contains(&byte);
    let rest = url.strip_prefix("https://").unwrap_or_default();
    !rest.is_empty()
        && !rest.starts_with('/')
        && !rest.contains("//")
        && url.len() <= MAX_URL_LENGTH
        && rest.bytes().all(sound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_services_have_another_address_and_only_over_https() {
        let endpoints =
            CloudEndpoints::new(["aws-sts=https://sts.example/", "gcp-registry=https://host:5000"]);
        let endpoints = endpoints.unwrap();
        assert_eq!(endpoints.base("aws-sts", String::new), "https://sts.example");
        assert_eq!(endpoints.base("aws-ecr", || "public".to_owned()), "public");
        assert!(endpoints.has_host("gcp-registry", "host:5000"));
        assert!(
            !endpoints.has_host("gcp-registry", "host") && !endpoints.has_host("aws-registry", "host:5000")
        );
        let named = CloudEndpoints::new([
            "azure-vault=localhost:8443",
            "gcp-provider=projects/1/locations/global/workloadIdentityPools/p/providers/c",
        ]);
        let named = named.unwrap();
        assert!(named.vault_domains().any(|domain| domain == "localhost:8443"));
        assert!(named.vault_domains().any(|domain| domain == "vault.azure.net"));
        assert!(named.gcp_provider().is_some());
        for wrong in ["azure-vault=", "azure-vault=a/b", "gcp-provider=a"] {
            assert_eq!(CloudEndpoints::new([wrong]), None, "{wrong}");
        }
        for wrong in
            ["", "aws-sts", "aws-sts=http://a", "other=https://a", "aws-sts=https://", "aws-sts=https://a@b"]
        {
            assert_eq!(CloudEndpoints::new([wrong]), None, "{wrong}");
        }
    }
}
