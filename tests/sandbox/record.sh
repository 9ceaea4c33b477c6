#!/bin/sh
# Records what Kubernetes 1.36.3 says of its types, of writes and of objects: the table in crates/sandbox/src/schema and the
# answers in this folder. The Go module of the control plane of the tests has all that it takes.
set -eu

cd "$(dirname "$0")/../control-plane"
CGO_ENABLED=0
export CGO_ENABLED
go run -trimpath ./sandbox/schema ../../crates/sandbox/src/schema
go run -trimpath ./sandbox/ownership >../sandbox/ownership.jsonl
go run -trimpath ./sandbox/objects >../sandbox/objects.jsonl
