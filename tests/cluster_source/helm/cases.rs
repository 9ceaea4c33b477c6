//! Kustomizations with charts, each a literal tree.

/// One kustomization, in the folder `overlay`.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// A part of the refusal, where the tool refuses too.
    pub(crate) refused: Option<&'static str>,
}

pub(crate) const fn built(name: &'static str, files: &'static [(&'static str, &'static str)]) -> Case {
    Case { name, files, refused: None }
}

pub(crate) const fn refused(
    name: &'static str,
    refused: &'static str,
    files: &'static [(&'static str, &'static str)],
) -> Case {
    Case { name, files, refused: Some(refused) }
}

pub(crate) type File = (&'static str, &'static str);

pub(crate) const KUSTOMIZATION: &str = "overlay/kustomization.yaml";
pub(crate) const HEAD: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
pub(crate) const CHART: File = ("overlay/charts/web/Chart.yaml", HEAD);
pub(crate) const OWN_VALUES: &str =
    "color: red\nreplicas: 2\nlist: [1, 2]\nnested: {a: 1, b: {c: two}}\nempty: null\n";
pub(crate) const VALUES: File = ("overlay/charts/web/values.yaml", OWN_VALUES);
/// Input of templates, as text.
pub(crate) const SEEN: &str = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-seen
  annotations:
    port: 9102
    none:
data:
  values: {{ toJson .Values | quote }}
  release: {{ toJson .Release | quote }}
  version: {{ .Capabilities.KubeVersion.Version | quote }}
  has: {{ .Capabilities.APIVersions.Has "a.example.com/v1/A" | quote }}
"#;
pub(crate) const MAP: File = ("overlay/charts/web/templates/map.yaml", SEEN);
pub(crate) const WORKLOAD_TEXT: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  annotations: {}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: {{ .Release.Name }}
      containers:
      - name: web
        image: nginx:1.0
        envFrom: [{configMapRef: {name: {{ .Release.Name }}-seen}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: {{ .Release.Name }}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: default, namespace: elsewhere}]
"#;
pub(crate) const WORKLOAD: File = ("overlay/charts/web/templates/workload.yaml", WORKLOAD_TEXT);
pub(crate) const HOOK: File = (
    "overlay/charts/web/templates/hook.yaml",
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: before, annotations: {helm.sh/hook: pre-install}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: trial, annotations: {helm.sh/hook: test}}\n",
);
pub(crate) const DEFINITION: File = (
    "overlay/charts/web/crds/a.yaml",
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.a.example.com}\n",
);
pub(crate) const PLAIN: File =
    ("overlay/plain.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: plain}\n");
