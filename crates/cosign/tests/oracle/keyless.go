package main

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/rekor/pkg/types"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
)

const (
	predicate = "https://sigstore.dev/cosign/sign/v1"
	manifest  = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{},"layers":[]}`
)

func digestOf(bytes []byte) string {
	sum := sha256.Sum256(bytes)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// serveBundles returns a registry that has bundles of an artifact.
func serveBundles(digest string, bundles ...[]byte) map[string]string {
	served := map[string]string{}
	var list []string
	for _, bundle := range bundles {
		blob := digestOf(bundle)
		served["blobs/"+blob] = string(bundle)
		text := fmt.Sprintf(`{"schemaVersion":2,"artifactType":%q,"layers":[{"mediaType":%q,"digest":%q,"size":%d}]}`,
			bundleType, bundleType, blob, len(bundle))
		served["manifests/"+digestOf([]byte(text))] = text
		list = append(list, fmt.Sprintf(`{"artifactType":%q,"digest":%q}`, bundleType, digestOf([]byte(text))))
	}
	served["referrers/"+digest] = `{"schemaVersion":2,"manifests":[` + strings.Join(list, ",") + `]}`
	return served
}

// serveSimpleSigning returns a registry that has a signature of version 2.
func serveSimpleSigning(digest string, payload []byte, annotations map[string]string) map[string]string {
	blob := digestOf(payload)
	text := fmt.Sprintf(`{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.dev.cosign.simplesigning.v1+json","digest":%q,"size":%d,"annotations":%s}]}`,
		blob, len(payload), get(json.Marshal(annotations)))
	return map[string]string{
		"blobs/" + blob: string(payload),
		"manifests/" + strings.Replace(digest, ":", "-", 1) + ".sig": text,
	}
}

