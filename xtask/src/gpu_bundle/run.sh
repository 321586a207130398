#!/bin/sh
# Runs what this bundle holds, on a host with a CUDA driver. Needs a POSIX shell, coreutils, awk, sed, tar, xz and flock.
#
#   ./run.sh               every test binary and every command; the last line is "N passed, N failed"
#   ./run.sh only NAME     one test binary, command or benchmark
#   ./run.sh bench         every benchmark
#   ./run.sh list          what there is
#   ./run.sh sanitize      the test binaries under compute-sanitizer, in about eight minutes at the most; ends well if all
#                          are clean: nothing reported, nothing failed, nothing stopped
#   ./run.sh sanitize only NAME   one of these; they are in the file `sanitized`
#
# Logs go to the directory LOGS (default: logs beside this script). TEST_SECONDS (default 900) is how long one test
# binary or command may take before it is stopped and counted as failed. Most take seconds. On a host that has not run them before, the
# driver compiles about 20,000 programs for kiln-ir-device: five minutes of one core, divided among up to eight processes.
# A test that wants a GPU and finds none fails here.
# COMPUTE_SANITIZER is the path of that tool where it is neither on PATH nor with the toolkit; SANITIZE_SECONDS (default 480) is how
# long all runs under it may take together.

set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
logs=${LOGS:-$here/logs}
seconds=${TEST_SECONDS:-900}
passed=0
failed=0

# Several of these may be started at once: one unpacks, the others wait until it has. What one left that was killed is unpacked anew.
if [ -f "$here/packed.tar.xz" ]; then
    (
        flock 9 || exit 1
        [ ! -f "$here/packed.tar.xz" ] || { tar -xJf "$here/packed.tar.xz" -C "$here" && rm "$here/packed.tar.xz"; }
    ) 9> "$here/unpacking" || exit 1
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

# Where compute-sanitizer is.
find_sanitizer() {
    for tool in "${COMPUTE_SANITIZER:-}" "$(command -v compute-sanitizer)" /usr/local/cuda*/bin/compute-sanitizer \
        /usr/local/cuda*/compute-sanitizer/compute-sanitizer; do
        [ -n "$tool" ] && [ -x "$tool" ] && echo "$tool" && return 0
    done
    return 1
}

# One run under compute-sanitizer, a line of the list: `sanitize NAME`. Calls that answer with an error are not reported: tests make
# them on purpose. Neither are processes that a test starts, which fault on purpose.
sanitize() {
    name=$1
    tool=$(awk -F '\t' -v name="$name" '$1 == name { print $2 }' "$here/sanitized")
    limit=$(awk -F '\t' -v name="$name" '$1 == name { print $3 }' "$here/sanitized")
    settings=$(awk -F '\t' -v name="$name" '$1 == name { print $4 }' "$here/sanitized")
    line=$(awk -F '\t' -v name="$name" '$1 == name { print $5 }' "$here/sanitized")
    left=$((deadline - $(date +%s)))
    [ "$left" -ge 1 ] || left=1
    [ "$limit" -le "$left" ] || limit=$left
    log=$logs/$name.sanitize.log
    report=$logs/$name.report
    : > "$report"
    # Settings and command are the bundle's own, split at their blanks on purpose. A binary may try the simulated device for a while before
    # it loads the driver, and is waited for.
    # shellcheck disable=SC2086
    (cd "$here" && env $settings timeout -k 5 "$limit" "$sanitizer" --tool "$tool" --report-api-errors no --launch-timeout "$limit" \
        --target-processes application-only --error-exitcode 86 --log-file "$report" $line) > "$log" 2>&1 < /dev/null
    code=$?
    reported=$(awk '/SUMMARY:/ { for (i = 1; i < NF; i++) if ($i == "SUMMARY:") n += $(i + 1) } END { print n + 0 }' "$report")
    # A run that was stopped has no summary.
    [ "$reported" -ne 0 ] || reported=$(grep -c '^========= \(Invalid\|Error: Race\|Warning: Race\)' "$report")
    if [ "$reported" -ne 0 ]; then
        dirty=$((dirty + 1))
        echo "$name ($tool): $reported accesses reported"
        head -n 40 "$report" | sed 's/^/  | /'
    elif [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then
        stopped=$((stopped + 1))
        echo "$name ($tool): timed out after $limit s"
    elif [ "$code" -ne 0 ]; then
        failed=$((failed + 1))
        echo "$name ($tool): failed (exit $code), nothing reported"
        tail -n 20 "$log" | sed 's/^/  | /'
    else
        clean=$((clean + 1))
        echo "$name ($tool): passed"
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
    test | bench | only | sanitize) ;;
    *)
        echo "usage: run.sh [only NAME | bench | list | sanitize [only NAME]]" >&2
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
    sanitize)
        clean=0
        dirty=0
        stopped=0
        deadline=$(($(date +%s) + ${SANITIZE_SECONDS:-480}))
        sanitizer=$(find_sanitizer) || {
            echo "there is no compute-sanitizer; set COMPUTE_SANITIZER to its path" >&2
            exit 2
        }
        case ${2:-} in
            '')
                awk -F '\t' '{ print "left out: " $1 ": " $2 }' "$here/left-out"
                for name in $(names sanitized); do sanitize "$name"; done
                ;;
            only)
                has sanitized "${3:-}" || {
                    echo "there is no \`${3:-}\` to sanitize; the file \`sanitized\` shows what there is" >&2
                    exit 2
                }
                sanitize "$3"
                ;;
            *)
                echo "usage: run.sh sanitize [only NAME]" >&2
                exit 2
                ;;
        esac
        echo "$clean clean, $dirty with reports, $failed failed, $stopped timed out"
        [ "$((dirty + failed + stopped))" -eq 0 ]
        exit
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
