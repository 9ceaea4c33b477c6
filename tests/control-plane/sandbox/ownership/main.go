// Records what the field manager of Kubernetes makes of sequences of writes, as tests/sandbox/ownership.jsonl.
//
// In: a number of sequences for each kind, and a seed. Out, on standard output: one sequence a line, with every write
// and what it came to: the object with its managedFields, or the error. Times are counted in writes, so that the same
// seed gives the same lines.
//
//	go run ./sandbox/ownership -sequences 8 -seed 1 > ../sandbox/ownership.jsonl
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"math/rand"
	"os"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Write is one write of a sequence and what it came to.
type Write struct {
	Operation   string         `json:"operation"` // apply, or update
	Manager     string         `json:"manager"`
	Subresource string         `json:"subresource,omitempty"`
	Force       bool           `json:"force,omitempty"`
	Object      map[string]any `json:"object"`
	Result      map[string]any `json:"result,omitempty"`
	Error       string         `json:"error,omitempty"`
	Causes      [][2]string    `json:"causes,omitempty"`
}

// Sequence is the life of one object.
type Sequence struct {
	Kind   string  `json:"kind"`
	Writes []Write `json:"writes"`
}

// The times of the first write, and of all that are recorded, are long ago.
var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func main() {
	sequences := flag.Int("sequences", 8, "how many of each kind")
	seed := flag.Int64("seed", 1, "of the chance")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	for _, kind := range kinds() {
		chance := rand.New(rand.NewSource(*seed))
		for range *sequences {
			if err := encoder.Encode(kind.sequence(chance)); err != nil {
				log.Fatal(err)
			}
		}
	}
}

const writes = 7

func (k *kind) sequence(chance *rand.Rand) Sequence {
	sequence := Sequence{Kind: k.name}
	var live map[string]any
	count := 3 + chance.Intn(writes)
	if chance.Intn(12) == 0 {
		// Long enough for more updates than are kept apart.
		count = 16
	}
	for at := range count {
		write := k.write(chance, live, count > 3+writes)
		live = k.perform(&write, live, epoch.Add(time.Duration(at+1)*time.Second))
		sequence.Writes = append(sequence.Writes, write)
	}
	return sequence
}

// Performs a write and notes what it came to. The answer is the live object from then on.
func (k *kind) perform(write *Write, live map[string]any, now time.Time) map[string]any {
	manager := k.managers[write.Subresource]
	before := k.empty()
	if live != nil {
		before = k.decode(live)
	}
	var after runtime.Object
	var err error
	if write.Operation == "apply" {
		after, err = manager.Apply(before, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(write.Object)}, write.Manager, write.Force)
	} else {
		after, err = manager.Update(before, k.decode(write.Object), write.Manager)
	}
	if err != nil {
		write.Error = inOrder(err.Error())
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Details != nil {
			for _, cause := range status.Status().Details.Causes {
				write.Causes = append(write.Causes, [2]string{cause.Message, cause.Field})
			}
			sort.Slice(write.Causes, func(i, j int) bool {
				return strings.Join(write.Causes[i][:], " ") < strings.Join(write.Causes[j][:], " ")
			})
		}
		return live
	}
	accessor, err := meta.Accessor(after)
	if err != nil {
		log.Fatal(err)
	}
	if accessor.GetUID() == "" {
		accessor.SetUID("1")
	}
	entries := accessor.GetManagedFields()
	for at := range entries {
		if entries[at].Time != nil && entries[at].Time.After(epoch.AddDate(1, 0, 0)) {
			entries[at].Time = &metav1.Time{Time: now}
		}
	}
	accessor.SetManagedFields(entries)
	write.Result = k.encode(after)
	return write.Result
}

// Fields of Go's maps come in no order, and so do the words about them.
func inOrder(words string) string {
	first, rest, several := strings.Cut(words, ": errors:\n")
	if !several {
		return words
	}
	lines := strings.Split(rest, "\n")
	sort.Strings(lines)
	return first + ": errors:\n" + strings.Join(lines, "\n")
}

func exclude(version string, fields ...string) map[fieldpath.APIVersion]fieldpath.Filter {
	set := fieldpath.NewSet()
	for _, field := range fields {
		set.Insert(fieldpath.MakePathOrDie(field))
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(version): fieldpath.NewExcludeSetFilter(set)}
}
