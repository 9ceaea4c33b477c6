//! Kustomizations with charts that the tool refuses, and Moorline with words of its own.

use super::cases::{CHART, Case, HEAD, KUSTOMIZATION, MAP, OWN_VALUES, SEEN, VALUES, refused};

pub(crate) const REFUSED: &[Case] = &[
    refused(
        "no chart and no repo",
        "there is no chart charts/web",
        &[(KUSTOMIZATION, "helmCharts: [{name: web, releaseName: shop}]\n")],
    ),
    refused("no name", "a chart needs a name", &[(KUSTOMIZATION, "helmCharts: [{releaseName: shop}]\n")]),
    refused(
        "no values",
        "values.yaml",
        &[CHART, MAP, (KUSTOMIZATION, "helmCharts: [{name: web, releaseName: shop}]\n")],
    ),
    refused(
        "values beside the kustomization",
        "does not lie below the folder of its kustomization",
        &[
            ("charts/web/Chart.yaml", HEAD),
            ("charts/web/values.yaml", OWN_VALUES),
            ("charts/web/templates/map.yaml", SEEN),
            (
                KUSTOMIZATION,
                "helmGlobals: {chartHome: ../charts}\nhelmCharts: [{name: web, releaseName: shop}]\n",
            ),
        ],
    ),
    refused(
        "values of nothing",
        "holds nothing",
        &[
            CHART,
            ("overlay/charts/web/values.yaml", "# nothing\n"),
            MAP,
            (KUSTOMIZATION, "helmCharts: [{name: web, releaseName: shop, valuesInline: {a: 1}}]\n"),
        ],
    ),
    refused(
        "a word for merging that is none",
        "valuesMerge must be",
        &[
            CHART,
            VALUES,
            MAP,
            (KUSTOMIZATION, "helmCharts: [{name: web, releaseName: shop, valuesMerge: both}]\n"),
        ],
    ),
    refused(
        "a field that is none",
        "unknown field relaseName; did you mean releaseName?",
        &[CHART, VALUES, MAP, (KUSTOMIZATION, "helmCharts: [{name: web, relaseName: shop}]\n")],
    ),
    refused(
        "one object twice",
        "already",
        &[
            CHART,
            VALUES,
            MAP,
            (KUSTOMIZATION, "helmCharts: [{name: web, releaseName: shop}, {name: web, releaseName: shop}]\n"),
        ],
    ),
    refused(
        "a release that is a flag",
        "is not a release name",
        &[
            CHART,
            VALUES,
            MAP,
            (KUSTOMIZATION, "helmCharts: [{name: web, releaseName: --post-renderer=/bin/cat}]\n"),
        ],
    ),
    refused(
        "what helm refuses",
        "no red",
        &[
            CHART,
            VALUES,
            ("overlay/charts/web/templates/a.yaml", "{{ fail \"no red\" }}\n"),
            (KUSTOMIZATION, "helmCharts: [{name: web, releaseName: shop}]\n"),
        ],
    ),
];
