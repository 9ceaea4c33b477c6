#!/bin/sh
# Runs a command, and ends with a line that counts the tests that it left out. Those that MOORLINE_TEST_PLANE=none leaves out are
# many and counted alone; for the others the reason is in the output.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{ "$@" 2>&1; echo $? >"$work/status"; } | tee "$work/out" | grep -v ': MOORLINE_TEST_PLANE=none$'
left_out=$(grep -cE '(^|\.\.\. )skipped [A-Za-z0-9_:]+( on the sandbox)?: ' "$work/out")
[ "$left_out" -eq 0 ] || echo "left out: $left_out tests"
exit "$(cat "$work/status")"
