//! Pairs whose race shows only to a thread that misses one of several releases, or that gives up a wait.

use crate::race_cases::{Pair, Told};

/// All of them.
pub(crate) const WAITS: &[Pair] = &[
    Pair {
        name: "a relaxed store of a third block behind a release",
        shape: (3, 1),
        told: Told::Race,
        body: "setp.eq.u32 %p0, %b, 0; @%p0 bra FIRST; setp.eq.u32 %p0, %b, 1; @%p0 bra SECOND;
               WAIT: ld.acquire.gpu.global.u32 %r1, [%data+4096]; setp.ne.u32 %p1, %r1, 2; @%p1 bra WAIT; ld.global.u32 %r2, [%data]; bra DONE;
               FIRST: st.global.u32 [%data], 5; st.release.gpu.global.u32 [%data+4096], 1; bra DONE;
               SECOND: ld.#1.gpu.global.u32 %r1, [%data+4096]; setp.eq.u32 %p1, %r1, 0; @%p1 bra SECOND; st.#2.gpu.global.u32 [%data+4096], 2;
               DONE:",
        wrong: ["relaxed", "relaxed"],
        right: ["acquire", "release"],
    },
    Pair {
        name: "a relaxed store of a block that was woken by another flag",
        shape: (3, 1),
        told: Told::Race,
        body: "setp.eq.u32 %p0, %b, 0; @%p0 bra FIRST; setp.eq.u32 %p0, %b, 1; @%p0 bra SECOND;
               WAIT: ld.acquire.gpu.global.u32 %r1, [%data+4096]; setp.ne.u32 %p1, %r1, 2; @%p1 bra WAIT; ld.global.u32 %r2, [%data]; bra DONE;
               FIRST: st.global.u32 [%data], 5; st.release.gpu.global.u32 [%data+4096], 1; st.#2.gpu.global.u32 [%data+4100], 1; bra DONE;
               SECOND: ld.#1.gpu.global.u32 %r1, [%data+4100]; setp.eq.u32 %p1, %r1, 0; @%p1 bra SECOND; st.#2.gpu.global.u32 [%data+4096], 2;
               DONE:",
        wrong: ["relaxed", "relaxed"],
        right: ["acquire", "release"],
    },
    Pair {
        name: "a release that a wait sees for long and may miss",
        shape: (3, 1),
        told: Told::Race,
        body: "setp.eq.u32 %p0, %b, 0; @%p0 bra FIRST; setp.eq.u32 %p0, %b, 1; @%p0 bra SECOND;
               WAIT: ld.acquire.gpu.global.u32 %r1, [%data+4096]; setp.ne.u32 %p1, %r1, 2; @%p1 bra WAIT; ld.global.u32 %r2, [%data]; bra DONE;
               FIRST: st.global.u32 [%data], 5; st.release.gpu.global.u32 [%data+4096], 1; mov.u32 %r9, 0;
               LONG: ld.volatile.global.u32 %r1, [%data+4104]; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 2000; @%p1 bra LONG;
               st.#2.gpu.global.u32 [%data+4100], 1; bra DONE;
               SECOND: ld.#1.gpu.global.u32 %r1, [%data+4100]; setp.eq.u32 %p1, %r1, 0; @%p1 bra SECOND; st.#2.gpu.global.u32 [%data+4096], 2;
               DONE:",
        wrong: ["relaxed", "relaxed"],
        right: ["acquire", "release"],
    },
    Pair {
        name: "a fence behind a wait that may miss a release",
        shape: (3, 1),
        told: Told::Race,
        body: "setp.eq.u32 %p0, %b, 0; @%p0 bra FIRST; setp.eq.u32 %p0, %b, 1; @%p0 bra SECOND;
               WAIT: ld.volatile.global.u32 %r1, [%data+4096]; setp.ne.u32 %p1, %r1, 2; @%p1 bra WAIT; membar.gl; ld.global.u32 %r2, [%data]; bra DONE;
               FIRST: st.global.u32 [%data], 5; membar.gl; st.volatile.global.u32 [%data+4096], 1; bra DONE;
               SECOND: ld.volatile.global.u32 %r1, [%data+4096]; setp.eq.u32 %p1, %r1, 0; @%p1 bra SECOND; #1 st.volatile.global.u32 [%data+4096], 2;
               DONE:",
        wrong: ["", ""],
        right: ["membar.gl;", ""],
    },
    Pair {
        name: "a fence in a wait that may miss a release",
        shape: (3, 1),
        told: Told::Race,
        body: "setp.eq.u32 %p0, %b, 0; @%p0 bra FIRST; setp.eq.u32 %p0, %b, 1; @%p0 bra SECOND;
               WAIT: ld.volatile.global.u32 %r1, [%data+4096]; membar.gl; setp.ne.u32 %p1, %r1, 2; @%p1 bra WAIT; ld.global.u32 %r2, [%data]; bra DONE;
               FIRST: st.global.u32 [%data], 5; membar.gl; st.volatile.global.u32 [%data+4096], 1; bra DONE;
               SECOND: ld.volatile.global.u32 %r1, [%data+4096]; setp.eq.u32 %p1, %r1, 0; @%p1 bra SECOND; #1 st.volatile.global.u32 [%data+4096], 2;
               DONE:",
        wrong: ["", ""],
        right: ["membar.gl;", ""],
    },
    Pair {
        name: "a wait of lanes that may miss a release of their block",
        shape: (1, 96),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %t, 0; @%p0 bra MEET; mov.u32 %r1, 0; st.shared.u32 [%s+512], %r1; MEET: bar.sync 0;
               shr.u32 %r9, %t, 5; setp.ne.u32 %p0, %lane, 0; setp.ne.and.u32 %p0, %r9, 2, %p0; @%p0 bra DONE;
               setp.eq.u32 %p0, %r9, 0; @%p0 bra FIRST; setp.eq.u32 %p0, %r9, 1; @%p0 bra SECOND;
               WAIT: ld.acquire.cta.shared.u32 %r1, [%s+512]; setp.ne.u32 %p1, %r1, 2; @%p1 bra WAIT; ld.shared.u32 %r2, [%s]; bra DONE;
               FIRST: mov.u32 %r1, 5; st.shared.u32 [%s], %r1; mov.u32 %r1, 1; st.release.cta.shared.u32 [%s+512], %r1; bra DONE;
               SECOND: ld.#1.cta.shared.u32 %r1, [%s+512]; setp.eq.u32 %p1, %r1, 0; @%p1 bra SECOND; mov.u32 %r1, 2; st.#2.cta.shared.u32 [%s+512], %r1;
               DONE:",
        wrong: ["relaxed", "relaxed"],
        right: ["acquire", "release"],
    },
    Pair {
        name: "a lock that gives up",
        shape: (4, 1),
        told: Told::Race,
        body: "mov.u32 %r9, 0;
               TRY: atom.global.cas.b32 %r1, [%data+4096], 0, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra GOT;
               add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 8; @%p1 bra TRY; #1
               GOT: membar.gl; ld.global.u32 %r2, [%data]; add.u32 %r2, %r2, 1; st.global.u32 [%data], %r2; membar.gl;
               atom.global.exch.b32 %r1, [%data+4096], 0; DONE:",
        wrong: ["", ""],
        right: ["bra DONE;", ""],
    },
    Pair {
        name: "a lock of warps that gives up",
        shape: (1, 128),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %t, 0; @%p0 bra MEET; mov.u32 %r1, 0; st.shared.u32 [%s+512], %r1; st.shared.u32 [%s], %r1; MEET: bar.sync 0;
               setp.ne.u32 %p0, %lane, 0; @%p0 bra DONE; mov.u32 %r9, 0;
               TRY: atom.shared.cas.b32 %r1, [%s+512], 0, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra GOT;
               add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 8; @%p1 bra TRY; #1
               GOT: membar.cta; ld.shared.u32 %r2, [%s]; add.u32 %r2, %r2, 1; st.shared.u32 [%s], %r2; membar.cta;
               atom.shared.exch.b32 %r1, [%s+512], 0; DONE:",
        wrong: ["", ""],
        right: ["bra DONE;", ""],
    },
];