pub(crate) const PLACES: &[Case] = &[
    built(
        "a chart in the tree",
        &[CHART, VALUES, MAP, WORKLOAD, (KUSTOMIZATION, "helmCharts: [{name: web, releaseName: shop}]\n")],
    ),
    built(
        "without a name of a release",
        &[CHART, VALUES, MAP, (KUSTOMIZATION, "helmCharts: [{name: web}]\n")],
    ),
    built(
        "a namespace of its own",
        &[
            CHART,
            VALUES,
            MAP,
            WORKLOAD,
            PLAIN,
            (
                KUSTOMIZATION,
                "namespace: around\nresources: [plain.yaml]\nhelmCharts: [{name: web, releaseName: shop, namespace: inner}]\n",
            ),
        ],
    ),
    built(
        "the namespace of the kustomization",
        &[
            CHART,
            VALUES,
            MAP,
            WORKLOAD,
            PLAIN,
            (
                KUSTOMIZATION,
                "namespace: around\nresources: [plain.yaml]\nhelmCharts: [{name: web, releaseName: shop}]\n",
            ),
        ],
    ),
    built(
        "the namespace of the overlay",
        &[
            (KUSTOMIZATION, "namespace: around\nresources: [base]\n"),
            (
                "overlay/base/kustomization.yaml",
                "namePrefix: x-\nhelmCharts: [{name: web, releaseName: shop}]\n",
            ),
            ("overlay/base/charts/web/Chart.yaml", HEAD),
            ("overlay/base/charts/web/values.yaml", OWN_VALUES),
            ("overlay/base/charts/web/templates/map.yaml", SEEN),
            ("overlay/base/charts/web/templates/workload.yaml", WORKLOAD_TEXT),
        ],
    ),
    built(
        "two namespaces above a base",
        &[
            (KUSTOMIZATION, "namespace: outer\nresources: [middle]\n"),
            ("overlay/middle/kustomization.yaml", "namespace: inner\nresources: [base]\n"),
            ("overlay/middle/base/kustomization.yaml", "helmCharts: [{name: web, releaseName: shop}]\n"),
            ("overlay/middle/base/charts/web/Chart.yaml", HEAD),
            ("overlay/middle/base/charts/web/values.yaml", OWN_VALUES),
            ("overlay/middle/base/charts/web/templates/workload.yaml", WORKLOAD_TEXT),
        ],
    ),
    built(
        "a component with a chart",
        &[
            (KUSTOMIZATION, "namespace: around\nresources: [plain.yaml]\ncomponents: [part]\n"),
            PLAIN,
            (
                "overlay/part/kustomization.yaml",
                "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nhelmCharts: [{name: web, releaseName: shop}]\n",
            ),
            ("overlay/part/charts/web/Chart.yaml", HEAD),
            ("overlay/part/charts/web/values.yaml", OWN_VALUES),
            ("overlay/part/charts/web/templates/map.yaml", SEEN),
        ],
    ),
    built(
        "all that changes objects",
        &[
            CHART,
            VALUES,
            MAP,
            WORKLOAD,
            (
                KUSTOMIZATION,
                "namePrefix: a-\nnameSuffix: -z\nnamespace: around\ncommonLabels: {team: blue}\ncommonAnnotations: {note: \"1\"}\nlabels: [{pairs: {tier: front}}]\nimages: [{name: nginx, newTag: \"2.0\"}]\nreplicas: [{name: shop, count: 5}]\nhelmCharts: [{name: web, releaseName: shop}]\npatches:\n- target: {kind: Deployment}\n  patch: |\n    - {op: add, path: /metadata/annotations/more, value: \"yes\"}\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: shop-seen}\n    data: {has: null, added: word}\nreplacements:\n- source: {kind: ConfigMap, name: shop-seen, fieldPath: data.added}\n  targets: [{select: {kind: ServiceAccount}, fieldPaths: [metadata.labels.took], options: {create: true}}]\n",
            ),
        ],
    ),
    built(
        "what its annotations are, a patch may replace",
        &[
            CHART,
            VALUES,
            MAP,
            (
                KUSTOMIZATION,
                "namespace: around\nhelmCharts: [{name: web, releaseName: shop, namespace: inner}]\npatches:\n- patch: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: shop-seen, annotations: null}\n",
            ),
        ],
    ),
    built(
        "no hooks",
        &[
            CHART,
            VALUES,
            MAP,
            HOOK,
            DEFINITION,
            (KUSTOMIZATION, "helmCharts: [{name: web, releaseName: shop, skipHooks: true}]\n"),
        ],
    ),
    built(
        "no tests, but definitions",
        &[
            CHART,
            VALUES,
            MAP,
            HOOK,
            DEFINITION,
            (
                KUSTOMIZATION,
                "helmCharts: [{name: web, releaseName: shop, skipTests: true, includeCRDs: true, debug: true}]\n",
            ),
        ],
    ),
    built(
        "hooks and tests",
        &[
            CHART,
            VALUES,
            MAP,
            HOOK,
            DEFINITION,
            (KUSTOMIZATION, "helmCharts: [{name: web, releaseName: shop}]\n"),
        ],
    ),
    built(
        "what the server can do",
        &[
            CHART,
            VALUES,
            MAP,
            (
                KUSTOMIZATION,
                "helmCharts: [{name: web, releaseName: shop, kubeVersion: 1.29.3, apiVersions: [a.example.com/v1/A, b/v1]}]\n",
            ),
        ],
    ),
    built(
        "a template for the name",
        &[
            CHART,
            VALUES,
            MAP,
            (
                KUSTOMIZATION,
                "helmCharts: [{name: web, nameTemplate: '{{ printf \"%s-%s\" \"a\" \"b\" }}'}]\n",
            ),
        ],
    ),
    built(
        "another folder of charts",
        &[
            ("overlay/vendor/web/Chart.yaml", HEAD),
            ("overlay/vendor/web/values.yaml", OWN_VALUES),
            ("overlay/vendor/web/templates/map.yaml", SEEN),
            (
                KUSTOMIZATION,
                "helmGlobals: {chartHome: vendor, configHome: /nowhere}\nhelmCharts: [{name: web, releaseName: shop, version: 9.9.9}]\n",
            ),
        ],
    ),
    built(
        "a chart that was fetched before",
        &[
            ("overlay/charts/web-1.0.0/web/Chart.yaml", HEAD),
            ("overlay/charts/web-1.0.0/web/values.yaml", OWN_VALUES),
            ("overlay/charts/web-1.0.0/web/templates/map.yaml", SEEN),
            (
                KUSTOMIZATION,
                "helmCharts: [{name: web, releaseName: shop, version: 1.0.0, repo: 'https://charts.example.com'}]\n",
            ),
        ],
    ),
    built(
        "charts beside the kustomization",
        &[
            ("charts/web/Chart.yaml", HEAD),
            ("charts/web/values.yaml", OWN_VALUES),
            ("charts/web/templates/map.yaml", SEEN),
            ("overlay/one.yaml", "color: blue\n"),
            (
                KUSTOMIZATION,
                "helmGlobals: {chartHome: ../charts}\nhelmCharts: [{name: web, releaseName: shop, valuesFile: one.yaml}]\n",
            ),
        ],
    ),
    built(
        "a generator in place",
        &[
            CHART,
            VALUES,
            MAP,
            WORKLOAD,
            (
                KUSTOMIZATION,
                "namespace: around\ngenerators:\n- |\n  apiVersion: builtin\n  kind: HelmChartInflationGenerator\n  metadata: {name: whatever}\n  name: web\n  releaseName: shop\n  valuesInline: {color: blue}\n",
            ),
        ],
    ),
    built(
        "a generator in a file",
        &[
            ("overlay/vendor/web/Chart.yaml", HEAD),
            ("overlay/vendor/web/values.yaml", OWN_VALUES),
            ("overlay/vendor/web/templates/map.yaml", SEEN),
            (
                "overlay/gen.yaml",
                "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: whatever}\nname: web\nchartHome: vendor\nreleaseName: shop\nnamespace: inner\n",
            ),
            (KUSTOMIZATION, "generators: [gen.yaml]\n"),
        ],
    ),
    built(
        "two charts and a ConfigMap that is merged into one of theirs",
        &[
            CHART,
            VALUES,
            MAP,
            (
                KUSTOMIZATION,
                "helmCharts:\n- {name: web, releaseName: one}\n- {name: web, releaseName: two, namespace: x}\ngenerators:\n- |\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n  metadata: {name: one-seen}\n  behavior: merge\n  literals: [a=b]\n  options: {disableNameSuffixHash: true}\n",
            ),
        ],
    ),
    built(
        "a chart within a chart",
        &[
            CHART,
            VALUES,
            MAP,
            ("overlay/charts/web/charts/inner/Chart.yaml", "apiVersion: v2\nname: inner\nversion: 0.1.0\n"),
            ("overlay/charts/web/charts/inner/values.yaml", "deep: 1\n"),
            (
                "overlay/charts/web/charts/inner/templates/map.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: inner}\ndata: {deep: {{ .Values.deep | quote }}}\n",
            ),
            (
                KUSTOMIZATION,
                "helmCharts: [{name: web, releaseName: shop, valuesInline: {inner: {deep: 2}}}]\n",
            ),
        ],
    ),
    built(
        "an annotation that says that helm has made it",
        &[
            (
                "overlay/plain.yaml",
                "apiVersion: v1\nkind: Service\nmetadata: {name: plain, annotations: {kustomize.config.k8s.io/helm-generated: \"true\"}}\n",
            ),
            (KUSTOMIZATION, "namespace: around\nresources: [plain.yaml]\n"),
        ],
    ),
    built(
        "a list among what helm prints",
        &[
            CHART,
            VALUES,
            (
                "overlay/charts/web/templates/list.yaml",
                "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n",
            ),
            (KUSTOMIZATION, "namespace: around\nhelmCharts: [{name: web, releaseName: shop}]\n"),
        ],
    ),
];
