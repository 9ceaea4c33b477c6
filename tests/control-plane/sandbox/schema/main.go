// Prints what the sandbox must know of the types of Kubernetes' own kinds, as src/sandbox/schema/kubernetes.txt.
//
// In: the versioned Go types of Kubernetes, and the OpenAPI definitions that are generated from them. Out, in the folder
// that is named, as text and packed: each kind that is served by default, and each type below it once, with its fields. Go says how a
// field is written (left out when empty, a pointer); OpenAPI says how it is merged and what is set where it is absent.
//
//	go run ./sandbox/schema ../../src/sandbox/schema
package main

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"

	apiextensionsinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	aggregatorinstall "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

const head = `# Made by tests/control-plane/sandbox/schema from the types of Kubernetes 1.36.3.
# kind GROUP/VERSION KIND [TYPE, unless it is called like the kind]; type NAME FIELD...; @NAME: a type that is replaced whole.
# FIELD: NAME FLAGS [:SHAPE] [=DEFAULT] [#ENUM|ENUM...] [~PATCH STRATEGY[/MERGE KEY]], without the spaces.
# FLAGS: * pointer, ! written even when empty, ^ left out when zero (omitzero), + required.
# SHAPE, s where there is none: s string, i int32, l int64, n float, b boolean, q quantity, x integer or string, t time,
# m time with microseconds, d duration, y bytes, a anything, r anything that is replaced whole, NAME a type, {SHAPE} a map,
# [SHAPE] a list that is replaced whole, [%SHAPE] a set, [KEYS|SHAPE] a list with keys; @ before it: replaced whole.
# PATCH STRATEGY: m merge, r retainKeys.
`

// Types that are one value in JSON, whatever they are in Go.
var values = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():                            "q",
	reflect.TypeFor[intstr.IntOrString]():                           "x",
	reflect.TypeFor[metav1.Time]():                                  "t",
	reflect.TypeFor[metav1.MicroTime]():                             "m",
	reflect.TypeFor[metav1.Duration]():                              "d",
	reflect.TypeFor[metav1.FieldsV1]():                              "a",
	reflect.TypeFor[runtime.RawExtension]():                         "r",
	reflect.TypeFor[[]byte]():                                       "y",
	reflect.TypeFor[apiextensionsv1.JSON]():                         "a",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        "a",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       "a",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "a",
}

var kinds = map[reflect.Kind]string{
	reflect.String: "s", reflect.Bool: "b", reflect.Int32: "i", reflect.Int: "l", reflect.Int64: "l", reflect.Float64: "n",
}

// A version that is served without being asked for.
var stable = regexp.MustCompile(`^v[0-9]+$`)

type recorder struct {
	definitions map[string]common.OpenAPIDefinition
	names       map[reflect.Type]string
}

func main() {
	apiextensionsinstall.Install(legacyscheme.Scheme)
	aggregatorinstall.Install(legacyscheme.Scheme)
	ref := func(path string) spec.Ref { return spec.MustCreateRef("#/" + path) }
	r := recorder{definitions: openapi.GetOpenAPIDefinitions(ref), names: map[reflect.Type]string{}}
	found := served()
	r.name(found)
	out := &bytes.Buffer{}
	fmt.Fprint(out, head)
	lines := []string{}
	for kind, goType := range found {
		line := fmt.Sprintf("kind %s %s", kind.GroupVersion(), kind.Kind)
		if name := r.names[goType]; name != kind.Kind {
			line += " " + name
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	lines = lines[:0]
	for goType := range r.names {
		lines = append(lines, r.line(goType))
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	write(out.Bytes())
}

// Writes the table for people, and packed for the program.
func write(text []byte) {
	packed := &bytes.Buffer{}
	packer, err := flate.NewWriter(packed, flate.BestCompression)
	if err == nil {
		_, err = packer.Write(text)
	}
	if err == nil {
		err = packer.Close()
	}
	for name, content := range map[string][]byte{"kubernetes.txt": text, "kubernetes.deflate": packed.Bytes()} {
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], name), content, 0o644)
		}
	}
	if err != nil {
		log.Fatal(err)
	}
}

// The kinds that are objects, or are sent like objects.
func served() map[schema.GroupVersionKind]reflect.Type {
	found := map[schema.GroupVersionKind]reflect.Type{}
	for kind, goType := range legacyscheme.Scheme.AllKnownTypes() {
		metadata, ok := goType.FieldByName("ObjectMeta")
		if ok && metadata.Type == reflect.TypeFor[metav1.ObjectMeta]() && stable.MatchString(kind.Version) {
			found[kind] = goType
		}
	}
	return found
}

// Names all types that the kinds lead to: by their own name, and by that of their package where two have the same.
func (r *recorder) name(found map[schema.GroupVersionKind]reflect.Type) {
	seen := map[reflect.Type]bool{}
	var visit func(goType reflect.Type)
	visit = func(goType reflect.Type) {
		switch {
		case values[goType] != "":
		case slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, goType.Kind()):
			visit(goType.Elem())
		case goType.Kind() == reflect.Struct && !seen[goType]:
			seen[goType] = true
			for _, field := range fields(goType) {
				visit(field.Type)
			}
		}
	}
	for _, goType := range found {
		visit(goType)
	}
	same := map[string]int{}
	for goType := range seen {
		same[goType.Name()]++
	}
	for goType := range seen {
		r.names[goType] = goType.Name()
		if same[goType.Name()] > 1 {
			path := strings.Split(goType.PkgPath(), "/")
			r.names[goType] += "@" + strings.Join(path[len(path)-2:], ".")
		}
	}
}

