//! Built-in field specifications: fields of labels, annotations, images, names and references.
//!
//! These are kustomize's tables, mistakes included: the reference to an IngressClass has a group
//! that does not exist, so it is never updated.

use std::sync::LazyLock;

use super::configuration::{FieldSpec, FieldUse, References, sorted};
use super::id::Gvk;

/// Group, version, kind, path, and whether a missing field is created.
type Row = (&'static str, &'static str, &'static str, &'static str, bool);

const WORKLOADS: [(&str, &str, &str); 6] = [
    ("", "v1", "ReplicationController"),
    ("", "", "Deployment"),
    ("", "", "ReplicaSet"),
    ("", "", "DaemonSet"),
    ("apps", "", "StatefulSet"),
    ("batch", "", "Job"),
];

const TEMPLATE_LABELS: [Row; 4] = [
    ("", "", "", "metadata/labels", true),
    ("apps", "", "StatefulSet", "spec/volumeClaimTemplates[]/metadata/labels", true),
    ("batch", "", "CronJob", "spec/jobTemplate/metadata/labels", true),
    ("batch", "", "CronJob", "spec/jobTemplate/spec/template/metadata/labels", true),
];

const SELECTORS: [Row; 12] = [
    ("", "v1", "Service", "spec/selector", true),
    ("", "v1", "ReplicationController", "spec/selector", true),
    ("", "", "Deployment", "spec/selector/matchLabels", true),
    ("", "", "ReplicaSet", "spec/selector/matchLabels", true),
    ("", "", "DaemonSet", "spec/selector/matchLabels", true),
    ("apps", "", "StatefulSet", "spec/selector/matchLabels", true),
    ("batch", "", "Job", "spec/selector/matchLabels", false),
    ("batch", "", "CronJob", "spec/jobTemplate/spec/selector/matchLabels", false),
    ("policy", "", "PodDisruptionBudget", "spec/selector/matchLabels", false),
    ("networking.k8s.io", "", "NetworkPolicy", "spec/podSelector/matchLabels", false),
    ("networking.k8s.io", "", "NetworkPolicy", "spec/ingress/from/podSelector/matchLabels", false),
    ("networking.k8s.io", "", "NetworkPolicy", "spec/egress/to/podSelector/matchLabels", false),
];

/// Label selectors in the pod template of Deployments and StatefulSets.
const SPREADING: [&str; 5] = [
    "affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm/labelSelector/matchLabels",
    "affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/labelSelector/matchLabels",
    "affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm/labelSelector/matchLabels",
    "affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/labelSelector/matchLabels",
    "topologySpreadConstraints/labelSelector/matchLabels",
];

const ANNOTATIONS: [Row; 9] = [
    ("", "", "", "metadata/annotations", true),
    ("", "v1", "ReplicationController", "spec/template/metadata/annotations", true),
    ("", "", "Deployment", "spec/template/metadata/annotations", true),
    ("", "", "ReplicaSet", "spec/template/metadata/annotations", true),
    ("", "", "DaemonSet", "spec/template/metadata/annotations", true),
    ("", "", "StatefulSet", "spec/template/metadata/annotations", true),
    ("batch", "", "Job", "spec/template/metadata/annotations", true),
    ("batch", "", "CronJob", "spec/jobTemplate/metadata/annotations", true),
    ("batch", "", "CronJob", "spec/jobTemplate/spec/template/metadata/annotations", true),
];

const NAMESPACE: [Row; 3] = [
    ("", "", "Namespace", "metadata/name", true),
    ("apiregistration.k8s.io", "", "APIService", "spec/service/namespace", true),
    (
        "apiextensions.k8s.io",
        "",
        "CustomResourceDefinition",
        "spec/conversion/webhook/clientConfig/service/namespace",
        false,
    ),
];

const NAMES: [Row; 1] = [("", "", "", "metadata/name", false)];

const IMAGES: [Row; 6] = [
    ("", "", "", "spec/containers[]/image", true),
    ("", "", "", "spec/initContainers[]/image", true),
    ("", "", "", "spec/volumes[]/image/reference", true),
    ("", "", "", "spec/template/spec/containers[]/image", true),
    ("", "", "", "spec/template/spec/initContainers[]/image", true),
    ("", "", "", "spec/template/spec/volumes[]/image/reference", true),
];

const REPLICAS: [Row; 4] = [
    ("", "", "Deployment", "spec/replicas", true),
    ("", "", "ReplicationController", "spec/replicas", true),
    ("", "", "ReplicaSet", "spec/replicas", true),
    ("", "", "StatefulSet", "spec/replicas", true),
];

