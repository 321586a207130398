//! Pairs whose race only shows when threads are preempted: those that wait would otherwise see the last release alone.

use crate::race_cases::{Pair, Told};

/// All of them.
pub(crate) const SPINS: &[Pair] = &[
    Pair {
        name: "a ring without back-pressure",
        shape: (2, 1),
        told: Told::Race,
        body: "mov.u32 %r9, 0; setp.ne.u32 %p0, %b, 0;
               LOOP: and.b32 %r8, %r9, 1; mul.wide.u32 %d1, %r8, 4; add.s64 %d1, %d1, %data; add.u32 %r7, %r9, 1; @%p0 bra CONSUMER;
               #1 st.global.u32 [%d1], %r9; membar.gl; atom.global.exch.b32 %r6, [%data+4096], %r7; bra NEXT;
               CONSUMER: atom.global.add.u32 %r6, [%data+4096], 0; setp.le.u32 %p1, %r6, %r9; @%p1 bra CONSUMER; membar.gl;
               ld.global.u32 %r5, [%d1]; membar.gl; atom.global.exch.b32 %r6, [%data+4100], %r7;
               NEXT: add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 8; @%p1 bra LOOP;",
        wrong: ["", ""],
        right: [
            "FULL: atom.global.add.u32 %r6, [%data+4100], 0; add.u32 %r6, %r6, 2; setp.le.u32 %p1, %r6, %r9; @%p1 bra FULL; membar.gl;",
            "",
        ],
    },
    Pair {
        name: "a ring of three with room for four",
        shape: (2, 1),
        told: Told::Race,
        body: "mov.u32 %r9, 0; setp.ne.u32 %p0, %b, 0;
               LOOP: rem.u32 %r8, %r9, 3; mul.wide.u32 %d1, %r8, 4; add.s64 %d1, %d1, %data; add.u32 %r7, %r9, 1; @%p0 bra CONSUMER;
               FULL: ld.acquire.gpu.global.u32 %r6, [%data+4100]; add.u32 %r6, %r6, #1; setp.le.u32 %p1, %r6, %r9; @%p1 bra FULL;
               st.global.u32 [%d1], %r9; st.release.gpu.global.u32 [%data+4096], %r7; bra NEXT;
               CONSUMER: ld.acquire.gpu.global.u32 %r6, [%data+4096]; setp.le.u32 %p1, %r6, %r9; @%p1 bra CONSUMER;
               ld.global.u32 %r5, [%d1]; st.release.gpu.global.u32 [%data+4100], %r7;
               NEXT: add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 12; @%p1 bra LOOP;",
        wrong: ["4", ""],
        right: ["3", ""],
    },
    Pair {
        name: "grid barrier that is one short",
        shape: (4, 1),
        told: Told::Race,
        body: "mov.u32 %r9, 0; mov.u32 %r8, 0; sub.u32 %r1, 3, %b; mul.wide.u32 %d2, %r1, 4; add.s64 %d2, %d2, %data;
               LOOP: st.global.u32 [%own], %r9; membar.gl; red.global.add.u32 [%data+4096], 1; add.u32 %r8, %r8, 4;
               SPIN: ld.volatile.global.u32 %r6, [%data+4096]; setp.lt.u32 %p1, %r6, %r8; @%p1 bra SPIN; membar.gl;
               ld.global.u32 %r5, [%d2]; #1
               add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 2; @%p1 bra LOOP;",
        wrong: ["", ""],
        right: [
            "membar.gl; red.global.add.u32 [%data+4096], 1; add.u32 %r8, %r8, 4;
             AGAIN: ld.volatile.global.u32 %r6, [%data+4096]; setp.lt.u32 %p1, %r6, %r8; @%p1 bra AGAIN; membar.gl;",
            "",
        ],
    },
    Pair {
        name: "a wait for the first of two parts",
        shape: (2, 1),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %b, 0; @%p0 bra CONSUMER;
               st.global.u32 [%data], 1; st.release.gpu.global.u32 [%data+4096], 1;
               st.global.u32 [%data+4], 1; st.release.gpu.global.u32 [%data+4096], 2; bra DONE;
               CONSUMER: ld.acquire.gpu.global.u32 %r1, [%data+4096]; setp.lt.u32 %p1, %r1, #1; @%p1 bra CONSUMER;
               ld.global.u32 %r2, [%data+4]; DONE:",
        wrong: ["1", ""],
        right: ["2", ""],
    },
    Pair {
        name: "warps that meet once and need to meet twice",
        shape: (1, 64),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %t, 0; @%p0 bra MEET; mov.u32 %r1, 0; st.shared.u32 [%s+512], %r1; MEET: bar.sync 0;
               setp.ne.u32 %p0, %lane, 0; @%p0 bra DONE; mov.u32 %r9, 0; mov.u32 %r8, 0; xor.b32 %r1, %so, 128;
               LOOP: st.shared.u32 [%so], %r9; membar.cta; atom.shared.add.u32 %r6, [%s+512], 1; add.u32 %r8, %r8, 2;
               SPIN: ld.volatile.shared.u32 %r6, [%s+512]; setp.lt.u32 %p1, %r6, %r8; @%p1 bra SPIN; membar.cta;
               ld.shared.u32 %r5, [%r1]; #1
               add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 2; @%p1 bra LOOP; DONE:",
        wrong: ["", ""],
        right: [
            "membar.cta; atom.shared.add.u32 %r6, [%s+512], 1; add.u32 %r8, %r8, 2;
             AGAIN: ld.volatile.shared.u32 %r6, [%s+512]; setp.lt.u32 %p1, %r6, %r8; @%p1 bra AGAIN; membar.cta;",
            "",
        ],
    },
    Pair {
        name: "a lane that waits for the first of two writes",
        shape: (1, 32),
        told: Told::Race,
        body: "setp.eq.u32 %p0, %t, 0; @%p0 bra PRODUCER; setp.ne.u32 %p0, %t, 7; @%p0 bra DONE;
               CONSUMER: atom.global.add.u32 %r1, [%data+4096], 0; setp.lt.u32 %p1, %r1, #1; @%p1 bra CONSUMER; membar.gl;
               ld.global.u32 %r2, [%data]; bra DONE;
               PRODUCER: st.global.u32 [%data], 1; membar.gl; atom.global.exch.b32 %r1, [%data+4096], 1;
               st.global.u32 [%data], 2; membar.gl; atom.global.exch.b32 %r1, [%data+4096], 2; DONE:",
        wrong: ["1", ""],
        right: ["2", ""],
    },
];
