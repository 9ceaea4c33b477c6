// Records what Kubernetes' own code makes of strategic merge patches. To make the file anew, in tests/control-plane:
//
//	go run ./sandbox/strategic > ../sandbox_kinds/strategic.jsonl
//
// Each line has a kind, an object, a patch, and the object after it or the error. Some patches are written by hand, the others
// grow from a seed, so that the same lines come out every time; a number as argument asks for that many of them.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

type object = map[string]any

type list = []any

// A kind, and the type that says how its lists merge.
type kind struct {
	group, version, name string
	schema               any
	base                 string
}

var kinds = []kind{
	{"", "v1", "ConfigMap", corev1.ConfigMap{}, `{"metadata":{"name":"c","labels":{"a":"1"},"finalizers":["x/1","x/2","x/3"]},"data":{"k":"v","l":"w"}}`},
	{"", "v1", "Service", corev1.Service{}, `{"spec":{"selector":{"a":"b"},"ports":[{"port":80,"name":"web"},{"port":81,"name":"tls"}],"externalIPs":["1.1.1.1"]}}`},
	{"", "v1", "Pod", corev1.Pod{}, `{"spec":{"containers":[{"name":"a","image":"i","env":[{"name":"X","value":"1"},{"name":"Y","value":"2"}],"ports":[{"containerPort":80},{"containerPort":81}],"volumeMounts":[{"name":"v","mountPath":"/v"}]},{"name":"b","image":"j"}],"volumes":[{"name":"v","emptyDir":{}},{"name":"w","secret":{"secretName":"s"}}],"tolerations":[{"key":"k"}],"imagePullSecrets":[{"name":"p"}]}}`},
	{"apps", "v1", "Deployment", appsv1.Deployment{}, `{"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"i","args":["x","y"],"env":[{"name":"X","value":"1"}]}],"nodeSelector":{"d":"ssd"}}}}}`},
	{"rbac.authorization.k8s.io", "v1", "Role", rbacv1.Role{}, `{"rules":[{"verbs":["get"]}]}`},
	{"networking.k8s.io", "v1", "Ingress", networkingv1.Ingress{}, `{"spec":{"rules":[{"host":"a"}],"tls":[{"hosts":["a"]}]}}`},
}