/// Fields with variables, below a pod spec.
const VARIABLES_OF_PODS: [&str; 8] = [
    "containers/args",
    "containers/command",
    "containers/env/value",
    "containers/volumeMounts/mountPath",
    "initContainers/args",
    "initContainers/command",
    "initContainers/env/value",
    "initContainers/volumeMounts/mountPath",
];

const VARIABLES: [Row; 16] = [
    ("", "", "CronJob", "spec/jobTemplate/spec/template/volumes/nfs/server", false),
    ("", "", "DaemonSet", "spec/template/spec/volumes/nfs/server", false),
    ("", "", "Deployment", "spec/template/spec/volumes/nfs/server", false),
    ("", "", "Deployment", "spec/template/metadata/annotations", false),
    ("", "", "Ingress", "spec/rules/host", false),
    ("", "", "Ingress", "spec/tls/hosts", false),
    ("", "", "Ingress", "spec/tls/secretName", false),
    ("", "", "Job", "spec/template/spec/volumes/nfs/server", false),
    ("", "", "Pod", "spec/volumes/nfs/server", false),
    ("", "", "ReplicaSet", "spec/template/spec/volumes/nfs/server", false),
    ("", "", "Service", "spec/ports/port", false),
    ("", "", "Service", "spec/ports/targetPort", false),
    ("", "", "StatefulSet", "spec/volumeClaimTemplates/spec/nfs/server", false),
    ("", "", "PersistentVolume", "spec/nfs/server", false),
    ("", "", "", "metadata/labels", false),
    ("", "", "", "metadata/annotations", false),
];

const POD: &str = "spec";
const TEMPLATE: &str = "spec/template/spec";
const CRON_JOB: &str = "spec/jobTemplate/spec/template/spec";

/// Path of the pod spec of each kind, for ConfigMaps, Secrets and variables.
const PODS: [(&str, &str); 8] = [
    ("Pod", POD),
    ("PodTemplate", "template/spec"),
    ("Deployment", TEMPLATE),
    ("ReplicaSet", TEMPLATE),
    ("DaemonSet", TEMPLATE),
    ("StatefulSet", TEMPLATE),
    ("Job", TEMPLATE),
    ("CronJob", CRON_JOB),
];

/// Path of the pod spec of each kind, for references that fewer kinds have.
const OTHER_PODS: [(&str, &str); 7] = [
    ("Pod", POD),
    ("StatefulSet", TEMPLATE),
    ("Deployment", TEMPLATE),
    ("ReplicationController", TEMPLATE),
    ("CronJob", CRON_JOB),
    ("Job", TEMPLATE),
    ("DaemonSet", TEMPLATE),
];

const CONFIG_MAPS_OF_PODS: [&str; 6] = [
    "volumes/configMap/name",
    "containers/env/valueFrom/configMapKeyRef/name",
    "initContainers/env/valueFrom/configMapKeyRef/name",
    "containers/envFrom/configMapRef/name",
    "initContainers/envFrom/configMapRef/name",
    "volumes/projected/sources/configMap/name",
];

const SECRETS_OF_PODS: [&str; 7] = [
    "volumes/secret/secretName",
    "containers/env/valueFrom/secretKeyRef/name",
    "initContainers/env/valueFrom/secretKeyRef/name",
    "containers/envFrom/secretRef/name",
    "initContainers/envFrom/secretRef/name",
    "imagePullSecrets/name",
    "volumes/projected/sources/secret/name",
];

const CONFIG_MAPS: [Row; 4] = [
    ("", "", "Node", "spec/configSource/configMap", false),
    ("", "", "Role", "rules/resourceNames", false),
    ("", "", "ClusterRole", "rules/resourceNames", false),
    ("", "", "Ingress", "metadata/annotations/nginx.ingress.kubernetes.io\\/fastcgi-params-configmap", false),
];

