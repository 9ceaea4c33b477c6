package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/rekor/pkg/pki"
	"github.com/sigstore/rekor/pkg/types"
	_ "github.com/sigstore/rekor/pkg/types/dsse/v0.0.1"
	_ "github.com/sigstore/rekor/pkg/types/hashedrekord/v0.0.1"
	_ "github.com/sigstore/rekor/pkg/types/intoto/v0.0.2"
	"github.com/sigstore/rekor/pkg/util"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	issuer     = "https://login.example"
	workflow   = "https://ci.example/shop/.github/workflows/release.yaml@refs/tags/v1"
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	statements = "application/vnd.in-toto+json"
)

// world is an installation of Sigstore: authorities and logs, all with keys of its own.
type world struct {
	begin              time.Time
	root, between      *x509.Certificate
	betweenKey         *ecdsa.PrivateKey
	stamper            *x509.Certificate
	stamperKey         *ecdsa.PrivateKey
	logKey, certLogKey *ecdsa.PrivateKey
}

// signer is a leaf certificate with its key.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newKey(curve elliptic.Curve) *ecdsa.PrivateKey {
	return get(ecdsa.GenerateKey(curve, rand.Reader))
}

func issue(template, parent *x509.Certificate, key crypto.PublicKey, by *ecdsa.PrivateKey) *x509.Certificate {
	return get(x509.ParseCertificate(get(x509.CreateCertificate(rand.Reader, template, parent, key, by))))
}

func newWorld(begin time.Time) *world {
	w := &world{begin: begin.UTC().Truncate(time.Second)}
	rootKey := newKey(elliptic.P384())
	authority := func(name string, usage x509.ExtKeyUsage) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
			NotBefore: w.begin.Add(-time.Hour), NotAfter: w.begin.AddDate(10, 0, 0),
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true,
			ExtKeyUsage: []x509.ExtKeyUsage{usage},
		}
	}
	template := authority("root", x509.ExtKeyUsageCodeSigning)
	template.ExtKeyUsage = nil
	w.root = issue(template, template, rootKey.Public(), rootKey)
	w.betweenKey = newKey(elliptic.P384())
	w.between = issue(authority("between", x509.ExtKeyUsageCodeSigning), w.root, w.betweenKey.Public(), rootKey)
	w.stamperKey = newKey(elliptic.P384())
	usage := get(asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}}))
	w.stamper = issue(&x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "stamper"},
		NotBefore: w.begin.Add(-time.Hour), NotAfter: w.begin.AddDate(10, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}},
	}, w.root, w.stamperKey.Public(), rootKey)
	w.logKey, w.certLogKey = newKey(elliptic.P256()), newKey(elliptic.P256())
	return w
}

// newSigner issues a certificate for ten minutes, with a promise of the certificate log by a key.
func (w *world) newSigner(subject string, promisedBy *ecdsa.PrivateKey, usages ...x509.ExtKeyUsage) signer {
	key := newKey(elliptic.P256())
	newIssuer := get(asn1.MarshalWithParams(issuer, "utf8"))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: w.begin, NotAfter: w.begin.Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usages,
		ExtraExtensions: []pkix.Extension{
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(issuer)},
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}, Value: newIssuer},
		},
	}
	if parsed, err := url.Parse(subject); err == nil && parsed.Scheme != "" {
		template.URIs = []*url.URL{parsed}
	} else {
		template.EmailAddresses = []string{subject}
	}
	certificate := issue(template, w.between, key.Public(), w.betweenKey)
	if promisedBy != nil {
		value := get(asn1.Marshal(w.promise(certificate.RawTBSCertificate, promisedBy)))
		extension := pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: value}
		template.ExtraExtensions = append(template.ExtraExtensions, extension)
		certificate = issue(template, w.between, key.Public(), w.betweenKey)
	}
	return signer{certificate, key}
}

