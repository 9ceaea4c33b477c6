// The oracle of moorline-cosign: signs with the libraries and programs of Sigstore, and judges
// signatures with them.
//
//	oracle record DIR     writes test vectors to a folder
//	oracle judge          reads a question in each line, and answers it in a line
//
// COSIGN2 and COSIGN3 name programs of cosign for vectors that are signed by keys. Without them,
// these vectors are left out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"
)

// vector is one test: what a registry serves, a policy that accepts it, and the time.
type vector struct {
	Artifact string            `json:"artifact"`
	Manifest string            `json:"manifest,omitempty"`
	Now      time.Time         `json:"now"`
	Signer   string            `json:"signer"`
	Policy   policy            `json:"policy"`
	Registry map[string]string `json:"registry"`
	// Verified says if `cosign verify` accepts the signature without further flags.
	Verified *bool `json:"verified,omitempty"`
}

type policy struct {
	Keys        []string        `json:"keys,omitempty"`
	Issuer      string          `json:"issuer,omitempty"`
	Subject     string          `json:"subject,omitempty"`
	TrustedRoot json.RawMessage `json:"trustedRoot,omitempty"`
}

func main() {
	log.SetFlags(0)
	switch {
	case len(os.Args) == 3 && os.Args[1] == "record":
		record(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "judge":
		answer()
	default:
		log.Fatal("oracle record DIR, or oracle judge")
	}
}

func record(dir string) {
	vectors := map[string]vector{}
	recordKeyless(vectors)
	recordVirtual(vectors)
	recordLibraryKeys(vectors)
	for _, name := range []string{"COSIGN2", "COSIGN3"} {
		if program := os.Getenv(name); program != "" {
			recordKeys(vectors, name, program)
		} else {
			log.Printf("%s is not set: vectors by it are left out", name)
		}
	}
	must(os.MkdirAll(dir, 0o755))
	for name, vector := range vectors {
		text, err := json.MarshalIndent(vector, "", " ")
		must(err)
		must(os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o644))
		log.Printf("%s: %d bytes", name, len(text))
	}
}

// answer judges questions until the input ends.
func answer() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked question
		verdict := map[string]string{}
		if err := json.Unmarshal(line, &asked); err != nil {
			verdict["refused"] = fmt.Sprintf("no question: %v", err)
		} else if err := judge(asked); err != nil {
			verdict["refused"] = err.Error()
		}
		must(out.Encode(verdict))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func get[T any](value T, err error) T {
	must(err)
	return value
}
