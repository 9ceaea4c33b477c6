//! Reads the Secret of a Notifier, and checks that its content may be sent to the service.
//!
//! In: a Notifier. Out: the content, or the reason why there is none.
//!
//! The daemon can read more Secrets than the author of a Notifier, who names the receiver.
//! Therefore the Secret itself lists the hosts that may receive it, except in the namespace of the
//! daemon.

use super::super::Context;
use crate::api::HOSTS_ANNOTATION;
use crate::controller::credentials::secret_permission::lists_host;
use crate::notifications::{CompiledNotifier, ServiceSecret, needed_host};
use crate::source::SecretText;
use moorline_identity::SecretBytes;

/// Content of a Secret, with the certificate authorities of the service.
#[derive(Default)]
pub(super) struct SecretContent {
    pub(super) service: ServiceSecret,
    pub(super) authorities: Option<Vec<u8>>,
}

/// Reads the Secret that a Notifier names.
pub(super) async fn read_service_secret(
    context: &Context,
    notifier: &CompiledNotifier,
) -> Result<SecretContent, String> {
    let Some(secret) = &notifier.target.secret_ref else { return Ok(SecretContent::default()) };
    let (namespace, name) = (&notifier.namespace, &secret.name);
    let found = context.cluster.syncs().read_secret(namespace, name).await;
    let found = found.map_err(|failure| format!("the Secret {name} cannot be read: {failure}"))?;
    let found = found.ok_or_else(|| format!("there is no Secret {name} in {namespace}"))?;
    if found.holds_keys {
        return Err(format!("the Secret {name} has the keys of a daemon"));
    }
    let host = needed_host(notifier);
    let is_own = context.process.is_own(namespace);
    if !is_own && !found.hosts.as_deref().is_some_and(|hosts| lists_host(hosts, &host)) {
        return Err(format!(
            "the Secret {name} is not sent to {host}: it does not list that host; `kubectl annotate secret {name} -n {namespace} \
             {HOSTS_ANNOTATION}={host}` lets every Notifier and Sync of the namespace use it for that host"
        ));
    }
    let mut content = SecretContent::default();
    for (key, value) in found.data {
        let text =
            || String::from_utf8(value.clone()).ok().map(|text| SecretText::new(text.trim().to_owned()));
        match key.as_str() {
            "token" => content.service.token = text(),
            "url" => content.service.url = text(),
            "hmac" => content.service.hmac = Some(SecretBytes::new(value)),
            "ca.crt" => content.authorities = Some(value),
            _ => {}
        }
    }
    Ok(content)
}
