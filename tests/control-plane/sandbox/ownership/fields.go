package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
)

func readDefinition() ([]byte, error) { return os.ReadFile(definition) }

// Some of the fields, each with a value by chance.
func some(chance *rand.Rand, fields map[string]func() any) map[string]any {
	chosen := map[string]any{}
	for _, name := range sorted(fields) {
		if chance.Intn(3) > 0 {
			chosen[name] = fields[name]()
		}
	}
	return chosen
}

func sorted[T any](fields map[string]T) []string {
	names := []string{}
	for name := range fields {
		names = append(names, name)
	}
	for i := range names {
		for j := i; j > 0 && names[j] < names[j-1]; j-- {
			names[j], names[j-1] = names[j-1], names[j]
		}
	}
	return names
}

func one[T any](chance *rand.Rand, values ...T) func() any {
	return func() any { return values[chance.Intn(len(values))] }
}

// A list of some of the items, in an order by chance.
func list(chance *rand.Rand, count int, item func(at int) any) func() any {
	return func() any {
		items := []any{}
		for _, at := range chance.Perm(count)[:chance.Intn(count+1)] {
			items = append(items, item(at))
		}
		return items
	}
}

func texts(chance *rand.Rand, names ...string) func() any {
	return func() any {
		fields := map[string]any{}
		for _, name := range names {
			if chance.Intn(2) == 0 {
				fields[name] = fmt.Sprint("v", chance.Intn(2))
			}
		}
		return fields
	}
}

func metadata(chance *rand.Rand) func() any {
	return func() any {
		fields := some(chance, map[string]func() any{
			"labels":      texts(chance, "a", "b", "c.d/e"),
			"annotations": texts(chance, "n", "o/p"),
			"finalizers":  list(chance, 2, func(at int) any { return fmt.Sprintf("f.io/%d", at) }),
		})
		if chance.Intn(6) == 0 {
			fields["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": fmt.Sprint(chance.Intn(2))}}
		}
		return fields
	}
}

func configMap(chance *rand.Rand) map[string]any {
	return some(chance, map[string]func() any{
		"metadata":   metadata(chance),
		"data":       texts(chance, "a", "b", "c", "d.e"),
		"binaryData": func() any { return map[string]any{"z": "aGk="} },
		"immutable":  one(chance, false),
	})
}

func container(chance *rand.Rand) func(at int) any {
	return func(at int) any {
		fields := some(chance, map[string]func() any{
			"image": one(chance, "i:1", "i:2"),
			"args":  list(chance, 2, func(at int) any { return fmt.Sprint("-", at) }),
			"env": list(chance, 3, func(at int) any {
				fields := map[string]any{"name": fmt.Sprint("E", at)}
				if chance.Intn(3) > 0 {
					fields["value"] = fmt.Sprint(chance.Intn(2))
				}
				return fields
			}),
			"ports": list(chance, 3, func(at int) any {
				fields := map[string]any{"containerPort": int64(80 + at*40)}
				if chance.Intn(2) == 0 {
					fields["protocol"] = one(chance, "TCP", "UDP")()
				}
				if chance.Intn(2) == 0 {
					fields["name"] = fmt.Sprint("p", at)
				}
				return fields
			}),
			"resources": func() any {
				return some(chance, map[string]func() any{
					"limits":   func() any { return map[string]any{"cpu": one(chance, "500m", "1", "0.5")()} },
					"requests": func() any { return map[string]any{"memory": one(chance, "1Gi", "1024Mi")()} },
				})
			},
			"stdin": one(chance, false, true),
		})
		fields["name"] = fmt.Sprint("c", at)
		return fields
	}
}

func deployment(chance *rand.Rand) map[string]any {
	template := func() any {
		return some(chance, map[string]func() any{
			"metadata": func() any { return map[string]any{"labels": texts(chance, "a", "b")()} },
			"spec": func() any {
				return some(chance, map[string]func() any{
					"containers":     list(chance, 3, container(chance)),
					"initContainers": list(chance, 2, container(chance)),
					"hostNetwork":    one(chance, false, true),
					"nodeSelector":   texts(chance, "x", "y"),
					"tolerations": list(chance, 2, func(at int) any {
						return map[string]any{"key": fmt.Sprint("t", at), "operator": "Exists"}
					}),
					"volumes": list(chance, 2, func(at int) any {
						return map[string]any{"name": fmt.Sprint("v", at), "emptyDir": map[string]any{}}
					}),
					"securityContext": func() any {
						return some(chance, map[string]func() any{"runAsUser": one[int64](chance, 0, 1), "fsGroup": one[int64](chance, 5)})
					},
				})
			},
		})
	}
	return some(chance, map[string]func() any{
		"metadata": metadata(chance),
		"spec": func() any {
			return some(chance, map[string]func() any{
				"replicas":        one[int64](chance, 0, 1, 3),
				"minReadySeconds": one[int64](chance, 0, 5),
				"paused":          one(chance, true, false),
				"selector":        func() any { return map[string]any{"matchLabels": texts(chance, "a", "b")()} },
				"strategy": func() any {
					return some(chance, map[string]func() any{
						"type":          one(chance, "RollingUpdate", "Recreate"),
						"rollingUpdate": func() any { return map[string]any{"maxSurge": one[any](chance, int64(1), "25%")()} },
					})
				},
				"template": template,
			})
		},
		"status": func() any { return some(chance, map[string]func() any{"replicas": one[int64](chance, 1, 2)}) },
	})
}