// Patches by hand, by the name of their kind.
var written = [][2]string{
	{"ConfigMap", `{"data":{"k":null,"m":"n"}}`},
	{"ConfigMap", `{"data":{"$patch":"replace","z":"1"}}`},
	{"ConfigMap", `{"data":{"$patch":"delete"}}`},
	{"ConfigMap", `{"data":{"$patch":"merge","k":"1"}}`},
	{"ConfigMap", `{"data":{"$retainKeys":["k"],"k":"1"}}`},
	{"ConfigMap", `{"data":{"$retainKeys":["k"],"m":"1"}}`},
	{"ConfigMap", `{"data":{"$retainKeys":"k"}}`},
	{"ConfigMap", `{"metadata":{"finalizers":["x/4","x/2"]}}`},
	{"ConfigMap", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["x/2"]}}`},
	{"ConfigMap", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["x/2"],"finalizers":["x/5"]}}`},
	{"ConfigMap", `{"metadata":{"$deleteFromPrimitiveList/other":["x/2"]}}`},
	{"ConfigMap", `{"metadata":{"$setElementOrder/finalizers":["x/3","x/1"]}}`},
	{"ConfigMap", `{"metadata":{"$setElementOrder/finalizers":["x/3","x/9","x/1"],"finalizers":["x/9"]}}`},
	{"ConfigMap", `{"metadata":{"$setElementOrder/finalizers":["x/1","x/9"],"finalizers":["x/9","x/1"]}}`},
	{"ConfigMap", `{"metadata":{"finalizers":[{"a":"b"}]}}`},
	{"ConfigMap", `{"metadata":{"annotations":{"a":null,"b":"c"}}}`},
	{"ConfigMap", `{"binaryData":{"$patch":"delete"}}`},
	{"ConfigMap", `{"$patch":"replace","data":{}}`},
	{"Service", `{"spec":{"ports":[{"port":80,"targetPort":8080}]}}`},
	{"Service", `{"spec":{"ports":[{"port":90},{"port":80,"$patch":"delete"}]}}`},
	{"Service", `{"spec":{"ports":[{"$patch":"replace"},{"port":90}]}}`},
	{"Service", `{"spec":{"ports":[{"name":"web"}]}}`},
	{"Service", `{"spec":{"ports":[{"$patch":"delete"}]}}`},
	{"Service", `{"spec":{"ports":[{"$patch":"merge","port":80}]}}`},
	{"Service", `{"spec":{"ports":[{"$patch":"huh","port":80}]}}`},
	{"Service", `{"spec":{"ports":null}}`},
	{"Service", `{"spec":{"ports":[]}}`},
	{"Service", `{"spec":{"externalIPs":["2.2.2.2"]}}`},
	{"Service", `{"spec":{"selector":{"a":null,"c":"d"}}}`},
	{"Service", `{"spec":{"$setElementOrder/ports":[{"port":81},{"port":80}],"ports":[{"port":80,"name":"x"}]}}`},
	{"Service", `{"spec":{"$setElementOrder/ports":[{"port":81},{"port":80}]}}`},
	{"Service", `{"spec":{"$setElementOrder/ports":[{"port":90},{"port":80}],"ports":[{"port":90}]}}`},
	{"Pod", `{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}],"containers":[{"name":"a","image":"z"}]}}`},
	{"Pod", `{"spec":{"containers":[{"name":"a","$setElementOrder/env":[{"name":"Y"},{"name":"X"}],"env":[{"name":"X","value":null,"valueFrom":{"fieldRef":{"fieldPath":"p"}}}]}]}}`},
	{"Pod", `{"spec":{"volumes":[{"name":"v","$retainKeys":["name","secret"],"secret":{"secretName":"q"}}]}}`},
	{"Pod", `{"spec":{"volumes":[{"name":"w","secret":null}]}}`},
	{"Pod", `{"spec":{"tolerations":[{"key":"l"}]}}`},
	{"Pod", `{"spec":{"imagePullSecrets":[{"name":"q"},{"name":"p","$patch":"delete"}]}}`},
	{"Pod", `{"spec":{"initContainers":[{"name":"n","$patch":"delete"},{"name":"m","image":null}]}}`},
	{"Deployment", `{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`},
	{"Deployment", `{"spec":{"strategy":{"type":"Recreate"}}}`},
	{"Deployment", `{"spec":{"template":{"spec":{"containers":[{"name":"b","image":"k"}]}}}}`},
	{"Deployment", `{"spec":{"template":{"spec":{"containers":[{"name":"a","args":["z"]}]}}}}`},
	{"Deployment", `{"spec":{"template":{"spec":{"nodeSelector":{"$patch":"replace","e":"f"}}}}}`},
	{"Deployment", `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`},
	{"Deployment", `{"spec":null}`},
	{"Deployment", `{"spec":"text"}`},
	{"Role", `{"rules":[{"verbs":["list"]}]}`},
	{"Ingress", `{"spec":{"rules":[{"host":"b"}],"tls":[]}}`},
}

func main() {
	count := 250
	if len(os.Args) > 1 {
		count, _ = strconv.Atoi(os.Args[1])
	}
	for _, pair := range written {
		for _, it := range kinds {
			if it.name == pair[0] {
				record(it, parse(it.base), parse(pair[1]))
			}
		}
	}
	chance := rand.New(rand.NewSource(36))
	for range count {
		it := kinds[chance.Intn(4)]
		base := parse(it.base)
		record(it, base, grow(chance, base))
	}
}

func parse(text string) object {
	var it object
	if err := json.Unmarshal([]byte(text), &it); err != nil {
		panic(err)
	}
	return it
}

