//! Traffic to Pods: Service and Ingress.
//!
//! In: a live object.
//! Out: its health.

use super::{Context, Health};
use crate::object_view::ObjectView;

/// Judges a Service: only one of type LoadBalancer has something to wait for.
pub(super) fn service(live: ObjectView<'_>, _: &Context) -> Health {
    let balanced = live.text(&["spec", "type"]) == Some("LoadBalancer");
    match balanced && live.items(&["status", "loadBalancer", "ingress"]).is_empty() {
        true => Health::progressing("its load balancer has no address yet"),
        false => Health::Healthy,
    }
}

/// Judges an Ingress as healthy. It reports no trouble, and many controllers never write its
/// address: a Sync that waited for one would wait forever.
pub(super) fn ingress(_: ObjectView<'_>, _: &Context) -> Health {
    Health::Healthy
}

#[cfg(test)]
mod tests {
    use crate::test_fixtures::check;

    #[test]
    fn a_service() {
        let check = |json: &str, expect: &str| check("Service", json, expect);
        let balancer = |status: &str| {
            format!(
                r#"{{"metadata": {{"generation": 2}}, "spec": {{"type": "LoadBalancer"}}, "status": {status}}}"#
            )
        };
        let waits = "Progressing: its load balancer has no address yet";
        check(r#"{"spec": {"type": "ClusterIP"}, "status": {"loadBalancer": {}}}"#, "Healthy");
        check(r#"{"spec": {"type": "ExternalName"}}"#, "Healthy");
        check("{}", "Healthy");
        check(&balancer(r#"{"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}"#), "Healthy");
        check(&balancer(r#"{"loadBalancer": {"ingress": [{"hostname": "a.example.com"}]}}"#), "Healthy");
        for status in [r#"{"loadBalancer": {}}"#, "{}", "null", r#"{"loadBalancer": {"ingress": []}}"#] {
            check(&balancer(status), waits);
        }
    }

    #[test]
    fn an_ingress() {
        let check = |json: &str, expect: &str| check("Ingress.networking.k8s.io", json, expect);
        check(r#"{"status": {"loadBalancer": {}}}"#, "Healthy");
        check(r#"{"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}"#, "Healthy");
        check("{}", "Healthy");
        let deleted = r#"{"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}"#;
        check(deleted, "Progressing: it is being deleted");
    }
}
