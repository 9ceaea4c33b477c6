// Records what kustomize's own libraries make of merges and JSON patches, as the tests beside the Rust code expect it.
//
// In: files of cases, one JSON object a line, with an object and a patch for it. Out: the same files with each answer: the
// object as patched under "gives", or under "is" that it is deleted or that the patch fails.
//
//	go run ./record merges.jsonl json_patches.jsonl
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"
)

// One case; the order of its fields is that in the files.
type example struct {
	Why    string          `json:"why"`
	Schema json.RawMessage `json:"schema,omitempty"`
	Object json.RawMessage `json:"object"`
	Patch  json.RawMessage `json:"patch"`
	Gives  json.RawMessage `json:"gives,omitempty"`
	Is     string          `json:"is,omitempty"`
}

func main() {
	for _, path := range os.Args[1:] {
		text, err := os.ReadFile(path)
		if err != nil {
			log.Fatal(err)
		}
		var out bytes.Buffer
		for number, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
			var one example
			if err := json.Unmarshal(line, &one); err != nil {
				log.Fatalf("%s:%d: %v", path, number+1, err)
			}
			one.Gives, one.Is = nil, ""
			answer(&one)
			encoder := json.NewEncoder(&out)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(one); err != nil {
				log.Fatalf("%s:%d: %v", path, number+1, err)
			}
		}
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// Some patches end the tool with a panic: to who builds, that is a failure as well.
func answer(one *example) {
	defer func() {
		if recover() != nil {
			one.Gives, one.Is = nil, "failed"
		}
	}()
	var err error
	if one.Patch[0] == '[' {
		err = jsonPatch(one)
	} else {
		err = merge(one)
	}
	if err != nil {
		one.Gives, one.Is = nil, "failed"
	}
}

func jsonPatch(one *example) error {
	patch, err := jsonpatch.DecodePatch(one.Patch)
	if err != nil {
		return err
	}
	one.Gives, err = patch.Apply(one.Object)
	return err
}

func merge(one *example) error {
	openapi.ResetOpenAPI()
	if one.Schema != nil {
		if err := openapi.SetSchema(nil, one.Schema, true); err != nil {
			return err
		}
	}
	object, patch := yaml.MustParse(string(one.Object)), yaml.MustParse(string(one.Patch))
	unquote(object.YNode())
	unquote(patch.YNode())
	options := yaml.MergeOptions{ListIncreaseDirection: yaml.MergeOptionsListPrepend}
	merged, err := merge2.Merge(patch, object, options)
	if err != nil {
		return err
	}
	if merged == nil || object.IsNilOrEmpty() {
		one.Is = "deleted"
		return nil
	}
	one.Gives, err = object.MarshalJSON()
	return err
}

// Writes texts as people do, without quotes where they need none: quotes stay where another value comes in.
func unquote(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode && node.Tag == yaml.NodeTagString {
		var plain any
		if yaml.Unmarshal([]byte(node.Value), &plain) == nil && fmt.Sprintf("%T %v", plain, plain) == "string "+node.Value {
			node.Style = 0
		}
	}
	for _, part := range node.Content {
		unquote(part)
	}
}
