//! Pairs of kernels that load a value in all lanes: in the right twins all lanes but one drop it, whatever it is.

use crate::race_pair::{Pair, Told};

/// All of them.
pub(crate) const DROPPED: &[Pair] = &[
    Pair {
        name: "shared: one thread keeps the best",
        shape: (1, 64),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %t, 0; add.u32 %r2, %n, %t; @%p0 bra A; st.shared.u32 [%s], 0; A: bar.sync 0;
               ld.shared.u32 %r1, [%s]; setp.le.u32 %p1, %r2, %r1; #1 @%p2 bra B; st.shared.u32 [%s], %r2; B: bar.sync 0;",
        wrong: ["mov.pred %p2, %p1;", ""],
        right: ["or.pred %p2, %p0, %p1;", ""],
    },
    Pair {
        name: "global: one thread keeps the best",
        shape: (1, 64),
        told: Told::Race,
        body: "setp.eq.u32 %p0, %t, 0; @!%p0 bra A; st.global.u32 [%data], 0; A: bar.sync 0;
               ld.global.u32 %r1, [%data]; add.u32 %r3, %r1, 1; cvt.u64.u32 %d1, %r3; setp.gt.u64 %p1, %d1, 9; #1
               @!%p2 bra B; st.global.u32 [%data], %t; B: bar.sync 0;",
        wrong: ["not.pred %p2, %p1;", ""],
        right: ["not.pred %p2, %p1; and.pred %p2, %p2, %p0;", ""],
    },
    Pair {
        name: "a comparison combined with who may write",
        shape: (1, 64),
        told: Told::Race,
        body: "setp.eq.u32 %p0, %t, 0; ld.global.u32 %r1, [%data]; #1 @%p2 st.global.u32 [%data], %t;",
        wrong: ["setp.eq.u32 %p2, %r1, 0;", ""],
        right: ["setp.eq.and.u32 %p2, %r1, 0, %p0;", ""],
    },
    Pair {
        name: "a carry that one lane selects",
        shape: (1, 32),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %t, 31; #1 @%p0 bra A; st.shared.u32 [%s], 0; A: bar.warp.sync 0xffffffff;
               ld.shared.u32 %r1, [%s]; selp.u32 %r2, %r1, 0, %p1; @%p0 bra B; st.shared.u32 [%s], %r2; B: st.global.u32 [%own], %r2;",
        wrong: ["setp.ge.u32 %p1, %t, 30;", ""],
        right: ["setp.eq.u32 %p1, %t, 31;", ""],
    },
    Pair {
        name: "a selection of the value by all other lanes",
        shape: (1, 32),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %t, 31; ld.global.u32 %r1, [%data]; #1 @!%p0 st.global.u32 [%data], %t; st.global.u32 [%own+256], %r2;",
        wrong: ["selp.u32 %r2, %r1, 0, %p0;", ""],
        right: ["selp.u32 %r2, 0, %r1, %p0;", ""],
    },
    Pair {
        name: "the head of a queue, used by the thread that looked",
        shape: (1, 32),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %t, 0; @%p0 bra A; st.shared.u32 [%s], 0; A: bar.warp.sync 0xffffffff;
               ld.shared.u32 %r1, [%s]; setp.gt.u32 %p1, %r1, 7; or.pred %p2, %p0, %p1; @%p2 bra B;
               add.u32 %r2, %r1, 1; st.shared.u32 [%s], %r2; B: #1",
        wrong: ["st.global.u32 [%own], %r1;", ""],
        right: ["st.global.u32 [%own], %t;", ""],
    },
    Pair {
        name: "a value that the next turn of the loop uses",
        shape: (1, 32),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %t, 0; mov.u32 %r4, 0; mov.u32 %r1, 0; mov.u32 %r5, 0; @%p0 bra LOOP; st.shared.u32 [%s], 0;
               LOOP: #1 bar.warp.sync 0xffffffff; ld.shared.u32 %r1, [%s]; setp.gt.u32 %p1, %r1, 7; or.pred %p2, %p0, %p1; @%p2 bra B;
               add.u32 %r2, %r1, 1; st.shared.u32 [%s], %r2; B: add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 4; @%p3 bra LOOP;
               st.global.u32 [%own], %r5;",
        wrong: ["add.u32 %r5, %r5, %r1;", ""],
        right: ["add.u32 %r5, %r5, %r4;", ""],
    },
    Pair {
        name: "the predicate is set again before it decides",
        shape: (1, 64),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %t, 0; ld.global.u32 %r1, [%data]; #1 setp.ne.u32 %p1, %r1, 0; or.pred %p2, %p0, %p1;
               setp.eq.u32 %p3, %t, 0; selp.u32 %r2, 1, 0, %p2; st.global.u32 [%own+256], %r2; @%p3 st.global.u32 [%data], %t;",
        wrong: ["setp.gt.u32 %p0, %t, 40;", ""],
        right: ["", ""],
    },
    Pair {
        name: "both values that one lane compares are dropped by the others",
        shape: (1, 64),
        told: Told::Race,
        body: "setp.eq.u32 %p0, %t, 0; ld.global.u32 %r1, [%data]; ld.global.u32 %r2, [%data+4]; setp.eq.u32 %p1, %r1, %r2; #1
               and.pred %p2, %p1, %p0; @%p2 st.global.u32 [%data], %t; @%p2 st.global.u32 [%data+4], %t;",
        wrong: ["and.pred %p3, %p1, %p2; selp.u32 %r3, 1, 0, %p1; st.global.u32 [%own+256], %r3;", ""],
        right: ["and.pred %p3, %p1, %p0;", ""],
    },
    Pair {
        name: "who may write is known behind the load",
        shape: (1, 64),
        told: Told::Race,
        body: "ld.global.u32 %r1, [%data]; setp.eq.u32 %p1, %r1, 0; ld.global.u32 %r3, [%own+512]; setp.eq.u32 %p0, %t, #1; and.pred %p2, %p0, %p1;
               @!%p2 bra B; st.global.u32 [%data], %t; B:",
        wrong: ["%t", ""],
        right: ["0", ""],
    },
];
