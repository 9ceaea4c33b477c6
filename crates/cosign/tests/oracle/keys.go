package main

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// recordKeys signs an artifact with keys by a program of cosign, and records what the registry has.
func recordKeys(vectors map[string]vector, name, program string) {
	dir := get(os.MkdirTemp("", "oracle"))
	defer os.RemoveAll(dir)
	p256, p384 := newKey(elliptic.P256()), newKey(elliptic.P384())
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	must(err)
	keys := map[string]crypto.Signer{"p256": p256, "p384": p384, "rsa": get(rsa.GenerateKey(rand.Reader, 2048)), "ed25519": ed}
	version := map[string]string{"COSIGN2": "2", "COSIGN3": "3"}[name]
	for kind, key := range keys {
		file := filepath.Join(dir, kind+".pem")
		block := &pem.Block{Type: "PRIVATE KEY", Bytes: get(x509.MarshalPKCS8PrivateKey(key))}
		must(os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
		prefix := filepath.Join(dir, kind)
		run(program, "import-key-pair", "--key", file, "--output-key-prefix", prefix)
		put := func(name string, hasReferrers bool, arguments ...string) {
			vectors["key-cosign"+version+"-"+kind+name] = sign(program, prefix, hasReferrers, arguments)
		}
		if version == "2" {
			put("", true, "--tlog-upload=false")
			continue
		}
		offline := []string{"--tlog-upload=false", "--use-signing-config=false"}
		put("", true, offline...)
		put("-v2", true, append(offline, "--new-bundle-format=false")...)
		if kind == "p256" {
			put("-tag", false, offline...)
		}
	}
}

// sign pushes an artifact, signs it, and returns what verifying it needs of the registry.
func sign(program, prefix string, hasReferrers bool, arguments []string) vector {
	quiet := log.New(io.Discard, "", 0)
	handler := registry.New(registry.Logger(quiet), registry.WithReferrersSupport(hasReferrers))
	served := map[string]string{}
	server := httptest.NewServer(handler)
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	put := func(path, kind string, body []byte) {
		request := get(http.NewRequest(http.MethodPut, server.URL+"/v2/shop/"+path, bytes.NewReader(body)))
		request.Header.Set("Content-Type", kind)
		answer := get(http.DefaultClient.Do(request))
		answer.Body.Close()
		if answer.StatusCode >= 300 {
			panic(path + ": " + answer.Status)
		}
	}
	config := []byte("{}")
	started := get(http.Post(server.URL+"/v2/shop/blobs/uploads/", "", nil))
	upload := strings.TrimPrefix(started.Header.Get("Location"), "/v2/shop/")
	put(upload+"?digest="+digestOf(config), "application/octet-stream", config)
	text := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"` +
		digestOf(config) + `","size":2},"layers":[]}`)
	digest := digestOf(text)
	put("manifests/v1", "application/vnd.oci.image.manifest.v1+json", text)
	run(program, append(append([]string{"sign", "--key", prefix + ".key", "--yes", "--allow-http-registry"}, arguments...), host+"/shop@"+digest)...)
	// Some signatures, cosign verifies only with the hash of the key's size, or not at all.
	verifier := []string{"verify", "--key", prefix + ".pub", "--insecure-ignore-tlog", "--allow-http-registry", host + "/shop@" + digest}
	verified := exec.Command(program, verifier...).Run() == nil
	tag := strings.Replace(digest, ":", "-", 1)
	pending := []string{"referrers/" + digest, "manifests/" + tag, "manifests/" + tag + ".sig"}
	for len(pending) > 0 {
		path := pending[0]
		pending = pending[1:]
		answer := get(http.Get(server.URL + "/v2/shop/" + path))
		body := get(io.ReadAll(answer.Body))
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			continue
		}
		served[path] = string(body)
		if !strings.HasPrefix(path, "blobs/") {
			pending = append(pending, linked(path, body)...)
		}
	}
	return vector{
		Artifact: digest, Now: time.Now().UTC().Truncate(time.Second), Signer: "the key",
		Policy: policy{Keys: []string{string(get(os.ReadFile(prefix + ".pub")))}}, Registry: served, Verified: &verified,
	}
}

// linked returns the paths of what an index or a manifest contains.
func linked(path string, body []byte) []string {
	var paths []string
	kind := "blobs/"
	if bytes.Contains(body, []byte(`"manifests"`)) {
		kind = "manifests/"
	}
	for _, part := range strings.Split(string(body), `"digest":"`)[1:] {
		if digest, _, found := strings.Cut(part, `"`); found && strings.HasPrefix(digest, "sha256:") {
			paths = append(paths, kind+digest)
		}
	}
	return paths
}

func run(program string, arguments ...string) {
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), "COSIGN_PASSWORD=")
	if out, err := command.CombinedOutput(); err != nil {
		panic(program + " " + strings.Join(arguments, " ") + ": " + err.Error() + "\n" + string(out))
	}
}
