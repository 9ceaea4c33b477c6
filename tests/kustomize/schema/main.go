// Prints what a strategic merge must know of Kubernetes' own kinds, as crates/kustomize/src/schema/kubernetes.txt.
//
// In: the OpenAPI document of Kubernetes 1.21.2 in the form in which kustomize carries it. Out, on standard output: the
// scope of each kind, the definition of each kind, and of each definition the fields below which a merge can go. What
// a merge never looks into is left out: numbers and texts, and lists that are replaced whole.
//
//	go run ./schema > ../../crates/kustomize/src/schema/kubernetes.txt
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"slices"
	"sort"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/kustomize/kyaml/openapi/kubernetesapi"
)

const (
	version    = "v1_21_2"
	gvk        = "x-kubernetes-group-version-kind"
	strategy   = "x-kubernetes-patch-strategy"
	mergeKey   = "x-kubernetes-patch-merge-key"
	mapKeys    = "x-kubernetes-list-map-keys"
	refPrefix  = "#/definitions/"
	namePrefix = "io.k8s."
)

func main() {
	document := read()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	fmt.Fprintln(out, "# Made by tests/kustomize/schema from the OpenAPI document of Kubernetes 1.21.2.")
	fmt.Fprintln(out, "# scope: APIVERSION KIND c(luster) or n(amespaced). kind: APIVERSION KIND DEFINITION. definition: NAME FIELD:SHAPE...")
	fmt.Fprintln(out, "# SHAPE: a definition, . (nothing below it merges by key), {SHAPE} a map, [KEYS|SHAPE] a list that merges by its keys.")
	for _, line := range scopes(document.Paths) {
		fmt.Fprintln(out, line)
	}
	walk := walk{definitions: document.Definitions, seen: map[string]bool{}}
	for _, line := range walk.kinds() {
		fmt.Fprintln(out, line)
	}
	for _, line := range walk.reached() {
		fmt.Fprintln(out, line)
	}
}

func read() spec.Swagger {
	packed := kubernetesapi.OpenAPIMustAsset[kubernetesapi.DefaultOpenAPI]("kubernetesapi/" + version + "/swagger.pb")
	var message openapi_v2.Document
	if err := proto.Unmarshal(packed, &message); err != nil {
		log.Fatalf("the OpenAPI document cannot be read: %v", err)
	}
	var document spec.Swagger
	if _, err := document.FromGnostic(&message); err != nil {
		log.Fatalf("the OpenAPI document cannot be understood: %v", err)
	}
	return document
}

// The scope of each kind that has a path to read it: namespaced if any of its paths has a namespace.
func scopes(paths *spec.Paths) []string {
	found := map[string]string{}
	for path, item := range paths.Paths {
		if item.Get == nil {
			continue
		}
		kind, ok := kindOf(item.Get.Extensions[gvk])
		if !ok {
			continue
		}
		if strings.Contains(path, "namespaces/{namespace}") {
			found[kind] = "n"
		} else if found[kind] == "" {
			found[kind] = "c"
		}
	}
	lines := []string{}
	for kind, scope := range found {
		lines = append(lines, "scope "+kind+" "+scope)
	}
	sort.Strings(lines)
	return lines
}

func kindOf(extension any) (string, bool) {
	fields, ok := extension.(map[string]any)
	if !ok {
		return "", false
	}
	apiVersion := fields["version"].(string)
	if group, _ := fields["group"].(string); group != "" {
		apiVersion = group + "/" + apiVersion
	}
	return apiVersion + " " + fields["kind"].(string), true
}

// The walk from the kinds to the definitions below them.
type walk struct {
	definitions spec.Definitions
	seen        map[string]bool
}

// The definition of each kind. Lists of objects are taken apart before anything is merged, and options of requests, which
// have kinds too, in every group, are no objects.
func (w *walk) kinds() []string {
	lines := []string{}
	for name, definition := range w.definitions {
		if isList(definition) {
			continue
		}
		extensions, _ := definition.Extensions[gvk].([]any)
		for _, extension := range extensions {
			kind, ok := kindOf(extension)
			if !ok || strings.HasPrefix(name, namePrefix+"apimachinery.") {
				continue
			}
			if shape := w.named(name); shape != "" {
				lines = append(lines, "kind "+kind+" "+shape)
			}
		}
	}
	sort.Strings(lines)
	return lines
}

func isList(definition spec.Schema) bool {
	metadata := definition.Properties["metadata"]
	return strings.HasSuffix(metadata.Ref.String(), ".ListMeta")
}

// The definitions that the kinds lead to, each once.
func (w *walk) reached() []string {
	lines := map[string]string{}
	for more := true; more; {
		more = false
		for name := range w.seen {
			if lines[name] == "" {
				lines[name] = "definition " + short(name) + w.fields(w.definitions[name])
				more = true
			}
		}
	}
	sorted := []string{}
	for _, line := range lines {
		sorted = append(sorted, line)
	}
	sort.Strings(sorted)
	return sorted
}

func (w *walk) fields(definition spec.Schema) string {
	var text strings.Builder
	names := []string{}
	for name := range definition.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if shape := w.shape(definition.Properties[name]); shape != "" {
			text.WriteString(" " + name + ":" + shape)
		}
	}
	return text.String()
}

// What a merge must know of a field; nothing if it never looks into it.
func (w *walk) shape(schema spec.Schema) string {
	if ref := schema.Ref.String(); ref != "" {
		return w.named(strings.TrimPrefix(ref, refPrefix))
	}
	switch {
	case schema.Type.Contains("array"):
		return w.list(schema)
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		if shape := w.shape(*schema.AdditionalProperties.Schema); shape != "" {
			return "{" + shape + "}"
		}
		return "."
	case len(schema.Properties) > 0:
		log.Fatal("a field with fields of its own, without a definition")
	case schema.Type.Contains("object"):
		return "."
	}
	return ""
}

func (w *walk) list(schema spec.Schema) string {
	how, _ := schema.Extensions[strategy].(string)
	if !slices.Contains(strings.Split(how, ","), "merge") {
		return ""
	}
	keys := []string{}
	if many, ok := schema.Extensions[mapKeys].([]any); ok {
		for _, key := range many {
			keys = append(keys, key.(string))
		}
	} else if key, ok := schema.Extensions[mergeKey].(string); ok {
		keys = append(keys, key)
	}
	item := w.shape(*schema.Items.Schema)
	if item == "" {
		item = "."
	}
	return "[" + strings.Join(keys, ",") + "|" + item + "]"
}

// A definition by its name, followed as far as it is only another name for a text or a number.
func (w *walk) named(name string) string {
	definition, found := w.definitions[name]
	if !found {
		log.Fatalf("no definition %s", name)
	}
	if len(definition.Properties) == 0 {
		return w.shape(definition)
	}
	// Entered before its fields are looked at, because a definition may contain itself.
	if !w.seen[name] {
		w.seen[name] = true
		if w.fields(definition) == "" {
			delete(w.seen, name)
			return "."
		}
	}
	return short(name)
}

// A name without the path of the package in which it is.
func short(name string) string {
	name = strings.TrimPrefix(name, namePrefix)
	if _, rest, found := strings.Cut(name, "pkg.apis."); found {
		return rest
	}
	return strings.TrimPrefix(name, "api.")
}
