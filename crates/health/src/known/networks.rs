//! Networks, network policies and ingress traffic.
//!
//! In: nothing.
//! Out: rules. Most of these kinds are read by a proxy that reports nothing; the reported states
//! are mostly refusals.

use super::super::Context;
use super::super::gateway;
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, Waits};
use super::rule::Reading::{Busy, Heeds, Needs, Odd as Reads, Refused, Trouble, Word as Says};
use super::rule::{Answer, Odd, Project, Silence, WORD, Word, reads, row, still};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "AWS controllers for traffic", rows: &[
        still("elbv2.k8s.aws", &["*"]),
        still("vpcresources.k8s.aws", &["*"]),
        still("crd.k8s.amazonaws.com", &["*"]),
    ]},
    Project { name: "Calico", rows: &[
        still("crd.projectcalico.org", &["*"]),
        still("projectcalico.org", &["*"]),
    ]},
    Project { name: "Cilium", rows: &[
        row("cilium.io", &["CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"], 5,
            reads(WhereWritten, &[Refused(&["Valid"])]).silent(Silence::Fine)),
        row("cilium.io", &["CiliumLoadBalancerIPPool"], 5, reads(WhereWritten, &[Trouble(&["cilium.io/PoolConflict"])]).silent(Silence::Fine)),
        still("cilium.io", &["*"]),
    ]},
    Project { name: "Contour", rows: &[
        row("projectcontour.io", &["HTTPProxy"], 5, reads(WhereWritten, &[
            Says(Word {
                at: "status.currentStatus",
                well: &["valid"],
                busy: &["NotReconciled"],
                wrong: &["invalid", "orphaned"],
                message: "status.description",
                ..WORD
            }),
            Heeds("Valid", Fails),
        ])),
        row("projectcontour.io", &["ExtensionService"], 5, reads(WhereWritten, &[Needs("Valid", Fails)])),
        still("projectcontour.io", &["TLSCertificateDelegation", "ContourConfiguration", "ContourDeployment"]),
    ]},
    Project { name: "Envoy Gateway", rows: &[
        row("gateway.envoyproxy.io", &[
            "BackendTrafficPolicy", "ClientTrafficPolicy", "SecurityPolicy", "EnvoyExtensionPolicy", "EnvoyPatchPolicy",
        ], 10, reads(Nowhere, &[Reads(Odd {
            words: "every ancestor of `status.ancestors` has `Accepted` True",
            answers: &[Answer::Degraded],
            judge: |live| Some(gateway::policy(live, &Context::default())),
        })]).silent(Silence::Fine)),
        row("gateway.envoyproxy.io", &["Backend"], 5, reads(WhereWritten, &[Refused(&["Accepted"])]).silent(Silence::Fine)),
        still("gateway.envoyproxy.io", &["EnvoyProxy", "HTTPRouteFilter"]),
    ]},
    Project { name: "ExternalDNS", rows: &[still("externaldns.k8s.io", &["DNSEndpoint"])] },
    Project { name: "GKE", rows: &[
        row("networking.gke.io", &["ManagedCertificate"], 60, reads(Nowhere, &[Says(Word {
            at: "status.certificateStatus",
            well: &["Active"],
            busy: &["Provisioning"],
            wrong: &[
                "FailedNotVisible", "FailedCaaChecking", "FailedCaaForbidden", "FailedRateLimited", "ProvisioningFailed",
                "ProvisioningFailedPermanently", "RenewalFailed",
            ],
            ..WORD
        })])),
        still("networking.gke.io", &["FrontendConfig", "GCPGatewayPolicy", "GCPBackendPolicy", "HealthCheckPolicy"]),
        still("cloud.google.com", &["BackendConfig"]),
    ]},
    Project { name: "Istio", rows: &[
        row("install.istio.io", &["IstioOperator"], 15, reads(Nowhere, &[Says(Word {
            at: "status.status",
            well: &["HEALTHY"],
            busy: &["NONE", "UPDATING", "RECONCILING"],
            wrong: &["ERROR", "ACTION_REQUIRED"],
            ..WORD
        })])),
        row("sailoperator.io", &["Istio", "IstioRevision", "IstioCNI", "ZTunnel"], 15, reads(WhereWritten, &[
            Needs("Reconciled", ByReason), Needs("Ready", Waits),
        ])),
        still("networking.istio.io", &["*"]),
        still("security.istio.io", &["*"]),
        still("telemetry.istio.io", &["*"]),
        still("extensions.istio.io", &["*"]),
        still("sailoperator.io", &["IstioRevisionTag"]),
    ]},
    Project { name: "Linkerd", rows: &[
        still("linkerd.io", &["*"]),
        still("policy.linkerd.io", &["*"]),
    ]},
    Project { name: "MetalLB", rows: &[
        row("metallb.io", &["MetalLB"], 10, reads(WhereWritten, &[Trouble(&["Degraded"]), Needs("Available", Waits), Busy(&["Progressing"])])),
        still("metallb.io", &["*"]),
    ]},
    Project { name: "Multus", rows: &[still("k8s.cni.cncf.io", &["NetworkAttachmentDefinition"])] },
    Project { name: "Traefik", rows: &[
        still("traefik.io", &["*"]),
        still("traefik.containo.us", &["*"]),
    ]},
];
