#!/usr/bin/env python3
"""Records what kubectl and Kustomize read from the inputs beside this file.

In: inputs.json, a list of {id, where, input}; where says how the input becomes a file:
    scalar  the value of spec.v        key   the inside of the map spec.v
    file    the whole file
Out: recorded.json, for every id the objects that each tool reads, or the first line of its refusal.
Of two keys that become one text (key-214) kubectl keeps either, by chance; the reader keeps the last, so that
is the answer to keep. It needs a kubectl on the PATH and no cluster. Run it after adding inputs: python3 tests/yaml/record.py
"""

import json
import pathlib
import re
import resource
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
HEAD = "apiVersion: example.com/v1\nkind: Probe\nmetadata:\n  name: p\nspec:\n  v:"
# Kustomize follows an anchor that holds itself until its stack ends, and expands alias bombs in full.
SECONDS, MEMORY = 20, 2 << 30
WRAP = {"scalar": HEAD + " {}\n", "key": HEAD + "\n    {}\n", "file": "{}"}


def run(*arguments):
    """The JSON values that kubectl prints, or why it refuses."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    command = ["kubectl", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return None, f"no answer in {SECONDS} seconds"
    if done.returncode:
        first = (done.stderr.strip().splitlines() or ["no message"])[0]
        # Kustomize's refusals begin with a time and a process number; folders differ in every run.
        first = re.sub(r"^[A-Z]\d{4} [\d:.]+\s+\d+ ", "", first)
        return None, re.sub(re.escape(tempfile.gettempdir()) + r"/\w+", "FOLDER", first)[:200]
    return done.stdout, None


def objects(path):
    """What kubectl reads from a file, by a patch that changes nothing."""
    text, refusal = run("patch", "--local", "--type=merge", "-p", "{}", "-o", "json", "-f", str(path))
    if refusal is not None:
        return {"refused": refusal}
    values, decoder, at = [], json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        values.append(value)
    return values


def kustomized(folder):
    """What a cluster gets from Kustomize: its output, read by kubectl."""
    (folder / "kustomization.yaml").write_text("resources: [in.yaml]\n")
    text, refusal = run("kustomize", str(folder))
    if refusal is not None:
        return {"refused": refusal}
    if not text.strip():
        return []
    (folder / "out.yaml").write_text(text)
    return objects(folder / "out.yaml")


def main():
    recorded = {}
    for entry in json.loads((HERE / "inputs.json").read_text()):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            text = WRAP[entry["where"]].replace("{}", entry["input"])
            (folder / "in.yaml").write_bytes(text.encode())
            recorded[entry["id"]] = {"kubectl": objects(folder / "in.yaml"), "kustomize": kustomized(folder)}
    lines = [f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in recorded.items()]
    (HERE / "recorded.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
