#!/bin/sh
# Runs kernels and programs from the command line on a device and on the simulated one, and compares what comes of it: how the
# command ends, what it writes, what it says. What `kiln inspect` and `kiln check` say must not depend on a GPU at all.
# Needs nothing but a POSIX shell, coreutils and sed.
#
# KILN is the command (default: bin/kiln in the bundle), DEVICE what is compared with the simulated device (default: cuda).

set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
kiln=${KILN:-$here/../bin/kiln}
device=${DEVICE:-cuda}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME="$work/cache"
good=0
bad=0

# Counts a comparison: `count NAME [WHY]`, good if there is nothing to say.
count() {
    if [ -z "${2:-}" ]; then
        good=$((good + 1))
        echo "$1: the same"
    else
        bad=$((bad + 1))
        echo "$1: differs: $2"
        for file in "$work/$1"/*.json "$work/$1"/*.err; do [ -s "$file" ] && sed "s|^|  $(basename "$file"): |" "$file"; done
    fi
}

# `on SIDE NAME WORDS...`: runs the command in a folder of its own; its files, its words and its end stay there.
on() {
    side=$1
    name=$2
    shift 2
    mkdir -p "$work/$name/$side"
    (cd "$work/$name/$side" && timeout 60 "$kiln" "$@") > "$work/$name/$side.json" 2> "$work/$name/$side.err" < /dev/null
    echo $? > "$work/$name/$side.code"
}

files() { (cd "$work/$1" && for file in *; do [ -f "$file" ] && cksum "$file"; done); }
words() { sed -e '/^  "device":/d' -e '/^  "reason":/d' -e '/^  "seed":/d' -e '/^  "printed":/d' "$work/$1"; }

# `ended NAME CODE`: what is wrong with how the two sides of a comparison ended.
ended() {
    for side in device simulated; do
        code=$(cat "$work/$1/$side.code")
        [ "$code" -eq "$2" ] || echo "the $side side ended with $code instead of $2"
    done
}

# `run NAME CODE WORDS...`: the same launch on both devices.
run() {
    name=$1
    code=$2
    shift 2
    on device "$name" run "$@" --device "$device" --json
    on simulated "$name" run "$@" --device sim --json
    why=$(ended "$name" "$code")
    [ "$(files "$name/device")" = "$(files "$name/simulated")" ] || why="$why the files are not equal"
    # How a fault is told is each device's own.
    if [ "$code" -eq 0 ] && [ "$(words "$name/device.json")" != "$(words "$name/simulated.json")" ]; then
        why="$why the reports are not equal"
    fi
    count "$name" "$why"
}

# `tell NAME CODE WORDS...`: a command that says the same whether a GPU can be seen or not.
tell() {
    name=$1
    code=$2
    shift 2
    on device "$name" "$@"
    KILN_LIBCUDA=/nonexistent/libcuda.so.1
    export KILN_LIBCUDA
    on simulated "$name" "$@"
    unset KILN_LIBCUDA
    why=$(ended "$name" "$code")
    [ "$(cat "$work/$name/device.json")" = "$(cat "$work/$name/simulated.json")" ] || why="$why the words are not equal"
    count "$name" "$why"
}

cd "$work" || exit 1
"$kiln" run "$here/inputs.kir" --device sim --arg out:f32:1000:x.npy --arg out:f32:1000:y.npy --arg out:u8:4096:b.npy ||
    exit 1
x=in:$work/x.npy
y=inout:$work/y.npy:z.npy
kinds="elementwise.ptx"
if "$kiln" inspect "$here/elementwise.cu" > /dev/null 2> "$work/nvrtc.err"; then
    kinds="elementwise.cu $kinds"
else
    echo "CUDA C is left out: $(cat "$work/nvrtc.err")"
fi

for file in $kinds; do
    run "saxpy-$file" 0 "$here/$file" --kernel saxpy --grid 8 --block 128 --arg f32:2.5 --arg "$x" --arg "$y" --arg u32:1000
    tell "inspect-$file" 0 inspect "$here/$file" --json
done
run saxpy.kir 0 "$here/saxpy.kir" --arg "$x" --arg "$y" --arg f32:2.5
for file in $kinds; do
    why=
    [ "$(files "saxpy-$file/device")" = "$(files saxpy.kir/device)" ] || why="its result is not that of the program"
    count "languages-$file" "$why"
done
run index_3d 0 "$here/elementwise.ptx" --kernel index_3d --grid 2,3,2 --block 8,4,2 --arg out:u32:768:o.npy --arg u32:16 --arg u32:12 --arg u32:4
run histogram 0 "$here/histogram.ptx" --kernel histogram_shared --grid 4 --block 256 --arg "in:$work/b.npy" --arg out:u32:256:bins.npy --arg u32:4096
run reversed 0 "$here/reversed.kir" --arg "$x" --arg out:f32:1000:o.npy
run saxpy-in-other-blocks 0 "$here/saxpy.kir" --block 64 --grid 20 --arg "$x" --arg "$y" --arg f32:-1
run rounds 0 "$here/grid_barrier.kir" --grid 15 --arg "inout:$work/x.npy:o.npy" --arg u32:5
run traps 5 "$here/traps.kir" --arg "in:$work/b.npy" --arg out:u8:4096:o.npy
run astray 5 "$here/astray.kir" --arg "$x" --arg out:f32:1000:o.npy
run refused-elements 3 "$here/saxpy.kir" --arg "in:$work/b.npy" --arg "$y" --arg f32:1
run refused-access 3 "$here/elementwise.ptx" --kernel saxpy --grid 8 --block 128 --arg f32:1 --arg "$x" --arg "in:$work/y.npy" --arg u32:1
run refused-block 3 "$here/elementwise.ptx" --kernel saxpy --grid 8 --block 2048 --arg f32:1 --arg "$x" --arg "$y" --arg u32:1
run broken 4 "$here/broken.kir" --arg out:f32:10:o.npy
tell inspect-grid_barrier.kir 0 inspect "$here/grid_barrier.kir" --json
tell inspect-broken.kir 4 inspect "$here/broken.kir"
tell check-reversed.kir 0 check "$here/reversed.kir" --json --arg "$x" --arg out:f32:1000:o.npy
tell check-raced.kir 5 check "$here/raced.kir" --json --arg "$x" --arg out:f32:1000:o.npy
tell check-astray.kir 5 check "$here/astray.kir" --json --arg "$x" --arg out:f32:1000:o.npy
tell check-histogram.ptx 0 check "$here/histogram.ptx" --json --kernel histogram_shared --grid 4 --block 256 --arg "in:$work/b.npy" --arg zeros:u32:256:bins.npy --arg u32:4096
tell check-on-a-gpu 3 check "$here/reversed.kir" --device cuda --arg "$x" --arg out:f32:1000:o.npy

echo "$good the same, $bad differ"
[ "$bad" -eq 0 ]