func service(chance *rand.Rand) map[string]any {
	return some(chance, map[string]func() any{
		"metadata": metadata(chance),
		"spec": func() any {
			return some(chance, map[string]func() any{
				"type":      one(chance, "ClusterIP", "NodePort"),
				"selector":  texts(chance, "a", "b"),
				"clusterIP": one(chance, "None", ""),
				"ports": list(chance, 3, func(at int) any {
					fields := map[string]any{"port": int64(80 + 400*at)}
					if chance.Intn(2) == 0 {
						fields["protocol"] = one(chance, "TCP", "UDP")()
					}
					if chance.Intn(2) == 0 {
						fields["name"] = fmt.Sprint("p", at)
					}
					if chance.Intn(2) == 0 {
						fields["targetPort"] = one[any](chance, int64(8080), "http")()
					}
					return fields
				}),
				"externalIPs": list(chance, 2, func(at int) any { return fmt.Sprint("10.0.0.", at) }),
			})
		},
		"status": func() any {
			return map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": one(chance, "1.2.3.4", "1.2.3.5")()}}}}
		},
	})
}

func role(chance *rand.Rand) map[string]any {
	return some(chance, map[string]func() any{
		"metadata": metadata(chance),
		"rules": list(chance, 2, func(at int) any {
			return map[string]any{"apiGroups": []any{""}, "resources": []any{fmt.Sprint("r", at)}, "verbs": []any{one(chance, "get", "list")()}}
		}),
	})
}

func widget(chance *rand.Rand) map[string]any {
	object := some(chance, map[string]func() any{
		"metadata": metadata(chance),
		"status": func() any {
			return some(chance, map[string]func() any{"phase": one(chance, "A", "B"), "seen": one[int64](chance, 1, 2)})
		},
	})
	if chance.Intn(8) > 0 {
		object["spec"] = widgetSpec(chance)
	}
	return object
}

