//! Kustomizations with charts: which values a chart gets.

use super::cases::{CHART, Case, KUSTOMIZATION, MAP, VALUES, built};

pub(crate) const VALUED: &[Case] = &[
    built(
        "files of values",
        &[
            CHART,
            VALUES,
            MAP,
            ("overlay/one.yaml", "color: blue\nnested: {b: {d: 4}}\nlist: null\n"),
            ("overlay/two.yaml", "color: green\n"),
            ("overlay/deep/three.yaml", "more: {than: that}\n"),
            (
                KUSTOMIZATION,
                "helmCharts: [{name: web, releaseName: shop, valuesFile: one.yaml, additionalValuesFiles: [two.yaml, deep/three.yaml]}]\n",
            ),
        ],
    ),
    built(
        "values in place over those of the chart",
        &[
            CHART,
            VALUES,
            MAP,
            (
                KUSTOMIZATION,
                "helmCharts:\n- name: web\n  releaseName: shop\n  valuesInline: {color: blue, list: [3], nested: {a: null, b: {c: 1.50}, e: true}, large: 10000000, text: \"yes\", date: \"2020-01-01\", nothing: null, map: {}, items: []}\n",
            ),
        ],
    ),
    built(
        "values in place beneath those of a file",
        &[
            CHART,
            VALUES,
            MAP,
            ("overlay/one.yaml", "color: blue\nnested: {b: {c: ~}}\n"),
            (
                KUSTOMIZATION,
                "helmCharts:\n- name: web\n  releaseName: shop\n  valuesFile: one.yaml\n  valuesMerge: merge\n  valuesInline: {color: green, nested: {a: 5, b: {c: 6, d: 7}}, more: 1}\n",
            ),
        ],
    ),
    built(
        "values in place alone",
        &[
            CHART,
            VALUES,
            MAP,
            ("overlay/one.yaml", "color: blue\nfile: true\n"),
            (
                KUSTOMIZATION,
                "helmCharts:\n- name: web\n  releaseName: shop\n  valuesFile: one.yaml\n  valuesMerge: replace\n  valuesInline: {nested: {a: 5}}\n",
            ),
        ],
    ),
    built(
        "files that are written in their own way",
        &[
            CHART,
            MAP,
            (
                "overlay/charts/web/values.yaml",
                "on: yes\noff: \"no\"\nmode: 0644\nhuge: 9007199254740993\nfloat: 1.50\nexp: 1e3\ntext: 'x'\nbase: &base {a: 1}\nuse: *base\nmerged: {<<: *base, b: 2}\nblock: |\n  lines\n  of text\nopen:\nquoted: \"5\"\n",
            ),
            (
                KUSTOMIZATION,
                "helmCharts: [{name: web, releaseName: shop, valuesInline: {added: 1, quoted: six}}]\n",
            ),
        ],
    ),
    built(
        "nulls that are written",
        &[
            CHART,
            MAP,
            ("overlay/charts/web/values.yaml", "tilde: ~\nword: null\na: {b: null, c: 1}\n"),
            (
                KUSTOMIZATION,
                "helmCharts: [{name: web, releaseName: shop, valuesInline: {added: null, a: {c: null}}}]\n",
            ),
        ],
    ),
    built(
        "directives among values",
        &[
            CHART,
            VALUES,
            MAP,
            (
                KUSTOMIZATION,
                "helmCharts:\n- name: web\n  releaseName: shop\n  valuesInline: {nested: {$patch: replace, z: 1}, list: [{$patch: delete}]}\n",
            ),
        ],
    ),
    built(
        "the same files as they are",
        &[
            CHART,
            MAP,
            (
                "overlay/charts/web/values.yaml",
                "on: yes\noff: \"no\"\nmode: 0644\nhuge: 9007199254740993\nfloat: 1.50\nexp: 1e3\ndate: 2020-01-01\nbase: &base {a: 1}\nmerged: {<<: *base, b: 2}\nopen:\n",
            ),
            (KUSTOMIZATION, "helmCharts: [{name: web, releaseName: shop}]\n"),
        ],
    ),
    built(
        "a number in the place of a text with quotes",
        &[
            CHART,
            MAP,
            ("overlay/charts/web/values.yaml", "a: \"text\"\nb: '5'\nc: \"true\"\n"),
            (
                KUSTOMIZATION,
                "helmCharts: [{name: web, releaseName: shop, valuesInline: {a: 1, b: true, c: 1.5}}]\n",
            ),
        ],
    ),
];