// promise returns the list with the promise of the certificate log (RFC 6962).
func (w *world) promise(body []byte, key *ecdsa.PrivateKey) []byte {
	stamp := binary.BigEndian.AppendUint64(nil, uint64(w.begin.UnixMilli()))
	issuerKey := sha256.Sum256(w.between.RawSubjectPublicKeyInfo)
	signed := append([]byte{0, 0}, stamp...)
	signed = append(append(signed, 0, 1), issuerKey[:]...)
	signed = append(append(signed, byte(len(body)>>16), byte(len(body)>>8), byte(len(body))), body...)
	signed = append(signed, 0, 0)
	hash := sha256.Sum256(signed)
	made := get(ecdsa.SignASN1(rand.Reader, key, hash[:]))
	entry := append([]byte{0}, keyID(w.certLogKey)...)
	entry = append(append(append(entry, stamp...), 0, 0, 4, 3), byte(len(made)>>8), byte(len(made)))
	entry = append(entry, made...)
	list := append([]byte{byte(len(entry) >> 8), byte(len(entry))}, entry...)
	return append([]byte{byte(len(list) >> 8), byte(len(list))}, list...)
}

func keyID(key *ecdsa.PrivateKey) []byte {
	id := sha256.Sum256(get(x509.MarshalPKIXPublicKey(key.Public())))
	return id[:]
}

func (s signer) sign(message []byte) []byte {
	hash := sha256.Sum256(message)
	return get(ecdsa.SignASN1(rand.Reader, s.key, hash[:]))
}

func (s signer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate.Raw})
}

// logBody returns the body of an entry as Rekor writes it.
func logBody(kind, version string, props types.ArtifactProperties) []byte {
	props.PKIFormat = string(pki.X509)
	proposed := get(types.NewProposedEntry(context.Background(), kind, version, props))
	entry := get(types.CreateVersionedEntry(proposed))
	return get(types.CanonicalizeEntry(context.Background(), entry))
}

// tree returns the root over leaves, and the hashes beside the path of one (RFC 6962).
func tree(leaves [][]byte, index int) ([]byte, [][]byte) {
	if len(leaves) == 1 {
		return leaves[0], nil
	}
	middle := 1
	for middle*2 < len(leaves) {
		middle *= 2
	}
	left, leftPath := tree(leaves[:middle], min(index, middle-1))
	right, rightPath := tree(leaves[middle:], max(index-middle, 0))
	root := sha256.Sum256(append(append([]byte{1}, left...), right...))
	if index < middle {
		return root[:], append(leftPath, right)
	}
	return root[:], append(rightPath, left)
}

// logEntry puts a body into a log of seven entries, and returns the entry with promise and proof.
func (w *world) logEntry(kind, version string, body []byte, at time.Time) *protorekor.TransparencyLogEntry {
	const index, size, global = 4, 7, 40_004
	leaves := make([][]byte, size)
	for i := range leaves {
		leaf := sha256.Sum256([]byte(fmt.Sprintf("\x00filler %d", i)))
		leaves[i] = leaf[:]
	}
	leaf := sha256.Sum256(append([]byte{0}, body...))
	leaves[index] = leaf[:]
	root, path := tree(leaves, index)
	by := get(signature.LoadECDSASignerVerifier(w.logKey, crypto.SHA256))
	checkpoint := get(util.CreateAndSignCheckpoint(context.Background(), "rekor.localhost", 5, size, root, by))
	promised := fmt.Sprintf(`{"body":"%s","integratedTime":%d,"logID":"%s","logIndex":%d}`,
		base64.StdEncoding.EncodeToString(body), at.Unix(), hex.EncodeToString(keyID(w.logKey)), global)
	hash := sha256.Sum256([]byte(promised))
	return &protorekor.TransparencyLogEntry{
		LogIndex: global, LogId: &protocommon.LogId{KeyId: keyID(w.logKey)}, IntegratedTime: at.Unix(),
		KindVersion:       &protorekor.KindVersion{Kind: kind, Version: version},
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: get(ecdsa.SignASN1(rand.Reader, w.logKey, hash[:]))},
		InclusionProof:    &protorekor.InclusionProof{LogIndex: index, TreeSize: size, RootHash: root, Hashes: path, Checkpoint: &protorekor.Checkpoint{Envelope: string(checkpoint)}},
		CanonicalizedBody: body,
	}
}