func widgetSpec(chance *rand.Rand) map[string]any {
	text := one(chance, "s", "t", "<&>")
	return some(chance, map[string]func() any{
		"size":    one[int64](chance, 0, 1, 2),
		"ratio":   one[any](chance, 0.5, int64(1), 1.0),
		"title":   text,
		"enabled": one[any](chance, true, false, nil),
		"port":    one[any](chance, int64(80), "http"),
		"plain":   list(chance, 2, func(at int) any { return fmt.Sprint(at) }),
		"set":     list(chance, 4, func(at int) any { return fmt.Sprint("s", at, "<") }),
		"numbers": list(chance, 3, func(at int) any { return int64(at * 9) }),
		"keyed": list(chance, 3, func(at int) any {
			fields := some(chance, map[string]func() any{
				"zone":   one(chance, "a", "b"),
				"value":  one[int64](chance, 1, 2),
				"labels": texts(chance, "l", "m"),
				"inner": list(chance, 3, func(at int) any {
					fields := map[string]any{"port": int64(9 + at)}
					if chance.Intn(2) == 0 {
						fields["note"] = text()
					}
					return fields
				}),
			})
			fields["name"] = fmt.Sprint("k", at)
			return fields
		}),
		"nested": func() any {
			return some(chance, map[string]func() any{"a": text, "b": func() any { return some(chance, map[string]func() any{"c": text, "d": text}) }})
		},
		"values": func() any {
			values := map[string]any{}
			for _, name := range []string{"p", "q"} {
				if chance.Intn(2) == 0 {
					values[name] = some(chance, map[string]func() any{"x": one[int64](chance, 1, 2), "y": one[int64](chance, 1)})
				}
			}
			return values
		},
		"whole": texts(chance, "a", "b"),
		"free": func() any {
			return some(chance, map[string]func() any{
				"list":  list(chance, 2, func(at int) any { return map[string]any{"name": fmt.Sprint(at)} }),
				"map":   func() any { return map[string]any{"deep": texts(chance, "a", "b")()} },
				"mixed": one[any](chance, "text", int64(1), map[string]any{"a": "b"}, []any{"c"}, nil),
			})
		},
	})
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// The next write of a sequence.
func (k *kind) write(chance *rand.Rand, live map[string]any, long bool) Write {
	object := k.fields(chance)
	k.identify(object)
	if chance.Intn(5) < 3 && !long || live == nil && chance.Intn(2) == 0 {
		write := Write{Operation: "apply", Manager: one(chance, "one", "two", "kubectl")().(string), Force: chance.Intn(2) == 0, Object: object}
		if _, ok := k.managers["status"]; ok && live != nil && chance.Intn(10) == 0 {
			write.Subresource = "status"
		}
		if live != nil && chance.Intn(4) == 0 {
			// What is there already, and something of what there was.
			merged := without(runtime.DeepCopyJSON(live))
			mix(chance, merged, object)
			write.Object = merged
		}
		k.spoil(chance, write.Object)
		return write
	}
	write := Write{Operation: "update", Manager: one(chance, "edit", "scale", "one")().(string), Object: object}
	if long {
		write.Manager = fmt.Sprint("u", chance.Intn(14))
	}
	if live == nil {
		return k.typed(write)
	}
	if _, ok := k.managers["status"]; ok && chance.Intn(5) == 0 {
		write.Subresource = "status"
	}
	changed := runtime.DeepCopyJSON(live)
	if chance.Intn(5) > 0 {
		mix(chance, changed, object)
		write.Object = changed
	} else {
		object["metadata"].(map[string]any)["uid"] = "1"
	}
	meta := write.Object["metadata"].(map[string]any)
	switch chance.Intn(12) {
	case 0:
		meta["managedFields"] = []any{map[string]any{}}
	case 1, 2:
		delete(meta, "managedFields")
	case 3:
		if entries, ok := meta["managedFields"].([]any); ok && len(entries) > 1 {
			meta["managedFields"] = entries[1:]
		}
	case 4:
		if text, err := json.Marshal(without(runtime.DeepCopyJSON(live))); err == nil {
			annotations, _ := meta["annotations"].(map[string]any)
			if annotations == nil {
				annotations = map[string]any{}
				meta["annotations"] = annotations
			}
			annotations[lastApplied] = string(text)
		}
	}
	twice(chance, write.Object)
	return k.typed(write)
}

// An object as the server has it after decoding it.
func (k *kind) typed(write Write) Write {
	write.Object = k.encode(k.decode(write.Object))
	return write
}

func (k *kind) identify(object map[string]any) {
	object["apiVersion"], object["kind"] = k.gvk.ToAPIVersionAndKind()
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	metadata["name"], metadata["namespace"] = "n", "ns"
}

// A live object as it could be applied.
func without(object map[string]any) map[string]any {
	metadata := object["metadata"].(map[string]any)
	delete(metadata, "managedFields")
	delete(metadata, "uid")
	return object
}

// Takes some of the fields of the other object, and drops some.
func mix(chance *rand.Rand, object, other map[string]any) {
	for _, name := range sorted(other) {
		inner, isMap := object[name].(map[string]any)
		otherInner, otherIsMap := other[name].(map[string]any)
		switch {
		case name == "metadata" || isMap && otherIsMap && chance.Intn(4) > 0:
			mix(chance, inner, otherInner)
		case chance.Intn(2) == 0:
			object[name] = runtime.DeepCopyJSONValue(other[name])
		}
	}
	for _, name := range sorted(object) {
		_, required := map[string]bool{"metadata": true, "apiVersion": true, "kind": true, "name": true, "namespace": true, "uid": true, "managedFields": true}[name]
		if !required && chance.Intn(8) == 0 {
			delete(object, name)
		}
	}
}

// Puts something into an applied object that is refused, or means nothing, once in a while.
func (k *kind) spoil(chance *rand.Rand, object map[string]any) {
	switch chance.Intn(24) {
	case 0:
		object["nonsense"] = "x"
	case 1:
		object["metadata"].(map[string]any)["labels"] = nil
	case 2:
		object["metadata"].(map[string]any)["labels"] = one[any](chance, "x", []any{"y"}, map[string]any{"a": int64(1)}, map[string]any{"a": true, "b": 1.5})()
	case 3:
		object["spec"] = one[any](chance, nil, "x", int64(1))()
	case 4:
		object["metadata"].(map[string]any)["finalizers"] = one[any](chance, []any{"a", "a"}, []any{nil}, []any{map[string]any{"a": []any{"b"}}}, map[string]any{"a": nil}, nil)()
	case 5:
		if k.name == "Widget" {
			object["spec"] = map[string]any{"keyed": one[any](chance, []any{map[string]any{"value": int64(1)}}, []any{"x"}, []any{nil}, []any{map[string]any{"name": "k", "value": "x"}, map[string]any{"name": "k", "zone": "a"}})(), "enabled": one[any](chance, "yes", int64(1))()}
		}
	case 6, 7:
		twice(chance, object)
	}
}

// Lets an item of a list stand twice, once in a while.
func twice(chance *rand.Rand, object map[string]any) {
	for _, name := range sorted(object) {
		switch value := object[name].(type) {
		case map[string]any:
			if name != "metadata" {
				twice(chance, value)
			}
		case []any:
			if len(value) > 0 && chance.Intn(12) == 0 {
				item := runtime.DeepCopyJSONValue(value[chance.Intn(len(value))])
				if fields, ok := item.(map[string]any); ok && chance.Intn(2) == 0 {
					delete(fields, "value")
				}
				object[name] = append(value, item)
			}
		}
	}
}
