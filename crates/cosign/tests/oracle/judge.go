package main

import (
	"context"
	"crypto"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	cbundle "github.com/sigstore/cosign/v3/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v3/pkg/oci/static"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// question asks for a verdict about a bundle, or about a payload with annotations.
type question struct {
	Digest      string            `json:"digest"`
	Policy      policy            `json:"policy"`
	Bundle      []byte            `json:"bundle"`
	Payload     []byte            `json:"payload"`
	Annotations map[string]string `json:"annotations"`
}

// judge returns the reason of a refusal.
func judge(asked question) (err error) {
	defer func() {
		if found := recover(); found != nil {
			err = fmt.Errorf("panic: %v", found)
		}
	}()
	if asked.Bundle != nil {
		return judgeBundle(asked)
	}
	return judgeSimpleSigning(asked)
}

type keyMaterial struct {
	root.BaseTrustedMaterial
	key root.TimeConstrainedVerifier
}

func (m *keyMaterial) PublicKeyVerifier(string) (root.TimeConstrainedVerifier, error) {
	return m.key, nil
}

func loadKey(pem string) (signature.Verifier, error) {
	key, err := cryptoutils.UnmarshalPEMToPublicKey([]byte(pem))
	if err != nil {
		return nil, err
	}
	return signature.LoadDefaultVerifier(key)
}

func judgeBundle(asked question) error {
	var read bundle.Bundle
	if err := read.UnmarshalJSON(asked.Bundle); err != nil {
		return err
	}
	digest, err := hex.DecodeString(strings.TrimPrefix(asked.Digest, "sha256:"))
	if err != nil {
		return err
	}
	artifact := verify.WithArtifactDigest("sha256", digest)
	if len(asked.Policy.Keys) > 0 {
		key, err := loadKey(asked.Policy.Keys[0])
		if err != nil {
			return err
		}
		material := &keyMaterial{key: root.NewExpiringKey(key, time.Time{}, time.Time{})}
		verifier, err := verify.NewVerifier(material, verify.WithNoObserverTimestamps())
		if err != nil {
			return err
		}
		_, err = verifier.Verify(&read, verify.NewPolicy(artifact, verify.WithKey()))
		return err
	}
	trusted, err := root.NewTrustedRootFromJSON(asked.Policy.TrustedRoot)
	if err != nil {
		return err
	}
	options := []verify.VerifierOption{verify.WithObserverTimestamps(1)}
	if len(trusted.RekorLogs()) > 0 {
		options = append(options, verify.WithTransparencyLog(1))
	}
	if len(trusted.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	verifier, err := verify.NewVerifier(trusted, options...)
	if err != nil {
		return err
	}
	identity, err := verify.NewShortCertificateIdentity(asked.Policy.Issuer, "", asked.Policy.Subject, "")
	if err != nil {
		return err
	}
	_, err = verifier.Verify(&read, verify.NewPolicy(artifact, verify.WithCertificateIdentity(identity)))
	return err
}

func judgeSimpleSigning(asked question) error {
	digest, err := v1.NewHash(asked.Digest)
	if err != nil {
		return err
	}
	options := []static.Option{}
	if certificate := asked.Annotations[static.CertificateAnnotationKey]; certificate != "" {
		options = append(options, static.WithCertChain([]byte(certificate), []byte(asked.Annotations[static.ChainAnnotationKey])))
	}
	if entry := asked.Annotations[static.BundleAnnotationKey]; entry != "" {
		var read cbundle.RekorBundle
		if err := json.Unmarshal([]byte(entry), &read); err != nil {
			return err
		}
		options = append(options, static.WithBundle(&read))
	}
	if stamp := asked.Annotations[static.RFC3161TimestampAnnotationKey]; stamp != "" {
		var read cbundle.RFC3161Timestamp
		if err := json.Unmarshal([]byte(stamp), &read); err != nil {
			return err
		}
		options = append(options, static.WithRFC3161Timestamp(&read))
	}
	text := asked.Annotations[static.SignatureAnnotationKey]
	if _, err := base64.StdEncoding.DecodeString(text); err != nil || text == "" {
		return errors.New("no signature")
	}
	signed, err := static.NewSignature(asked.Payload, text, options...)
	if err != nil {
		return err
	}
	check := &cosign.CheckOpts{Offline: true, ClaimVerifier: cosign.SimpleClaimVerifier}
	if len(asked.Policy.Keys) > 0 {
		key, err := cryptoutils.UnmarshalPEMToPublicKey([]byte(asked.Policy.Keys[0]))
		if err != nil {
			return err
		}
		check.IgnoreTlog = true
		check.SigVerifier, err = signature.LoadVerifier(key, crypto.SHA256)
		if err != nil {
			return err
		}
	} else {
		trusted, err := root.NewTrustedRootFromJSON(asked.Policy.TrustedRoot)
		if err != nil {
			return err
		}
		check.TrustedMaterial = trusted
		check.IgnoreTlog = len(trusted.RekorLogs()) == 0
		check.IgnoreSCT = len(trusted.CTLogs()) == 0
		check.UseSignedTimestamps = check.IgnoreTlog
		check.Identities = []cosign.Identity{{Issuer: asked.Policy.Issuer, Subject: asked.Policy.Subject}}
	}
	_, err = cosign.VerifyImageSignature(context.Background(), signed, digest, check)
	return err
}