const SECRETS: [Row; 13] = [
    ("", "", "Ingress", "spec/tls/secretName", false),
    ("", "", "Ingress", "metadata/annotations/ingress.kubernetes.io\\/auth-secret", false),
    ("", "", "Ingress", "metadata/annotations/nginx.ingress.kubernetes.io\\/auth-secret", false),
    ("", "", "Ingress", "metadata/annotations/nginx.ingress.kubernetes.io\\/auth-tls-secret", false),
    ("", "", "ServiceAccount", "imagePullSecrets/name", false),
    ("", "", "StorageClass", "parameters/secretName", false),
    ("", "", "StorageClass", "parameters/adminSecretName", false),
    ("", "", "StorageClass", "parameters/userSecretName", false),
    ("", "", "StorageClass", "parameters/secretRef", false),
    ("", "", "Role", "rules/resourceNames", false),
    ("", "", "ClusterRole", "rules/resourceNames", false),
    (
        "serving.knative.dev",
        "v1",
        "Service",
        "spec/template/spec/containers/env/valueFrom/secretKeyRef/name",
        false,
    ),
    ("", "", "PersistentVolume", "spec/azureFile/secretName", false),
];

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// Group, version and kind of a target, and the fields that refer to it.
const OTHERS: [(TargetKind, &[Row]); 12] = [
    (("", "", "Deployment"), &[SCALED]),
    (("", "", "ReplicationController"), &[SCALED]),
    (("", "", "ReplicaSet"), &[SCALED]),
    (("", "", "StatefulSet"), &[SCALED]),
    (
        ("", "v1", "Service"),
        &[
            ("apps", "", "StatefulSet", "spec/serviceName", false),
            ("", "", "Ingress", "spec/rules/http/paths/backend/serviceName", false),
            ("", "", "Ingress", "spec/backend/serviceName", false),
            ("", "", "Ingress", "spec/rules/http/paths/backend/service/name", false),
            ("", "", "Ingress", "spec/defaultBackend/service/name", false),
            ("apiregistration.k8s.io", "", "APIService", "spec/service/name", false),
            (ADMISSION, "", "ValidatingWebhookConfiguration", "webhooks/clientConfig/service", false),
            (ADMISSION, "", "MutatingWebhookConfiguration", "webhooks/clientConfig/service", false),
        ],
    ),
    ((RBAC, "", "Role"), &[(RBAC, "", "RoleBinding", "roleRef/name", false)]),
    (
        (RBAC, "", "ClusterRole"),
        &[
            (RBAC, "", "RoleBinding", "roleRef/name", false),
            (RBAC, "", "ClusterRoleBinding", "roleRef/name", false),
        ],
    ),
    (
        ("", "v1", "PersistentVolume"),
        &[
            ("", "", "PersistentVolumeClaim", "spec/volumeName", false),
            ("", "", "ClusterRole", "rules/resourceNames", false),
        ],
    ),
    (
        ("storage.k8s.io", "v1", "StorageClass"),
        &[
            ("", "", "PersistentVolume", "spec/storageClassName", false),
            ("", "", "PersistentVolumeClaim", "spec/storageClassName", false),
            ("", "", "StatefulSet", "spec/volumeClaimTemplates/spec/storageClassName", false),
        ],
    ),
    (("networking.k8s.io/v1", "v1", "IngressClass"), &[("", "", "Ingress", "spec/ingressClassName", false)]),
    (
        (ADMISSION, "", "ValidatingAdmissionPolicy"),
        &[(ADMISSION, "", "ValidatingAdmissionPolicyBinding", "spec/policyName", false)],
    ),
    (
        ("", "v1", "ServiceAccount"),
        &[(RBAC, "", "RoleBinding", "subjects", false), (RBAC, "", "ClusterRoleBinding", "subjects", false)],
    ),
];

