#!/bin/sh
# Several ranks on the one GPU of a host, over NCCL: every collective, also in graphs that are replayed a hundred times, one that a rank does not call, the cluster's doctor, training whose losses must be the same to the last bit on one, two and three
# ranks, the same with a rank that is killed in the middle, and a rank that is killed among a thousand queued all-reduces.
# Needs nothing but a POSIX shell, coreutils and sed.
#
# KILN, COLLECTIVES, KILLED_RANK and TRAINING are the programs (default: those of the bundle). KILLS is how often a rank is killed in training (default 20), QUEUE_KILLS among queued
# all-reduces with NCCL in the ranks (20), and WORKER_KILLS with NCCL in worker processes (6). ONLY=queued leaves everything else out. KILN_NCCL names NCCL's file where it is not found.

set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
kiln=${KILN:-$here/../bin/kiln}
collectives=${COLLECTIVES:-$here/../bin/collectives}
training=${TRAINING:-$here/../bin/data_parallel}
killed_rank=${KILLED_RANK:-$here/../bin/killed_rank}
kills=${KILLS:-20}
queue_kills=${QUEUE_KILLS:-20}
worker_kills=${WORKER_KILLS:-6}
only=${ONLY:-all}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
good=0
bad=0

# Counts a step: `count NAME SECONDS [WHY]`, good if there is nothing to say.
count() {
    if [ -z "${3:-}" ]; then
        good=$((good + 1))
        echo "$1: good, $2 s"
    else
        bad=$((bad + 1))
        echo "$1: bad, $2 s: $3"
        sed 's/^/  | /' "$work/out"
    fi
}

# `ranks NUMBER WORDS...`: the ranks of a program; what they print is in the file `out`, how the job ended in `code`, the seconds in `spent`.
ranks() {
    number=$1
    shift
    began=$(date +%s)
    "$kiln" launch -n "$number" --keep-going --time-limit 120 -- sh "$here/one_gpu.sh" "$@" > "$work/out" 2>&1 < /dev/null
    code=$?
    spent=$(($(date +%s) - began))
}

# `queued JOBS SEED WORDS...`: jobs of two and of three ranks by turns, in each of which a rank is killed among a thousand queued all-reduces.
queued() {
    jobs=$1
    seed=$2
    shift 2
    for number in 2 3; do
        half=$(((jobs + 3 - number) / 2))
        [ "$half" -gt 0 ] || continue
        plural=s
        [ "$half" -gt 1 ] || plural=
        began=$(date +%s)
        "$killed_rank" --ranks "$number" --jobs "$half" --seed "$seed" "$@" > "$work/out" 2>&1 < /dev/null
        code=$?
        why=
        [ "$code" -eq 0 ] || why="it ended with $code"
        grep -q "^$half good, 0 bad" "$work/out" || why="$why not all jobs were good"
        count "a rank of $number killed among queued all-reduces,${*:+ $*,} $half job$plural" "$(($(date +%s) - began))" "$why"
        [ -n "$why" ] || sed -n '$s/^/  /p' "$work/out"
    done
}

queued "$queue_kills" 0
queued "$worker_kills" 100 --isolate
if [ "$only" = queued ]; then
    echo "$good good, $bad bad"
    [ "$bad" -eq 0 ]
    exit
fi

losses() { sed -n 's/^\[[0-9]*\] \(step [0-9]*: loss .*\)$/\1/p' "$work/out"; }

for number in 2 3; do
    ranks "$number" "$collectives"
    why=
    [ "$code" -eq 0 ] || why="it ended with $code"
    count "collectives on $number ranks" "$spent" "$why"
    sed -n 's/^\[\([0-9]*\)\] rank [0-9]*: \(ready after .*\)$/  rank \1: \2/p' "$work/out"
done

ranks 2 "$collectives" --isolate
why=
[ "$code" -eq 0 ] || why="it ended with $code"
count "collectives on 2 ranks, NCCL in worker processes" "$spent" "$why"

# Each kind of collective in a graph, and several of them in one; what they give is compared after each replay.
for words in 2 3 "2 --isolate"; do
    # shellcheck disable=SC2086
    set -- $words
    number=$1
    shift
    ranks "$number" "$collectives" --graphs "$@"
    why=
    [ "$code" -eq 0 ] || why="it ended with $code"
    [ "$(grep -c ' in a graph, 100 replays: right on rank 0 of '"$number"'$' "$work/out")" -eq 7 ] || why="$why not all kinds were right"
    grep -q ' in one graph, 100 replays at once: right on rank 0 of '"$number"'$' "$work/out" || why="$why several in one graph were not right"
    count "collectives in graphs on $number ranks${*:+, NCCL in worker processes}" "$spent" "$why"
done

# A rank that stays away from a collective is named at the deadline, and the others keep their memory.
for number in 2 3; do
    ranks "$number" "$collectives" --missing
    why=
    [ "$code" -eq 0 ] || why="it ended with $code"
    [ "$(grep -c ': told after [56][0-9]*[0-9][0-9][0-9] ms: .*rank '$((number - 1)) "$work/out")" -eq $((number - 1)) ] || why="$why not all others were told in time"
    [ "$(grep -c ': what it kept is there$' "$work/out")" -eq $((number - 1)) ] || why="$why memory is lost"
    count "a rank of $number that does not call a collective" "$spent" "$why"
    [ -n "$why" ] || sed -n 's/^\[\([0-9]*\)\] rank [0-9]*: \(told after .*\)$/  rank \1: \2/p' "$work/out"
done

# That the ranks share a GPU is told and is meant here; their sum must be right.
ranks 2 "$kiln" doctor --cluster
why=
grep -q 'The sum over all ranks is right.*over NCCL' "$work/out" || why="there is no sum over NCCL"
[ "$code" -eq 5 ] || why="$why it ended with $code instead of 5"
count "doctor --cluster on 2 ranks" "$spent" "$why"
sed 's/^/  /' "$work/out"

ranks 1 "$training"
losses > "$work/losses"
why=
[ "$code" -eq 0 ] || why="it ended with $code"
[ -s "$work/losses" ] || why="$why it printed no losses"
count "training on 1 rank" "$spent" "$why"
for number in 2 3; do
    ranks "$number" "$training"
    why=
    [ "$code" -eq 0 ] || why="it ended with $code"
    [ "$(losses)" = "$(cat "$work/losses")" ] || why="$why its losses are not those of one rank"
    count "training on $number ranks" "$spent" "$why"
done

# Rank 0 keeps the meeting point of the job and is not killed. A rank that kills itself ends by signal 6, which the job tells as 134.
kill=0
while [ "$kill" -lt "$kills" ]; do
    number=$((2 + kill % 2))
    rank=$((number - 1))
    step=$((kill * 7 % 12))
    ranks "$number" "$training" --kill-rank "$rank" --at-step "$step"
    why=
    [ "$code" -eq 134 ] || why="it ended with $code instead of 134"
    grep -q "rank $rank is lost" "$work/out" || why="$why no rank said that rank $rank is lost"
    [ "$(losses)" = "$(cat "$work/losses")" ] || why="$why its losses are not those of one rank"
    count "training on $number ranks, rank $rank killed at step $step" "$spent" "$why"
    kill=$((kill + 1))
done

echo "$good good, $bad bad"
[ "$bad" -eq 0 ]
