#!/bin/sh
# Runs what this bundle holds, on a host with a CUDA driver. Needs a POSIX shell, coreutils, awk, sed, tar and gzip.
#
#   ./run.sh               every test binary and every command; the last line is "N passed, N failed"
#   ./run.sh only NAME     one test binary, command or benchmark
#   ./run.sh bench         every benchmark
#   ./run.sh list          what there is
#
# Logs go to the directory LOGS (default: logs beside this script). TEST_SECONDS (default 300) is how long one test
# binary or command may take before it is stopped and counted as failed. A test that wants a GPU and finds none fails here.

set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
logs=${LOGS:-$here/logs}
seconds=${TEST_SECONDS:-300}
passed=0
failed=0

if [ -f "$here/packed.tar.gz" ]; then
    tar -xzf "$here/packed.tar.gz" -C "$here" && rm "$here/packed.tar.gz" || exit 1
fi

export KILN_REQUIRE_GPU=1
export KILN_POLICY=required
export KILN_SKIP_LOG="$logs/skips"

# The sum of the numbers before a word, over the result lines of a log: `sum passed FILE`.
sum() {
    sed -n 's/^test result: [A-Za-z]*\. //p' "$2" |
        awk -v word="$1" '{ for (i = 2; i <= NF; i++) if ($i ~ "^" word) n += $(i - 1) } END { print n + 0 }'
}

run_test() {
    name=$1
    log=$logs/$name.log
    : > "$KILN_SKIP_LOG"
    timeout "$seconds" "$here/tests/$name" > "$log" 2>&1 < /dev/null
    code=$?
    good=$(sum passed "$log")
    bad=$(sum failed "$log")
    skips=$(awk 'NF { n++ } END { print n + 0 }' "$KILN_SKIP_LOG")
    good=$((good - skips))
    if [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
    fi
    passed=$((passed + good))
    failed=$((failed + bad))
    echo "$name: $good passed, $bad failed, $skips skipped (exit $code)"
    sed 's/^/  skipped: /' "$KILN_SKIP_LOG"
    if [ "$bad" -ne 0 ]; then
        [ "$code" -eq 124 ] && echo "  stopped after $seconds s"
        sed -n 's/^test \(.*\) \.\.\. FAILED$/  failed: \1/p' "$log"
        tail -n 40 "$log" | sed 's/^/  | /'
    fi
}

# One line of a list, `run_line LIST NAME SECONDS`: passed if it exits with 0 in time; 0 seconds is no limit.
run_line() {
    name=$2
    line=$(awk -F '\t' -v name="$name" '$1 == name { print $2 }' "$here/$1")
    echo "$name: $line"
    # The command is one of the bundle's own lines, split at its blanks on purpose.
    # shellcheck disable=SC2086
    (cd "$here" && timeout "$3" $line) > "$logs/$name.log" 2>&1 < /dev/null
    code=$?
    sed 's/^/  /' "$logs/$name.log"
    if [ "$code" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$name: failed (exit $code)"
    fi
}

tests() { for file in "$here"/tests/*; do [ -f "$file" ] && basename "$file"; done; }
names() { awk -F '\t' '{ print $1 }' "$here/$1"; }
has() { names "$1" | grep -qxF -- "$2"; }

case ${1:-test} in
    list)
        tests
        names commands
        names benchmarks
        exit 0
        ;;
    test | bench | only) ;;
    *)
        echo "usage: run.sh [only NAME | bench | list]" >&2
        exit 2
        ;;
esac

mkdir -p "$logs" || exit 1
sed -n '1,4p' "$here/MANIFEST"
case ${1:-test} in
    test)
        for name in $(tests); do run_test "$name"; done
        for name in $(names commands); do run_line commands "$name" "$seconds"; done
        ;;
    bench)
        for name in $(names benchmarks); do run_line benchmarks "$name" 0; done
        ;;
    only)
        if [ -n "${2:-}" ] && [ -f "$here/tests/$2" ]; then
            run_test "$2"
        elif [ -n "${2:-}" ] && has commands "$2"; then
            run_line commands "$2" "$seconds"
        elif [ -n "${2:-}" ] && has benchmarks "$2"; then
            run_line benchmarks "$2" 0
        else
            echo "there is no \`${2:-}\` in this bundle; ./run.sh list shows what there is" >&2
            exit 2
        fi
        ;;
esac

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
