//! Pairs of kernels whose blocks form a cluster.

use crate::race_pair::{Pair, Told};

/// All of them.
pub(crate) const CLUSTERS: &[Pair] = &[
    Pair {
        name: "cluster: a barrier of the block, and one of the cluster",
        shape: (2, 64),
        told: Told::Race,
        body: "st.shared.u32 [%so], %t; #1 xor.b32 %r1, %b, 1; mapa.shared::cluster.u32 %r2, %so, %r1; ld.shared::cluster.u32 %r3, [%r2];
               st.global.u32 [%own], %r3; barrier.cluster.arrive; barrier.cluster.wait;",
        wrong: ["bar.sync 0;", ""],
        right: ["barrier.cluster.arrive; barrier.cluster.wait;", ""],
    },
    Pair {
        name: "cluster: a relaxed arrival, and one behind a fence",
        shape: (2, 32),
        told: Told::Race,
        body: "st.shared.u32 [%so], %t; #1 barrier.cluster.arrive.relaxed; barrier.cluster.wait; xor.b32 %r1, %b, 1; mapa.shared::cluster.u32 %r2, %so, %r1;
               ld.shared::cluster.u32 %r3, [%r2]; st.global.u32 [%own], %r3; barrier.cluster.arrive; barrier.cluster.wait;",
        wrong: ["", ""],
        right: ["fence.acq_rel.cluster;", ""],
    },
    Pair {
        name: "cluster: atomics of the block, and of the cluster",
        shape: (2, 32),
        told: Told::NarrowScope,
        body: "st.shared.u32 [%so], 0; barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r1, 0; mapa.shared::cluster.u32 %r2, %so, %r1;
               atom.relaxed.#1.shared::cluster.add.u32 %r3, [%r2], 1; barrier.cluster.arrive; barrier.cluster.wait;",
        wrong: ["cta", ""],
        right: ["cluster", ""],
    },
    Pair {
        name: "cluster: a flag in shared memory",
        shape: (2, 1),
        told: Told::Race,
        body: "mov.u32 %r9, 0; st.shared.u32 [%s], %r9; st.shared.u32 [%s+4], %r9; barrier.cluster.arrive; barrier.cluster.wait;
               setp.ne.u32 %p0, %b, 0; @%p0 bra CONSUMER; mov.u32 %r1, 1; mapa.shared::cluster.u32 %r2, %s, %r1;
               st.shared::cluster.u32 [%r2], 5; st.#1.cluster.shared::cluster.u32 [%r2+4], 1; bra DONE;
               CONSUMER: ld.acquire.cluster.shared::cta.u32 %r3, [%s+4]; setp.eq.u32 %p1, %r3, 0; @%p1 bra CONSUMER; ld.shared.u32 %r4, [%s];
               DONE: barrier.cluster.arrive; barrier.cluster.wait;",
        wrong: ["relaxed", ""],
        right: ["release", ""],
    },
    Pair {
        name: "cluster: an object of another block",
        shape: (2, 32),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %t, 0; @%p0 bra READY; mbarrier.init.shared::cta.b64 [%s], 32; READY: barrier.cluster.arrive; barrier.cluster.wait;
               setp.ne.u32 %p1, %b, 0; @%p1 bra CONSUMER; mov.u32 %r1, 1; mapa.shared::cluster.u32 %r2, %so, %r1; mapa.shared::cluster.u32 %r4, %s, %r1;
               st.shared::cluster.u32 [%r2+64], %t; mbarrier.arrive.#1.cluster.shared::cluster.b64 _, [%r4]; bra DONE;
               CONSUMER: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%s], 0; @!%p2 bra CONSUMER; ld.shared.u32 %r3, [%so+64];
               st.global.u32 [%own], %r3; DONE: barrier.cluster.arrive; barrier.cluster.wait;",
        wrong: ["relaxed", ""],
        right: ["release", ""],
    },
];
