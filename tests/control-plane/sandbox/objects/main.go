// Records what Kubernetes makes of objects before it keeps them, as tests/sandbox/objects.jsonl.
//
// In: tests/sandbox/objects.json, with schemas of definitions and with objects of these, or of Kubernetes' own kinds.
// Out, on standard output: a line for each object. Of a custom resource: which fields are pruned, what is left, what it
// is with its defaults, and what is wrong with that. Of another: what its decoder says.
//
//	go run ./sandbox/objects > ../sandbox/objects.jsonl
package main

import (
	"encoding/json"
	"log"
	"os"
	"sort"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane"
)

// Input is the file of objects.
type Input struct {
	Schemas map[string]json.RawMessage `json:"schemas"`
	Objects []Object                   `json:"objects"`
}

// Object is one object, and what is made of it.
type Object struct {
	Schema    string         `json:"schema,omitempty"`
	Object    map[string]any `json:"object"`
	Old       map[string]any `json:"old,omitempty"`
	Unknown   []string       `json:"unknown,omitempty"`
	Pruned    map[string]any `json:"pruned,omitempty"`
	Defaulted map[string]any `json:"defaulted,omitempty"`
	Problems  [][3]string    `json:"problems,omitempty"`
	Strict    string         `json:"strict,omitempty"`
	Decoded   string         `json:"decoded,omitempty"`
}

func main() {
	text, err := os.ReadFile("../sandbox/objects.json")
	if err != nil {
		log.Fatal(err)
	}
	input := Input{}
	if err := kjson.Unmarshal(text, &input); err != nil {
		log.Fatal(err)
	}
	encoder := json.NewEncoder(os.Stdout)
	for _, object := range input.Objects {
		// Whole numbers are integers, as where the API server reads JSON.
		object.Object = whole(object.Object)
		object.Old = whole(object.Old)
		if object.Schema == "" {
			builtin(&object)
		} else {
			custom(&object, input.Schemas[object.Schema])
		}
		if err := encoder.Encode(object); err != nil {
			log.Fatal(err)
		}
	}
}

func whole(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	text, err := json.Marshal(object)
	if err != nil {
		log.Fatal(err)
	}
	read := map[string]any{}
	if err := kjson.Unmarshal(text, &read); err != nil {
		log.Fatal(err)
	}
	return read
}

func custom(object *Object, schema json.RawMessage) {
	published := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal(schema, published); err != nil {
		log.Fatal(err)
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(published, props, nil); err != nil {
		log.Fatal(err)
	}
	tree, err := structural.NewStructural(props)
	if err != nil {
		log.Fatalf("%s: %v", object.Schema, err)
	}
	if errs := structural.ValidateStructural(nil, tree); len(errs) > 0 {
		log.Fatalf("%s: %v", object.Schema, errs)
	}
	object.Pruned = runtime.DeepCopyJSON(object.Object)
	object.Unknown = pruning.PruneWithOptions(object.Pruned, tree, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	object.Defaulted = runtime.DeepCopyJSON(object.Pruned)
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Defaulted, tree)
	defaulting.Default(object.Defaulted, tree)
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		log.Fatal(err)
	}
	var errs field.ErrorList
	if object.Old == nil {
		errs = validation.ValidateCustomResource(nil, object.Defaulted, validator)
	} else {
		errs = validation.ValidateCustomResourceUpdate(nil, object.Defaulted, object.Old, validator,
			validation.WithRatcheting(common.NewCorrelatedObject(object.Defaulted, object.Old, &model.Structural{Structural: tree})))
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, tree, object.Defaulted)...)
	for _, err := range errs {
		object.Problems = append(object.Problems, [3]string{string(err.Type), err.ErrorBody(), err.Field})
	}
	sort.Slice(object.Problems, func(i, j int) bool {
		a, b := object.Problems[i], object.Problems[j]
		return a[2]+a[1] < b[2]+b[1]
	})
}

func builtin(object *Object) {
	text, err := json.Marshal(object.Object)
	if err != nil {
		log.Fatal(err)
	}
	decode := func(strict bool) string {
		decoder := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, legacyscheme.Scheme, legacyscheme.Scheme, serializer.SerializerOptions{Strict: strict})
		if _, _, err := decoder.Decode(text, nil, nil); err != nil {
			return err.Error()
		}
		return ""
	}
	object.Decoded = decode(false)
	if object.Decoded == "" {
		object.Strict = decode(true)
	}
}