// Changes a copy of something at random, directives included.
func grow(chance *rand.Rand, base object) object {
	patch := object{}
	for name, value := range base {
		switch chance.Intn(5) {
		case 0:
			continue
		case 1:
			if chance.Intn(3) == 0 {
				patch[name] = nil
				continue
			}
		}
		switch value := value.(type) {
		case object:
			inner := grow(chance, value)
			switch chance.Intn(12) {
			case 0:
				inner["$patch"] = []any{"replace", "delete", "huh"}[chance.Intn(3)]
			case 1:
				var kept list
				for name := range inner {
					kept = append(kept, name)
				}
				if len(kept) == 0 {
					kept = list{"a"}
				}
				// A map's order is not the seed's.
				if len(kept) == 1 {
					inner["$retainKeys"] = kept
				}
			}
			patch[name] = inner
		case list:
			items, order := growList(chance, value)
			patch[name] = items
			switch chance.Intn(6) {
			case 0:
				patch["$setElementOrder/"+name] = order
			case 1:
				patch["$setElementOrder/"+name] = order
				delete(patch, name)
			case 2:
				if _, single := value[0].(string); single {
					patch["$deleteFromPrimitiveList/"+name] = list{value[chance.Intn(len(value))]}
				}
			}
		case float64:
			patch[name] = value + float64(chance.Intn(2))
		default:
			patch[name] = fmt.Sprintf("%v-%d", value, chance.Intn(3))
		}
	}
	if chance.Intn(4) == 0 {
		patch["added"] = object{"deep": nil, "kept": "x"}
	}
	return patch
}

func growList(chance *rand.Rand, base list) (items, order list) {
	items, order = list{}, list{}
	for _, at := range chance.Perm(len(base)) {
		switch item := base[at].(type) {
		case object:
			grown := keyed(item)
			order = append(order, keyed(item))
			switch chance.Intn(6) {
			case 0:
				continue
			case 1:
				grown["$patch"] = "delete"
			case 2:
				grown["$patch"] = "replace"
			default:
				for name, value := range grow(chance, item) {
					if _, key := grown[name]; !key {
						grown[name] = value
					}
				}
			}
			items = append(items, grown)
		default:
			order = append(order, item)
			if chance.Intn(3) > 0 {
				items = append(items, item)
			}
		}
	}
	if chance.Intn(2) == 0 && len(base) > 0 {
		var more any = fmt.Sprintf("more-%d", chance.Intn(3))
		if first, ok := base[0].(object); ok {
			grown := keyed(first)
			for name, value := range grown {
				if number, ok := value.(float64); ok {
					grown[name] = number + 7
				} else {
					grown[name] = more
				}
			}
			more = grown
		}
		items, order = append(items, more), append(order, more)
	}
	return items, order
}

// What an item is known by.
func keyed(item object) object {
	for _, key := range []string{"name", "port", "containerPort", "mountPath", "key", "host"} {
		if value, ok := item[key]; ok && !(key == "name" && (item["port"] != nil || item["mountPath"] != nil)) {
			return object{key: value}
		}
	}
	return object{}
}

// Maps are walked in no order: a case that comes out in two ways is left out, and so is one that Kubernetes cannot survive.
func record(it kind, target, patch object) {
	line := object{"group": it.group, "version": it.version, "kind": it.name, "target": target, "patch": patch}
	first := answer(it, target, patch)
	if first == "" {
		return
	}
	for range 8 {
		if answer(it, target, patch) != first {
			return
		}
	}
	for name, value := range parse(first) {
		line[name] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func answer(it kind, target, patch object) (answer string) {
	defer func() {
		if recover() != nil {
			answer = ""
		}
	}()
	copied := func(from object) object {
		text, _ := json.Marshal(from)
		return parse(string(text))
	}
	result := object{}
	merged, err := strategicpatch.StrategicMergeMapPatch(copied(target), copied(patch), it.schema)
	if err != nil {
		result["error"] = err.Error()
	} else {
		result["merged"] = merged
	}
	text, _ := json.Marshal(result)
	return string(text)
}
