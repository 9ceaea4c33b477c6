//! Finds the version in which an API server serves MutatingAdmissionPolicies.
//!
//! In: a client of an administrator.
//! Out: a group and version, such as `admissionregistration.k8s.io/v1`.

use kube::Client;

const GROUP: &str = "admissionregistration.k8s.io";

/// Returns group and version of MutatingAdmissionPolicies: v1 since 1.36, v1beta1 before.
pub async fn mutating_policy_version(admin: &Client) -> String {
    let list = admin.list_api_group_resources(&format!("{GROUP}/v1")).await.expect("the resources of v1");
    let is_served = list.resources.iter().any(|resource| resource.kind == "MutatingAdmissionPolicy");
    format!("{GROUP}/{}", if is_served { "v1" } else { "v1beta1" })
}