// check has a vector judged by the libraries of Sigstore.
func check(vectors map[string]vector, name string, accepted bool, asked question, made vector) {
	asked.Digest, asked.Policy = made.Artifact, made.Policy
	if err := judge(asked); (err == nil) != accepted {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	vectors[name] = made
}

func recordKeyless(vectors map[string]vector) {
	const signs = x509.ExtKeyUsageCodeSigning
	w := newWorld(time.Now().Add(-time.Hour))
	at := w.begin.Add(time.Minute)
	digest := digestOf([]byte(manifest))
	put := func(name string, accepted bool, bundle *protobundle.Bundle, subject string, trusted json.RawMessage) {
		text := bundleJSON(bundle)
		check(vectors, name, accepted, question{Bundle: text}, vector{
			Artifact: digest, Manifest: manifest, Now: w.begin.Add(time.Hour), Signer: subject + " of " + issuer,
			Policy:   policy{Issuer: issuer, Subject: subject, TrustedRoot: trusted},
			Registry: serveBundles(digest, text),
		})
	}
	all := w.trustRoot(true, true, true)
	attest := func(by signer, kind, version, digest, predicate string, at time.Time) *protobundle.Bundle {
		made, envelope := by.envelope(statement(digest, predicate))
		body := logBody(kind, version, types.ArtifactProperties{
			ArtifactBytes: envelope, SignatureBytes: made, PublicKeyBytes: [][]byte{by.pem()},
		})
		bundle := material(by.certificate, w.logEntry(kind, version, body, at), w.stamp(made, at))
		bundle.Content = content(statement(digest, predicate), made)
		return bundle
	}
	by := w.newSigner(workflow, w.certLogKey, signs)
	put("keyless-dsse", true, attest(by, "dsse", "0.0.1", digest, predicate, at), workflow, all)
	put("keyless-intoto", true, attest(by, "intoto", "0.0.2", digest, predicate, at), workflow, all)
	put("keyless-mail", true, attest(w.newSigner("dev@shop.example", w.certLogKey, signs), "dsse", "0.0.1", digest, predicate, at), "dev@shop.example", all)
	logOnly := attest(by, "dsse", "0.0.1", digest, predicate, at)
	logOnly.VerificationMaterial.TimestampVerificationData = nil
	put("keyless-log-only", true, logOnly, workflow, w.trustRoot(true, true, false))
	stampOnly := attest(by, "dsse", "0.0.1", digest, predicate, at)
	stampOnly.VerificationMaterial.TlogEntries = nil
	put("keyless-timestamp-only", true, stampOnly, workflow, w.trustRoot(false, true, true))
	put("refused-no-log-entry", false, stampOnly, workflow, all)
	late := attest(by, "dsse", "0.0.1", digest, predicate, w.begin.Add(time.Hour))
	put("refused-expired", false, late, workflow, all)
	put("refused-early", false, attest(by, "dsse", "0.0.1", digest, predicate, w.begin.Add(-time.Minute)), workflow, all)
	put("refused-no-promise", false, attest(w.newSigner(workflow, nil, signs), "dsse", "0.0.1", digest, predicate, at), workflow, all)
	other := digestOf([]byte("another manifest"))
	put("refused-other-artifact", false, attest(by, "dsse", "0.0.1", other, predicate, at), workflow, all)
	mixed := attest(by, "dsse", "0.0.1", digest, predicate, at)
	mixed.VerificationMaterial.TlogEntries = late.VerificationMaterial.TlogEntries
	put("refused-other-entry", false, mixed, workflow, all)
	stranger := newWorld(w.begin)
	put("refused-stranger", false, attest(by, "dsse", "0.0.1", digest, predicate, at), workflow, stranger.trustRoot(true, true, true))
	put("refused-other-promise", false, attest(w.newSigner(workflow, w.logKey, signs), "dsse", "0.0.1", digest, predicate, at), workflow, all)
	put("refused-other-usage", false, attest(w.newSigner(workflow, w.certLogKey, x509.ExtKeyUsageClientAuth), "dsse", "0.0.1", digest, predicate, at), workflow, all)
	// The libraries take a certificate without usages for one with all.
	put("refused-no-usage", true, attest(w.newSigner(workflow, w.certLogKey), "dsse", "0.0.1", digest, predicate, at), workflow, all)
	// Version 3 of cosign accepts an attestation as a signature; this verifier does not.
	put("refused-attestation", true, attest(by, "dsse", "0.0.1", digest, "https://slsa.dev/provenance/v1", at), workflow, all)

	made := by.sign([]byte(manifest))
	sum := sha256.Sum256([]byte(manifest))
	body := logBody("hashedrekord", "0.0.1", types.ArtifactProperties{
		ArtifactHash: hex.EncodeToString(sum[:]), SignatureBytes: made, PublicKeyBytes: [][]byte{by.pem()},
	})
	blob := material(by.certificate, w.logEntry("hashedrekord", "0.0.1", body, at))
	blob.Content = &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
		MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]}, Signature: made,
	}}
	put("keyless-manifest", true, blob, workflow, all)
	recordSimpleSigning(vectors, w, by, digest, at)
}

// recordLibraryKeys records bundles by keys that cosign does not sign with itself.
func recordLibraryKeys(vectors map[string]vector) {
	payload := statement(digestOf([]byte(manifest)), predicate)
	message := dsse.PAE(statements, payload)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must(err)
	put := func(name string, key crypto.PublicKey, made []byte) {
		der := get(x509.MarshalPKIXPublicKey(key))
		sum := sha256.Sum256(der)
		bundle := &protobundle.Bundle{MediaType: bundleType, VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: base64.StdEncoding.EncodeToString(sum[:])}},
		}}
		bundle.Content = content(payload, made)
		text, digest := bundleJSON(bundle), digestOf([]byte(manifest))
		vectors[name] = vector{
			Artifact: digest, Now: time.Now().UTC().Truncate(time.Second), Signer: "the key",
			Policy:   policy{Keys: []string{string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}},
			Registry: serveBundles(digest, text),
		}
	}
	put("key-library-ed25519", public, ed25519.Sign(private, message))
	key := get(rsa.GenerateKey(rand.Reader, 2048))
	sum := sha256.Sum256(message)
	put("key-library-pss", key.Public(), get(rsa.SignPSS(rand.Reader, key, crypto.SHA256, sum[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})))
}

