//! Networks, network policies and ingress traffic.
//!
//! In: nothing.
//! Out: rules. Most of these kinds are read by a proxy that reports nothing; the reported states
//! are mostly refusals.

use super::super::Context;
use super::super::gateway;
use super::rule::Check::{
    Custom as Reads, FailedIfFalse, FailedIfTrue, IfReported, Phase as Reporting, ProgressingIfTrue, Required,
};
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, Waits};
use super::rule::{
    CustomCheck, MissingStatus, PHASE_DEFAULTS, PhaseCheck, Project, Verdict, kind_rule, no_status,
    status_rule,
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "AWS controllers for traffic", rows: &[
        no_status("elbv2.k8s.aws", &["*"]),
        no_status("vpcresources.k8s.aws", &["*"]),
        no_status("crd.k8s.amazonaws.com", &["*"]),
    ]},
    Project { name: "Calico", rows: &[
        no_status("crd.projectcalico.org", &["*"]),
        no_status("projectcalico.org", &["*"]),
    ]},
    Project { name: "Cilium", rows: &[
        kind_rule("cilium.io", &["CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"], 5,
            status_rule(WhereWritten, &[FailedIfFalse(&["Valid"])]).with_missing_status(MissingStatus::Healthy)),
        kind_rule("cilium.io", &["CiliumLoadBalancerIPPool"], 5, status_rule(WhereWritten, &[FailedIfTrue(&["cilium.io/PoolConflict"])]).with_missing_status(MissingStatus::Healthy)),
        no_status("cilium.io", &["*"]),
    ]},
    Project { name: "Contour", rows: &[
        kind_rule("projectcontour.io", &["HTTPProxy"], 5, status_rule(WhereWritten, &[
            Reporting(PhaseCheck {
                path: "status.currentStatus",
                healthy: &["valid"],
                progressing: &["NotReconciled"],
                failed: &["invalid", "orphaned"],
                message: "status.description",
                ..PHASE_DEFAULTS
            }),
            IfReported("Valid", Fails),
        ])),
        kind_rule("projectcontour.io", &["ExtensionService"], 5, status_rule(WhereWritten, &[Required("Valid", Fails)])),
        no_status("projectcontour.io", &["TLSCertificateDelegation", "ContourConfiguration", "ContourDeployment"]),
    ]},
    Project { name: "Envoy Gateway", rows: &[
        kind_rule("gateway.envoyproxy.io", &[
            "BackendTrafficPolicy", "ClientTrafficPolicy", "SecurityPolicy", "EnvoyExtensionPolicy", "EnvoyPatchPolicy",
        ], 10, status_rule(Nowhere, &[Reads(CustomCheck {
            description: "every ancestor of `status.ancestors` has `Accepted` True",
            verdicts: &[Verdict::Degraded],
            judge: |live| Some(gateway::policy(live, &Context::default())),
        })]).with_missing_status(MissingStatus::Healthy)),
        kind_rule("gateway.envoyproxy.io", &["Backend"], 5, status_rule(WhereWritten, &[FailedIfFalse(&["Accepted"])]).with_missing_status(MissingStatus::Healthy)),
        no_status("gateway.envoyproxy.io", &["EnvoyProxy", "HTTPRouteFilter"]),
    ]},
    Project { name: "ExternalDNS", rows: &[no_status("externaldns.k8s.io", &["DNSEndpoint"])] },
    Project { name: "GKE", rows: &[
        kind_rule("networking.gke.io", &["ManagedCertificate"], 60, status_rule(Nowhere, &[Reporting(PhaseCheck {
            path: "status.certificateStatus",
            healthy: &["Active"],
            progressing: &["Provisioning"],
            failed: &[
                "FailedNotVisible", "FailedCaaChecking", "FailedCaaForbidden", "FailedRateLimited", "ProvisioningFailed",
                "ProvisioningFailedPermanently", "RenewalFailed",
            ],
            ..PHASE_DEFAULTS
        })])),
        no_status("networking.gke.io", &["FrontendConfig", "GCPGatewayPolicy", "GCPBackendPolicy", "HealthCheckPolicy"]),
        no_status("cloud.google.com", &["BackendConfig"]),
    ]},
    Project { name: "Istio", rows: &[
        kind_rule("install.istio.io", &["IstioOperator"], 15, status_rule(Nowhere, &[Reporting(PhaseCheck {
            path: "status.status",
            healthy: &["HEALTHY"],
            progressing: &["NONE", "UPDATING", "RECONCILING"],
            failed: &["ERROR", "ACTION_REQUIRED"],
            ..PHASE_DEFAULTS
        })])),
        kind_rule("sailoperator.io", &["Istio", "IstioRevision", "IstioCNI", "ZTunnel"], 15, status_rule(WhereWritten, &[
            Required("Reconciled", ByReason), Required("Ready", Waits),
        ])),
        no_status("networking.istio.io", &["*"]),
        no_status("security.istio.io", &["*"]),
        no_status("telemetry.istio.io", &["*"]),
        no_status("extensions.istio.io", &["*"]),
        no_status("sailoperator.io", &["IstioRevisionTag"]),
    ]},
    Project { name: "Linkerd", rows: &[
        no_status("linkerd.io", &["*"]),
        no_status("policy.linkerd.io", &["*"]),
    ]},
    Project { name: "MetalLB", rows: &[
        kind_rule("metallb.io", &["MetalLB"], 10, status_rule(WhereWritten, &[FailedIfTrue(&["Degraded"]), Required("Available", Waits), ProgressingIfTrue(&["Progressing"])])),
        no_status("metallb.io", &["*"]),
    ]},
    Project { name: "Multus", rows: &[no_status("k8s.cni.cncf.io", &["NetworkAttachmentDefinition"])] },
    Project { name: "Traefik", rows: &[
        no_status("traefik.io", &["*"]),
        no_status("traefik.containo.us", &["*"]),
    ]},
];
