package main

import (
	"encoding/json"
	"fmt"
	"log"
	"math/rand"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

// kind is a kind of object and how it is written to.
type kind struct {
	name     string
	gvk      schema.GroupVersionKind
	fields   func(chance *rand.Rand) map[string]any
	managers map[string]*managedfields.FieldManager
	custom   bool
}

func kinds() []*kind {
	converter := builtinConverter()
	found := []*kind{
		builtin(converter, "v1", "ConfigMap", configMap),
		builtin(converter, "apps/v1", "Deployment", deployment, "status"),
		builtin(converter, "v1", "Service", service, "status"),
		builtin(converter, "rbac.authorization.k8s.io/v1", "Role", role),
	}
	return append(found, custom())
}

// The types of Kubernetes' own kinds, as the API server has them for its field manager.
func builtinConverter() managedfields.TypeConverter {
	ref := func(path string) spec.Ref { return spec.MustCreateRef("#/definitions/" + path) }
	definitions := map[string]*spec.Schema{}
	for name, definition := range openapi.GetOpenAPIDefinitions(ref) {
		definitions[name] = &definition.Schema
	}
	for gvk := range legacyscheme.Scheme.AllKnownTypes() {
		object, err := legacyscheme.Scheme.New(gvk)
		if err != nil {
			log.Fatal(err)
		}
		named, ok := object.(interface{ OpenAPIModelName() string })
		if !ok || definitions[named.OpenAPIModelName()] == nil || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		definitions[named.OpenAPIModelName()].AddExtension("x-kubernetes-group-version-kind", []any{
			map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
		})
	}
	converter, err := managedfields.NewTypeConverter(definitions, false)
	if err != nil {
		log.Fatal(err)
	}
	return converter
}

func builtin(converter managedfields.TypeConverter, apiVersion, name string, fields func(*rand.Rand) map[string]any, subresources ...string) *kind {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		log.Fatal(err)
	}
	k := &kind{name: name, gvk: version.WithKind(name), fields: fields, managers: map[string]*managedfields.FieldManager{}}
	for _, subresource := range append([]string{""}, subresources...) {
		var filter = exclude(apiVersion, "spec")
		if subresource == "" {
			filter = exclude(apiVersion, "status")
		}
		manager, err := managedfields.NewDefaultFieldManager(converter, legacyscheme.Scheme, noDefaults{}, legacyscheme.Scheme, k.gvk, version, subresource, filter)
		if err != nil {
			log.Fatal(err)
		}
		k.managers[subresource] = manager
	}
	return k
}

// Defaults are set after what is recorded here.
type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

func (k *kind) empty() runtime.Object {
	if k.custom {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(k.gvk)
		return object
	}
	object, err := legacyscheme.Scheme.New(k.gvk)
	if err != nil {
		log.Fatal(err)
	}
	return object
}

func (k *kind) decode(object map[string]any) runtime.Object {
	object = runtime.DeepCopyJSON(object)
	if k.custom {
		return &unstructured.Unstructured{Object: object}
	}
	typed := k.empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed); err != nil {
		log.Fatalf("%s: %v", k.name, err)
	}
	return typed
}

func (k *kind) encode(object runtime.Object) map[string]any {
	if custom, ok := object.(*unstructured.Unstructured); ok {
		return custom.Object
	}
	object.GetObjectKind().SetGroupVersionKind(k.gvk)
	text, err := json.Marshal(object)
	if err != nil {
		log.Fatal(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		log.Fatal(err)
	}
	return whole(fields).(map[string]any)
}

// Whole numbers are integers, as where the API server reads JSON.
func whole(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			value[name] = whole(value[name])
		}
	case []any:
		for at := range value {
			value[at] = whole(value[at])
		}
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	}
	return value
}

// The custom resource: one field of every sort that merges in its own way. tests/sandbox/widgets.json is its definition.
const definition = "../sandbox/widgets.json"

func custom() *kind {
	text, err := readDefinition()
	if err != nil {
		log.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(text, crd); err != nil {
		log.Fatal(err)
	}
	version := schema.GroupVersion{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name}
	document, err := builder.BuildOpenAPIV3(crd, version.Version, builder.Options{})
	if err != nil {
		log.Fatal(err)
	}
	converter, err := managedfields.NewTypeConverter(document.Components.Schemas, false)
	if err != nil {
		log.Fatal(err)
	}
	k := &kind{name: crd.Spec.Names.Kind, gvk: version.WithKind(crd.Spec.Names.Kind), fields: widget, custom: true, managers: map[string]*managedfields.FieldManager{}}
	for subresource, reset := range map[string]string{"": "status", "status": "spec"} {
		manager, err := managedfields.NewDefaultCRDFieldManager(converter, unchanged{}, noDefaults{}, creator{}, k.gvk, version, subresource, exclude(version.String(), reset))
		if err != nil {
			log.Fatal(err)
		}
		k.managers[subresource] = manager
	}
	return k
}

// Custom resources of one version are never converted.
type unchanged struct{}

func (unchanged) Convert(in, out, context any) error { return fmt.Errorf("nothing is converted") }

func (unchanged) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (unchanged) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

type creator struct{}

func (creator) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object, nil
}