// stamp returns the answer of the timestamp authority.
func (w *world) stamp(signed []byte, at time.Time) []byte {
	hash := sha256.Sum256(signed)
	template := timestamp.Timestamp{
		HashAlgorithm: crypto.SHA256, HashedMessage: hash[:], Time: at, SerialNumber: big.NewInt(3),
		Policy: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 2}, AddTSACertificate: true,
	}
	return get(template.CreateResponseWithOpts(w.stamper, w.stamperKey, crypto.SHA256))
}

// trustRoot returns the trust root, with the kinds of witnesses that are asked for.
func (w *world) trustRoot(hasLog, hasCertLog, hasStamper bool) json.RawMessage {
	log := func(key *ecdsa.PrivateKey) map[string]*root.TransparencyLog {
		id := keyID(key)
		return map[string]*root.TransparencyLog{hex.EncodeToString(id): {
			BaseURL: "https://rekor.localhost", ID: id, ValidityPeriodStart: w.begin.Add(-time.Hour),
			HashFunc: crypto.SHA256, SignatureHashFunc: crypto.SHA256, PublicKey: key.Public(),
		}}
	}
	authority := &root.FulcioCertificateAuthority{
		Root: w.root, Intermediates: []*x509.Certificate{w.between}, ValidityPeriodStart: w.begin.Add(-time.Hour),
		URI: "https://fulcio.localhost",
	}
	var logs, certLogs map[string]*root.TransparencyLog
	var stampers []root.TimestampingAuthority
	if hasLog {
		logs = log(w.logKey)
	}
	if hasCertLog {
		certLogs = log(w.certLogKey)
	}
	if hasStamper {
		stampers = append(stampers, &root.SigstoreTimestampingAuthority{
			Root: w.root, Leaf: w.stamper, ValidityPeriodStart: w.begin.Add(-time.Hour), URI: "https://tsa.localhost",
		})
	}
	trusted := get(root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{authority}, certLogs, stampers, logs))
	return get(trusted.MarshalJSON())
}

// statement returns what version 3 of cosign signs for an artifact.
func statement(digest, predicate string) []byte {
	return []byte(fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"%s"}}],"predicateType":"%s","predicate":{}}`,
		digest[len("sha256:"):], predicate))
}

// material returns a bundle without content.
func material(by *x509.Certificate, entry *protorekor.TransparencyLogEntry, stamps ...[]byte) *protobundle.Bundle {
	found := &protobundle.VerificationMaterial{
		Content: &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: by.Raw}},
	}
	if entry != nil {
		found.TlogEntries = []*protorekor.TransparencyLogEntry{entry}
	}
	for _, stamp := range stamps {
		if found.TimestampVerificationData == nil {
			found.TimestampVerificationData = &protobundle.TimestampVerificationData{}
		}
		found.TimestampVerificationData.Rfc3161Timestamps = append(found.TimestampVerificationData.Rfc3161Timestamps,
			&protocommon.RFC3161SignedTimestamp{SignedTimestamp: stamp})
	}
	return &protobundle.Bundle{MediaType: bundleType, VerificationMaterial: found}
}

// envelope signs a statement, and returns the signature and the envelope as Rekor takes it.
func (s signer) envelope(payload []byte) (made []byte, text []byte) {
	made = s.sign(dsse.PAE(statements, payload))
	return made, get(json.Marshal(dsse.Envelope{
		PayloadType: statements, Payload: base64.StdEncoding.EncodeToString(payload),
		Signatures: []dsse.Signature{{Sig: base64.StdEncoding.EncodeToString(made)}},
	}))
}

// content returns the envelope as a bundle has it.
func content(payload, made []byte) *protobundle.Bundle_DsseEnvelope {
	return &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
		Payload: payload, PayloadType: statements, Signatures: []*protodsse.Signature{{Sig: made}},
	}}
}

func bundleJSON(made *protobundle.Bundle) []byte {
	var compact bytes.Buffer
	must(json.Compact(&compact, get(protojson.Marshal(made))))
	return compact.Bytes()
}