// The fields of a type as JSON has them: those of embedded types are its own.
func fields(goType reflect.Type) []reflect.StructField {
	found := []reflect.StructField{}
	for i := range goType.NumField() {
		field := goType.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case field.Anonymous && name == "" || strings.Contains(options, "inline"):
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			found = append(found, fields(inner)...)
		default:
			found = append(found, field)
		}
	}
	return found
}

func (r *recorder) definition(goType reflect.Type) spec.Schema {
	name := ""
	if named, ok := reflect.New(goType).Interface().(interface{ OpenAPIModelName() string }); ok {
		name = named.OpenAPIModelName()
	}
	definition, ok := r.definitions[name]
	if !ok {
		log.Fatalf("no definition of %v (%q)", goType, name)
	}
	return definition.Schema
}

func (r *recorder) line(goType reflect.Type) string {
	definition := r.definition(goType)
	line := "type " + atomic(definition) + r.names[goType]
	texts := []string{}
	for _, field := range fields(goType) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		property, ok := definition.Properties[name]
		if !ok {
			log.Fatalf("%v.%s is in no definition", goType, name)
		}
		delete(definition.Properties, name)
		text := name
		if field.Type.Kind() == reflect.Pointer {
			text += "*"
		}
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			text += "!"
		}
		if strings.Contains(options, "omitzero") {
			text += "^"
		}
		if slices.Contains(definition.Required, name) {
			text += "+"
		}
		if shape := r.shape(field.Type, property); shape != "s" {
			text += ":" + shape
		}
		texts = append(texts, text+standard(property)+enum(property)+patch(field))
	}
	for name := range definition.Properties {
		log.Fatalf("%v has no field %s", goType, name)
	}
	sort.Strings(texts)
	return line + " " + strings.Join(texts, " ")
}

func atomic(property spec.Schema) string {
	if property.Extensions["x-kubernetes-map-type"] == "atomic" {
		return "@"
	}
	return ""
}

func (r *recorder) shape(goType reflect.Type, property spec.Schema) string {
	if goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	if letter := values[goType]; letter != "" {
		return letter
	}
	switch goType.Kind() {
	case reflect.Struct:
		return atomic(property) + r.names[goType]
	case reflect.Map:
		return atomic(property) + "{" + r.shape(goType.Elem(), *property.AdditionalProperties.Schema) + "}"
	case reflect.Slice:
		return "[" + listType(property) + r.shape(goType.Elem(), *property.Items.Schema) + "]"
	}
	letter, ok := kinds[goType.Kind()]
	if !ok {
		log.Fatalf("%v is a type of which nothing is known", goType)
	}
	return letter
}

// As the API server understands it: where no type of list is said, the patch strategy says it.
func listType(property spec.Schema) string {
	switch property.Extensions["x-kubernetes-list-type"] {
	case "map":
		keys, _ := property.Extensions["x-kubernetes-list-map-keys"].([]any)
		texts := []string{}
		for _, key := range keys {
			texts = append(texts, key.(string))
		}
		return strings.Join(texts, ",") + "|"
	case "set":
		return "%"
	case nil:
		strategy, _ := property.Extensions["x-kubernetes-patch-strategy"].(string)
		if !strings.HasPrefix(strategy, "merge") {
			return ""
		}
		if key, ok := property.Extensions["x-kubernetes-patch-merge-key"].(string); ok {
			return key + "|"
		}
		return "%"
	}
	return ""
}

// What is set where the field is absent. That it is empty then is said by its type.
func standard(property spec.Schema) string {
	value := reflect.ValueOf(property.Default)
	if !value.IsValid() || value.IsZero() {
		return ""
	}
	if value.Kind() == reflect.Map && value.Len() == 0 {
		return ""
	}
	text, err := json.Marshal(property.Default)
	if err != nil {
		log.Fatal(err)
	}
	return "=" + strings.ReplaceAll(string(text), " ", `\u0020`)
}

func enum(property spec.Schema) string {
	texts := []string{}
	for _, value := range property.Enum {
		texts = append(texts, fmt.Sprint(value))
	}
	if len(texts) == 0 {
		return ""
	}
	return "#" + strings.Join(texts, "|")
}

func patch(field reflect.StructField) string {
	text := ""
	for _, strategy := range strings.Split(field.Tag.Get("patchStrategy"), ",") {
		switch strategy {
		case "merge":
			text += "m"
		case "retainKeys":
			text += "r"
		case "", "replace":
		default:
			log.Fatalf("%s has a patch strategy of which nothing is known", field.Name)
		}
	}
	if text == "" {
		return ""
	}
	if key := field.Tag.Get("patchMergeKey"); key != "" {
		return "~" + text + "/" + key
	}
	return "~" + text
}
