//! Pairs whose values and flags are all strong: nothing races, but without a fence between the value and the flag a thread may wait for the flag and read the
//! old value.

use crate::race_cases::{Pair, Told};

/// All of them.
pub(crate) const PUBLISHED: &[Pair] = &[
    Pair {
        name: "a volatile value and a volatile flag",
        shape: (2, 1),
        told: Told::NoFence,
        body: "setp.eq.u32 %p0, %b, 0; @%p0 bra FIRST;
               WAIT: ld.volatile.global.u32 %r1, [%data+4096]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT; membar.gl; ld.volatile.global.u32 %r2, [%data]; bra DONE;
               FIRST: st.volatile.global.u32 [%data], 5; #1 st.volatile.global.u32 [%data+4096], 1;
               DONE:",
        wrong: ["", ""],
        right: ["membar.gl;", ""],
    },
    Pair {
        name: "a volatile value and a flag of atomics",
        shape: (2, 1),
        told: Told::NoFence,
        body: "setp.eq.u32 %p0, %b, 0; @%p0 bra FIRST;
               WAIT: atom.global.add.u32 %r1, [%data+4096], 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT; #2 ld.volatile.global.u32 %r2, [%data]; bra DONE;
               FIRST: st.volatile.global.u32 [%data], 5; #1 atom.global.exch.b32 %r1, [%data+4096], 1;
               DONE:",
        wrong: ["", "membar.gl;"],
        // The reader's own fence is not asked for: control flow keeps the read behind the wait.
        right: ["membar.gl;", ""],
    },
    Pair {
        name: "a volatile value with a fence of the block",
        shape: (2, 1),
        told: Told::NoFence,
        body: "setp.eq.u32 %p0, %b, 0; @%p0 bra FIRST;
               WAIT: ld.volatile.global.u32 %r1, [%data+4096]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT; membar.gl; ld.volatile.global.u32 %r2, [%data]; bra DONE;
               FIRST: st.volatile.global.u32 [%data], 5; membar.#1; st.volatile.global.u32 [%data+4096], 1;
               DONE:",
        wrong: ["cta", ""],
        right: ["gl", ""],
    },
    Pair {
        name: "one thread waits and all read volatile values",
        shape: (2, 64),
        told: Told::NoFence,
        body: "setp.eq.u32 %p0, %b, 0; setp.ne.u32 %p2, %t, 0; @%p0 bra FIRST; @%p2 bra MEET;
               WAIT: ld.volatile.global.u32 %r1, [%data+4096]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT; membar.gl;
               MEET: bar.sync 0; ld.volatile.global.u32 %r2, [%own+-256]; bra DONE;
               FIRST: st.volatile.global.u32 [%own], 5; bar.sync 0; @%p2 bra DONE; #1 st.volatile.global.u32 [%data+4096], 1;
               DONE:",
        wrong: ["", ""],
        right: ["membar.gl;", ""],
    },
    Pair {
        name: "a volatile sum under a lock without fences",
        shape: (3, 1),
        told: Told::NoFence,
        body: "LOCK: atom.global.cas.b32 %r1, [%data+4096], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOCK; #1
               ld.volatile.global.u32 %r2, [%data]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%data], %r2;
               #1 atom.global.exch.b32 %r1, [%data+4096], 0;",
        wrong: ["", ""],
        right: ["membar.gl;", ""],
    },
    Pair {
        name: "a volatile value in shared memory",
        shape: (1, 64),
        told: Told::NoFence,
        body: "setp.lt.u32 %p0, %t, 32; setp.ne.u32 %p2, %lane, 0; @%p2 bra DONE; @%p0 bra FIRST;
               WAIT: ld.volatile.shared.u32 %r1, [%s+512]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT; membar.cta; ld.volatile.shared.u32 %r2, [%s]; bra DONE;
               FIRST: st.volatile.shared.u32 [%s], 5; #1 st.volatile.shared.u32 [%s+512], 1;
               DONE:",
        wrong: ["", ""],
        right: ["membar.cta;", ""],
    },
    Pair {
        name: "a volatile value before the flag, or behind it",
        shape: (2, 1),
        told: Told::NoFence,
        body: "setp.eq.u32 %p0, %b, 0; @%p0 bra FIRST;
               WAIT: ld.volatile.global.u32 %r1, [%data+4096]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT; membar.gl; ld.volatile.global.u32 %r2, [%data]; bra DONE;
               FIRST: #1 st.volatile.global.u32 [%data+4096], 1; #2
               DONE:",
        wrong: ["st.volatile.global.u32 [%data], 5;", ""],
        right: ["", "st.volatile.global.u32 [%data], 5;"],
    },
    Pair {
        name: "a volatile value that is read once, or until it is there",
        shape: (2, 1),
        told: Told::NoFence,
        body: "setp.eq.u32 %p0, %b, 0; @%p0 bra FIRST;
               WAIT: ld.volatile.global.u32 %r1, [%data+4096]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT; membar.gl;
               AGAIN: ld.volatile.global.u32 %r2, [%data]; #1 ld.volatile.global.u32 %r3, [%data]; ld.volatile.global.u32 %r4, [%data+4096]; bra DONE;
               FIRST: st.volatile.global.u32 [%data], 5; st.volatile.global.u32 [%data+4096], 1;
               DONE:",
        wrong: ["", ""],
        right: ["setp.eq.u32 %p1, %r2, 0; @%p1 bra AGAIN;", ""],
    },
    Pair {
        name: "a volatile value behind a wait, or behind a look",
        shape: (2, 1),
        told: Told::NoFence,
        body: "setp.eq.u32 %p0, %b, 0; @%p0 bra FIRST;
               WAIT: ld.volatile.global.u32 %r1, [%data+4096]; setp.eq.u32 %p1, %r1, 0; @%p1 bra #1; ld.volatile.global.u32 %r2, [%data]; bra DONE;
               FIRST: st.volatile.global.u32 [%data], 5; st.volatile.global.u32 [%data+4096], 1;
               DONE:",
        wrong: ["WAIT", ""],
        right: ["DONE", ""],
    },
    Pair {
        name: "a volatile value behind a lock, or behind a ticket of a work queue",
        shape: (3, 1),
        told: Told::NoFence,
        body: "NEXT: atom.global.#1; setp.eq.u32 %p1, %r1, 1; @%p1 bra NEXT; ld.volatile.global.u32 %r2, [%data]; st.volatile.global.u32 [%data], 5;
               atom.global.exch.b32 %r1, [%data+4096], 0;",
        wrong: ["exch.b32 %r1, [%data+4096], 1", ""],
        right: ["add.u32 %r1, [%data+4096], 4", ""],
    },
];
