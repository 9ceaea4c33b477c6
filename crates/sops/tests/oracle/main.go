// Command oracle encrypts and decrypts files with the library of SOPS, for the tests of crates/sops.
//
// It reads one request a line from standard input, in JSON, and answers each with one line. Identities of age
// are in the variable SOPS_AGE_KEY, as for the command sops.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	"github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/cmd/sops/common"
	"github.com/getsops/sops/v3/cmd/sops/formats"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/decrypt"
	"github.com/getsops/sops/v3/keyservice"
	"github.com/getsops/sops/v3/logging"
	"github.com/sirupsen/logrus"
)

// request asks for one operation on one file.
type request struct {
	// Op is "encrypt"; "decrypt"; "values": decrypt, and write each document as JSON on a line; or "seal": encrypt
	// the data itself for the first recipient of age.
	Op string `json:"op"`
	// Format is "yaml", "json", "dotenv", "ini" or "binary".
	Format string `json:"format"`
	// Data is the file.
	Data []byte `json:"data"`
	// Groups has the recipients of age for each group of keys.
	Groups [][]string `json:"groups"`
	// Threshold is the number of groups that are needed.
	Threshold int `json:"threshold"`
	// Rule is the name of the rule for the choice of values, such as "encrypted_regex"; it may be empty.
	Rule string `json:"rule"`
	// Pattern is the argument of the rule.
	Pattern string `json:"pattern"`
	// OnlyEncrypted makes a MAC over encrypted values only.
	OnlyEncrypted bool `json:"only_encrypted"`
}

// answer has the file or the error.
type answer struct {
	Data  []byte `json:"data,omitempty"`
	Error string `json:"error,omitempty"`
}

func main() {
	logging.SetLevel(logrus.FatalLevel)
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		reply, err := json.Marshal(serve(line))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		out.Write(append(reply, '\n'))
		out.Flush()
	}
}

func serve(line []byte) (reply answer) {
	// The library panics on some input.
	defer func() {
		if fault := recover(); fault != nil {
			reply = answer{Error: fmt.Sprintf("panic: %v", fault)}
		}
	}()
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Error: err.Error()}
	}
	var data []byte
	var err error
	switch asked.Op {
	case "encrypt":
		data, err = encrypt(asked)
	case "decrypt":
		data, err = decrypt.Data(asked.Data, asked.Format)
	case "values":
		data, err = values(asked)
	case "seal":
		data, err = seal(asked)
	default:
		err = fmt.Errorf("unknown operation %q", asked.Op)
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Data: data}
}

func encrypt(asked request) ([]byte, error) {
	store := common.StoreForFormat(formats.FormatFromString(asked.Format), config.NewStoresConfig())
	branches, err := store.LoadPlainFile(asked.Data)
	if err != nil {
		return nil, err
	}
	tree := sops.Tree{Branches: branches, Metadata: sops.Metadata{
		ShamirThreshold:  asked.Threshold,
		MACOnlyEncrypted: asked.OnlyEncrypted,
		Version:          "3.13.3",
	}}
	for _, recipients := range asked.Groups {
		var group sops.KeyGroup
		for _, recipient := range recipients {
			key, err := age.MasterKeyFromRecipient(recipient)
			if err != nil {
				return nil, err
			}
			group = append(group, key)
		}
		tree.Metadata.KeyGroups = append(tree.Metadata.KeyGroups, group)
	}
	switch asked.Rule {
	case "":
		tree.Metadata.UnencryptedSuffix = sops.DefaultUnencryptedSuffix
	case "unencrypted_suffix":
		tree.Metadata.UnencryptedSuffix = asked.Pattern
	case "encrypted_suffix":
		tree.Metadata.EncryptedSuffix = asked.Pattern
	case "unencrypted_regex":
		tree.Metadata.UnencryptedRegex = asked.Pattern
	case "encrypted_regex":
		tree.Metadata.EncryptedRegex = asked.Pattern
	case "unencrypted_comment_regex":
		tree.Metadata.UnencryptedCommentRegex = asked.Pattern
	case "encrypted_comment_regex":
		tree.Metadata.EncryptedCommentRegex = asked.Pattern
	default:
		return nil, fmt.Errorf("unknown rule %q", asked.Rule)
	}
	services := []keyservice.KeyServiceClient{keyservice.NewLocalClient()}
	key, faults := tree.GenerateDataKeyWithKeyServices(services)
	if len(faults) > 0 {
		return nil, faults[0]
	}
	if err := common.EncryptTree(common.EncryptTreeOpts{Tree: &tree, Cipher: aes.NewCipher(), DataKey: key}); err != nil {
		return nil, err
	}
	return store.EmitEncryptedFile(tree)
}

func seal(asked request) ([]byte, error) {
	key, err := age.MasterKeyFromRecipient(asked.Groups[0][0])
	if err != nil {
		return nil, err
	}
	if err := key.Encrypt(asked.Data); err != nil {
		return nil, err
	}
	return key.EncryptedDataKey(), nil
}

// values returns the decrypted documents apart from the format, whose writer has faults of its own.
func values(asked request) ([]byte, error) {
	stores := config.NewStoresConfig()
	tree, err := common.StoreForFormat(formats.FormatFromString(asked.Format), stores).LoadEncryptedFile(asked.Data)
	if err != nil {
		return nil, err
	}
	services := []keyservice.KeyServiceClient{keyservice.NewLocalClient()}
	options := common.DecryptTreeOpts{Tree: &tree, KeyServices: services, Cipher: aes.NewCipher()}
	if _, err := common.DecryptTree(options); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, branch := range tree.Branches {
		document, err := common.StoreForFormat(formats.Json, stores).EmitPlainFile(sops.TreeBranches{branch})
		if err != nil {
			return nil, err
		}
		if err := json.Compact(&out, document); err != nil {
			return nil, err
		}
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}