// recordSimpleSigning records signatures of version 2 of cosign by an identity.
func recordSimpleSigning(vectors map[string]vector, w *world, by signer, digest string, at time.Time) {
	payload := []byte(fmt.Sprintf(`{"critical":{"identity":{"docker-reference":"registry.example/shop"},"image":{"docker-manifest-digest":"%s"},"type":"cosign container image signature"},"optional":null}`, digest))
	made := by.sign(payload)
	sum := sha256.Sum256(payload)
	body := logBody("hashedrekord", "0.0.1", types.ArtifactProperties{
		ArtifactHash: hex.EncodeToString(sum[:]), SignatureBytes: made, PublicKeyBytes: [][]byte{by.pem()},
	})
	entry := w.logEntry("hashedrekord", "0.0.1", body, at)
	annotations := map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(made),
		"dev.sigstore.cosign/certificate":    string(by.pem()),
		"dev.sigstore.cosign/bundle": string(get(json.Marshal(map[string]any{
			"SignedEntryTimestamp": entry.InclusionPromise.SignedEntryTimestamp,
			"Payload": map[string]any{
				"body": body, "integratedTime": entry.IntegratedTime, "logIndex": entry.LogIndex,
				"logID": hex.EncodeToString(entry.LogId.KeyId),
			},
		}))),
	}
	put := func(name string, trusted json.RawMessage) {
		check(vectors, name, true, question{Payload: payload, Annotations: annotations}, vector{
			Artifact: digest, Now: w.begin.Add(time.Hour), Signer: workflow + " of " + issuer,
			Policy:   policy{Issuer: issuer, Subject: workflow, TrustedRoot: trusted},
			Registry: serveSimpleSigning(digest, payload, annotations),
		})
	}
	put("keyless-v2", w.trustRoot(true, true, false))
	stamp := map[string][]byte{"SignedRFC3161Timestamp": w.stamp(made, at)}
	annotations["dev.sigstore.cosign/rfc3161timestamp"] = string(get(json.Marshal(stamp)))
	put("keyless-v2-timestamp", w.trustRoot(true, true, true))
}

// recordVirtual records bundles by the virtual authorities of sigstore-go, whose log of version 1 signs
// checkpoints of another size than that of its proofs.
func recordVirtual(vectors map[string]vector) {
	payload := statement(digestOf([]byte(manifest)), predicate)
	const who = "dev@shop.example"
	virtual := get(ca.NewVirtualSigstore())
	putVirtual(vectors, "virtual-v2", virtual, get(virtual.AttestHashedRekordV2(who, issuer, payload)))
	for name, kind := range map[string]protocommon.PublicKeyDetails{
		"p384": protocommon.PublicKeyDetails_PKIX_ECDSA_P384_SHA_384,
		"rsa":  protocommon.PublicKeyDetails_PKIX_RSA_PKCS1V15_2048_SHA256,
	} {
		virtual := get(ca.NewVirtualSigstoreWithSigningAlg(kind))
		putVirtual(vectors, "virtual-v2-"+name, virtual, get(virtual.AttestHashedRekordV2(who, issuer, payload)))
	}
}

func putVirtual(vectors map[string]vector, name string, virtual *ca.VirtualSigstore, entity *ca.TestEntity) {
	logs := virtual.RekorLogs()
	for id, log := range logs {
		// It keeps the digits of the identity where the bytes belong.
		log.ID = get(hex.DecodeString(id))
	}
	trusted := get(root.NewTrustedRoot(root.TrustedRootMediaType01, virtual.FulcioCertificateAuthorities(), nil,
		virtual.TimestampingAuthorities(), logs))
	digest := digestOf([]byte(manifest))
	envelope := get(entity.SignatureContent()).EnvelopeContent().RawEnvelope()
	certificate := get(entity.VerificationContent()).Certificate()
	entry := get(entity.TlogEntries())[0].TransparencyLogEntry()
	bundle := material(certificate, entry, get(entity.Timestamps())...)
	bundle.Content = content(get(base64.StdEncoding.DecodeString(envelope.Payload)), get(base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig)))
	text := bundleJSON(bundle)
	check(vectors, name, true, question{Bundle: text}, vector{
		Artifact: digest, Now: time.Now().Add(time.Hour).UTC().Truncate(time.Second), Signer: "dev@shop.example of " + issuer,
		Policy:   policy{Issuer: issuer, Subject: "dev@shop.example", TrustedRoot: get(trusted.MarshalJSON())},
		Registry: serveBundles(digest, text),
	})
}