type TargetKind = (&'static str, &'static str, &'static str);
const SCALED: Row = ("", "", "HorizontalPodAutoscaler", "spec/scaleTargetRef/name", false);

/// A field of a pod spec that refers to another object.
const OF_PODS: [(TargetKind, &str); 3] = [
    (("", "v1", "ServiceAccount"), "serviceAccountName"),
    (("", "v1", "PersistentVolumeClaim"), "volumes/persistentVolumeClaim/claimName"),
    (("scheduling.k8s.io", "v1", "PriorityClass"), "priorityClassName"),
];

static COMMON_LABELS: LazyLock<Vec<FieldSpec>> = LazyLock::new(|| sorted(common_labels()));
static TEMPLATES: LazyLock<Vec<FieldSpec>> = LazyLock::new(|| sorted(template_labels()));
static COMMON_ANNOTATIONS: LazyLock<Vec<FieldSpec>> = LazyLock::new(|| of_rows(&ANNOTATIONS));
static NAMESPACES: LazyLock<Vec<FieldSpec>> = LazyLock::new(|| of_rows(&NAMESPACE));
static ALL_NAMES: LazyLock<Vec<FieldSpec>> = LazyLock::new(|| of_rows(&NAMES));
static ALL_IMAGES: LazyLock<Vec<FieldSpec>> = LazyLock::new(|| of_rows(&IMAGES));
static ALL_REPLICAS: LazyLock<Vec<FieldSpec>> = LazyLock::new(|| of_rows(&REPLICAS));
static ALL_VARIABLES: LazyLock<Vec<FieldSpec>> = LazyLock::new(|| sorted(variables()));
static REFERENCES: LazyLock<Vec<References>> = LazyLock::new(all_references);

/// Returns the fields of a transformer.
pub(super) fn fields(what: FieldUse) -> &'static [FieldSpec] {
    match what {
        FieldUse::NamePrefix | FieldUse::NameSuffix => &ALL_NAMES,
        FieldUse::Namespace => &NAMESPACES,
        FieldUse::CommonLabels => &COMMON_LABELS,
        FieldUse::Labels => &[],
        FieldUse::TemplateLabels => &TEMPLATES,
        FieldUse::CommonAnnotations => &COMMON_ANNOTATIONS,
        FieldUse::Variables => &ALL_VARIABLES,
        FieldUse::Images => &ALL_IMAGES,
        FieldUse::Replicas => &ALL_REPLICAS,
    }
}

/// Returns the fields that refer to objects.
pub(super) fn references() -> &'static [References] {
    &REFERENCES
}

fn gvk((group, version, kind): TargetKind) -> Gvk {
    Gvk { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
}

fn spec((group, version, kind, path, create): Row) -> FieldSpec {
    FieldSpec { gvk: gvk((group, version, kind)), path: path.to_owned(), create }
}

fn of_rows(rows: &[Row]) -> Vec<FieldSpec> {
    sorted(rows.iter().copied().map(spec).collect())
}

fn template_labels() -> Vec<FieldSpec> {
    let templates = WORKLOADS
        .iter()
        .map(|(group, version, kind)| spec((*group, *version, *kind, "spec/template/metadata/labels", true)));
    TEMPLATE_LABELS.iter().copied().map(spec).chain(templates).collect()
}

fn common_labels() -> Vec<FieldSpec> {
    let spreading = ["Deployment", "StatefulSet"].into_iter().flat_map(|kind| {
        SPREADING.iter().map(move |path| FieldSpec {
            gvk: gvk(("apps", "", kind)),
            path: format!("{TEMPLATE}/{path}"),
            create: false,
        })
    });
    SELECTORS.iter().copied().map(spec).chain(spreading).chain(template_labels()).collect()
}

/// Returns a field below the pod spec of a kind; a Pod is matched by its version.
fn field_of_pod((kind, pods): (&str, &str), path: &str) -> FieldSpec {
    FieldSpec {
        gvk: Gvk { kind: kind.to_owned(), ..Gvk::default() },
        path: format!("{pods}/{path}"),
        create: false,
    }
}

fn variables() -> Vec<FieldSpec> {
    let pods = PODS.into_iter().filter(|(kind, _)| *kind != "PodTemplate");
    let of_pods = pods.flat_map(|pods| VARIABLES_OF_PODS.iter().map(move |path| field_of_pod(pods, path)));
    VARIABLES.iter().copied().map(spec).chain(of_pods).collect()
}

fn all_references() -> Vec<References> {
    let of_pods = |paths: &[&str], rows: &[Row]| {
        let pods = PODS.into_iter().flat_map(|pods| paths.iter().map(move |path| field_of_pod(pods, path)));
        sorted(pods.chain(rows.iter().copied().map(spec)).collect())
    };
    let mut all = vec![
        References {
            target: gvk(("", "v1", "ConfigMap")),
            fields: of_pods(&CONFIG_MAPS_OF_PODS, &CONFIG_MAPS),
        },
        References { target: gvk(("", "v1", "Secret")), fields: of_pods(&SECRETS_OF_PODS, &SECRETS) },
    ];
    for (target, rows) in OTHERS {
        all.push(References { target: gvk(target), fields: of_rows(rows) });
    }
    for (target, path) in OF_PODS {
        let fields = OTHER_PODS.into_iter().map(|pods| field_of_pod(pods, path));
        match all.iter_mut().find(|known| known.target == gvk(target)) {
            Some(known) => known.fields.extend(fields),
            None => all.push(References { target: gvk(target), fields: fields.collect() }),
        }
    }
    all.sort_by_cached_key(|references| super::configuration::sort_key(&references.target));
    all
}
