#!/bin/sh
# The tests of cudarc, unmodified, through `kiln exec --device cuda`, in the bundle's directory. Ends well if they came to an end and none failed but those of the
# file suites/may-fail.

set -u
if [ ! -x bin/cudarc-tests ]; then
    echo "the tests of cudarc are not in this bundle"
    exit 1
fi
log=${LOGS:-logs}/cudarc-suite.tests
mkdir -p "$(dirname "$log")"
# run.sh asks our own tests for a GPU by these; the program has one.
unset KILN_REQUIRE_GPU KILN_POLICY KILN_SKIP_LOG
bin/kiln exec --device cuda -- bin/cudarc-tests --test-threads 4 > "$log" 2>&1
code=$?
grep '^kiln exec: \|^ *[0-9]*\. process ' "$log"
if ! grep -q '^test result: ' "$log"; then
    echo "the tests came to no end (exit $code)"
    tail -n 20 "$log"
    exit 1
fi
failed=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log" | grep -vxF -f suites/may-fail)
sed -n 's/^test result: //p' "$log"
# A finding ends the command with 5, also where all tests passed.
[ "$code" -ne 5 ] || echo "there are findings"
if [ -n "$failed" ]; then
    echo "$failed" | sed 's/^/failed: /'
    exit 1
fi
[ "$code" -ne 5 ]
