//! Pairs of kernels: one that races, and its twin that does not.

use crate::race_clusters::CLUSTERS;
use crate::race_dropped::DROPPED;
pub(crate) use crate::race_pair::{Pair, Told};
use crate::race_published::PUBLISHED;
use crate::race_spins::SPINS;
use crate::race_waits::WAITS;

/// All pairs.
pub(crate) fn all() -> impl Iterator<Item = &'static Pair> {
    PAIRS.iter().chain(SPINS).chain(WAITS).chain(PUBLISHED).chain(DROPPED).chain(CLUSTERS)
}

/// A producer in block 0 and a consumer in block 1, with a flag at `data + 4096`.
macro_rules! hand_over {
    ($write:literal, $read:literal) => {
        concat!(
            "setp.ne.u32 %p0, %b, 0; @%p0 bra CONSUMER;
             st.global.u32 [%data], 5; ",
            $write,
            " bra DONE;
             CONSUMER: ",
            $read,
            " setp.eq.u32 %p1, %r1, 0; @%p1 bra CONSUMER; #2
             ld.global.u32 %r2, [%data];
             DONE:"
        )
    };
}

const FLAG_WRITE: [&str; 2] = ["membar.gl;", "membar.gl;"];

/// All of them.
pub(crate) const PAIRS: &[Pair] = &[
    Pair {
        name: "shared: read after write",
        shape: (1, 64),
        told: Told::Race,
        body: "st.shared.u32 [%so], %t; #1 xor.b32 %r1, %t, 32; shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %s; ld.shared.u32 %r2, [%r1];",
        wrong: ["", ""],
        right: ["bar.sync 0;", ""],
    },
    Pair {
        name: "shared: write after read",
        shape: (1, 64),
        told: Told::Race,
        body: "xor.b32 %r1, %t, 32; shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %s; ld.shared.u32 %r2, [%r1]; #1 st.shared.u32 [%so], %t;",
        wrong: ["", ""],
        right: ["bar.sync 0;", ""],
    },
    Pair {
        name: "global: read after write in a block",
        shape: (1, 64),
        told: Told::Race,
        body: "st.global.u32 [%own], %t; #1 xor.b32 %r1, %t, 32; mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %d1, %data; ld.global.u32 %r2, [%d1];",
        wrong: ["", ""],
        right: ["bar.sync 0;", ""],
    },
    Pair {
        name: "global: write after read in a block",
        shape: (2, 64),
        told: Told::Race,
        body: "xor.b32 %r1, %g, 32; mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %d1, %data; ld.global.u32 %r2, [%d1]; #1 st.global.u32 [%own], %t;",
        wrong: ["", ""],
        right: ["barrier.sync.aligned 3;", ""],
    },
    Pair {
        name: "write after write",
        shape: (1, 64),
        told: Told::Race,
        body: "setp.eq.u32 %p0, %t, 0; @%p0 st.shared.u32 [%s], 1; #1 setp.eq.u32 %p1, %t, 32; @%p1 st.shared.u32 [%s], 2;",
        wrong: ["", ""],
        right: ["bar.sync 0;", ""],
    },
    Pair {
        name: "a sum over blocks",
        shape: (4, 32),
        told: Told::Race,
        body: "#1",
        wrong: ["ld.global.u32 %r1, [%data]; add.u32 %r1, %r1, %t; st.global.u32 [%data], %r1;", ""],
        right: ["red.global.add.u32 [%data], %t;", ""],
    },
    Pair {
        name: "a barrier does not order blocks",
        shape: (2, 32),
        told: Told::Race,
        body: "st.global.u32 [%own], %t; bar.sync 0; #1 mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %d1, %data; ld.global.u32 %r2, [%d1];",
        wrong: ["xor.b32 %r1, %g, 32;", ""],
        right: ["xor.b32 %r1, %g, 1;", ""],
    },
    Pair {
        name: "lanes without a barrier of the warp",
        shape: (1, 32),
        told: Told::Race,
        body: "st.shared.u32 [%so], %t; #1 xor.b32 %r1, %so, 4; ld.shared.u32 %r2, [%r1];",
        wrong: ["", ""],
        right: ["bar.warp.sync 0xffffffff;", ""],
    },
    Pair {
        name: "a shuffle orders no memory",
        shape: (1, 32),
        told: Told::Race,
        body: "st.shared.u32 [%so], %t; #1 xor.b32 %r1, %so, 4; ld.shared.u32 %r2, [%r1];",
        wrong: ["shfl.sync.bfly.b32 %r3, %t, 1, 31, 0xffffffff;", ""],
        right: ["shfl.sync.bfly.b32 %r3, %t, 1, 31, 0xffffffff; bar.warp.sync 0xffffffff;", ""],
    },
    Pair {
        name: "a vote orders no memory",
        shape: (1, 32),
        told: Told::Race,
        body: "st.global.u32 [%own], %t; #1 xor.b64 %d1, %own, 4; ld.global.u32 %r2, [%d1];",
        wrong: ["vote.sync.ballot.b32 %r3, 1, 0xffffffff;", ""],
        right: ["vote.sync.ballot.b32 %r3, 1, 0xffffffff; bar.warp.sync 0xffffffff;", ""],
    },
    Pair {
        name: "a mask names the lanes that meet",
        shape: (1, 32),
        told: Told::Race,
        body: "st.shared.u32 [%so], %t; mov.u32 %r4, 0xffff; setp.gt.u32 %p0, %lane, 15; @%p0 mov.u32 %r4, 0xffff0000;
               bar.warp.sync %r4; #1 ld.shared.u32 %r2, [%r1];",
        wrong: ["xor.b32 %r1, %so, 64;", ""],
        right: ["xor.b32 %r1, %so, 4;", ""],
    },
    Pair {
        name: "lockstep sm_60",
        shape: (1, 64),
        told: Told::Race,
        body: "st.shared.u32 [%so], %t; #1 ld.shared.u32 %r2, [%r1];",
        wrong: ["xor.b32 %r1, %so, 128;", ""],
        right: ["xor.b32 %r1, %so, 4;", ""],
    },
    Pair {
        name: "a flag without the fence that releases",
        shape: (2, 1),
        told: Told::Race,
        body: hand_over!("#1 st.volatile.global.u32 [%data+4096], 1;", "ld.volatile.global.u32 %r1, [%data+4096];"),
        wrong: ["", "membar.gl;"],
        right: FLAG_WRITE,
    },
    Pair {
        name: "a flag without the fence that acquires",
        shape: (2, 1),
        told: Told::Race,
        body: hand_over!("#1 red.global.add.u32 [%data+4096], 1;", "ld.relaxed.gpu.global.u32 %r1, [%data+4096];"),
        wrong: ["fence.acq_rel.gpu;", ""],
        right: ["fence.acq_rel.gpu;", "fence.acq_rel.gpu;"],
    },
    Pair {
        name: "a fence of the block between blocks",
        shape: (2, 1),
        told: Told::Race,
        body: hand_over!("#1 st.volatile.global.u32 [%data+4096], 1;", "ld.volatile.global.u32 %r1, [%data+4096];"),
        wrong: ["membar.cta;", "membar.gl;"],
        right: ["membar.sys;", "fence.sc.gpu;"],
    },
    Pair {
        name: "a relaxed store does not release",
        shape: (2, 1),
        told: Told::Race,
        body: hand_over!("#1", "ld.acquire.gpu.global.u32 %r1, [%data+4096];"),
        wrong: ["st.relaxed.gpu.global.u32 [%data+4096], 1;", ""],
        right: ["st.release.gpu.global.u32 [%data+4096], 1;", ""],
    },
    Pair {
        name: "a relaxed load does not acquire",
        shape: (2, 1),
        told: Told::Race,
        body: hand_over!("st.release.gpu.global.u32 [%data+4096], 1;", "#1"),
        wrong: ["ld.relaxed.gpu.global.u32 %r1, [%data+4096];", ""],
        right: ["ld.acquire.gpu.global.u32 %r1, [%data+4096];", ""],
    },
    Pair {
        name: "an acquire of the block between blocks",
        shape: (2, 1),
        told: Told::Race,
        body: hand_over!("atom.release.gpu.global.exch.b32 %r5, [%data+4096], 1;", "#1"),
        wrong: ["ld.relaxed.gpu.global.u32 %r1, [%data+4096]; fence.acq_rel.cta;", ""],
        right: ["ld.relaxed.gpu.global.u32 %r1, [%data+4096]; fence.acq_rel.gpu;", ""],
    },
    Pair {
        name: "atomics of the block between blocks",
        shape: (3, 32),
        told: Told::NarrowScope,
        body: "#1",
        wrong: ["atom.cta.global.add.u32 %r1, [%data], 1;", ""],
        right: ["atom.gpu.global.add.u32 %r1, [%data], 1;", ""],
    },
    Pair {
        name: "atomics of two sizes",
        shape: (1, 64),
        told: Told::DifferentSizes,
        body: "setp.lt.u32 %p0, %t, 32; @%p0 bra LOW; #1 bra DONE; LOW: atom.global.add.u32 %r1, [%data], 1; DONE:",
        wrong: ["atom.global.add.u64 %d1, [%data], 1;", ""],
        right: ["atom.global.add.u32 %r1, [%data], 1;", ""],
    },
    Pair {
        name: "an atomic and a plain store",
        shape: (1, 64),
        told: Told::Race,
        body: "setp.lt.u32 %p0, %t, 32; @%p0 bra LOW; #1 bra DONE; LOW: atom.shared.add.u32 %r1, [%s], 1; DONE:",
        wrong: ["st.shared.u32 [%s], %t;", ""],
        right: ["st.volatile.shared.u32 [%s], %t;", ""],
    },
    Pair {
        name: "an atomic and a plain load",
        shape: (2, 1),
        told: Told::Race,
        body: "setp.eq.u32 %p0, %b, 0; @%p0 bra LOW; #1 bra DONE; LOW: red.global.add.u32 [%data], 1; DONE:",
        wrong: ["ld.global.u32 %r1, [%data];", ""],
        right: ["ld.volatile.global.u32 %r1, [%data];", ""],
    },
    Pair {
        name: "a plain store behind atomics",
        shape: (2, 1),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %b, 0; @%p0 bra WAIT; #1 red.global.add.u32 [%data], 1; st.volatile.global.u32 [%data+4096], 1; bra DONE;
               WAIT: ld.volatile.global.u32 %r1, [%data+4096]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT;
               red.global.add.u32 [%data], 1; DONE:",
        wrong: ["st.global.u32 [%data], 0;", ""],
        right: ["", ""],
    },
    Pair {
        name: "an update passes on what was released, a store does not",
        shape: (3, 1),
        told: Told::Race,
        body: "setp.eq.u32 %p0, %b, 1; @%p0 bra MIDDLE; setp.eq.u32 %p0, %b, 2; @%p0 bra LAST;
               st.global.u32 [%data], 5; membar.gl; st.volatile.global.u32 [%data+4096], 1; bra DONE;
               MIDDLE: ld.volatile.global.u32 %r1, [%data+4096]; setp.eq.u32 %p1, %r1, 0; @%p1 bra MIDDLE; #1 bra DONE;
               LAST: ld.volatile.global.u32 %r1, [%data+4096]; setp.lt.u32 %p1, %r1, 2; @%p1 bra LAST; membar.gl;
               ld.global.u32 %r2, [%data]; DONE:",
        wrong: ["st.volatile.global.u32 [%data+4096], 2;", ""],
        right: ["red.global.add.u32 [%data+4096], 1;", ""],
    },
    Pair {
        name: "every reader counts",
        shape: (1, 96),
        told: Told::Race,
        body: "setp.gt.u32 %p0, %t, 63; @%p0 bra WRITER; ld.global.u32 %r1, [%data];
               setp.gt.u32 %p0, %t, 31; @%p0 bra SECOND; #1 bra DONE; SECOND: #2 bra DONE;
               WRITER: bar.sync 1, 64; setp.eq.u32 %p0, %t, 64; @%p0 st.global.u32 [%data], 3; DONE:",
        wrong: ["bar.arrive 1, 64;", ""],
        right: ["bar.arrive 2, 64;", "bar.sync 2, 64; bar.arrive 1, 64;"],
    },
    Pair {
        name: "what follows an arrival is not ordered by it",
        shape: (1, 64),
        told: Told::Race,
        body: "setp.gt.u32 %p0, %t, 31; @%p0 bra CONSUMER; st.shared.u32 [%so], %t; #1 bar.arrive 1, 64; #2 bra DONE;
               CONSUMER: bar.sync 1, 64; ld.shared.u32 %r1, [%so+-128]; DONE:",
        wrong: ["", "st.shared.u32 [%so], 7;"],
        right: ["st.shared.u32 [%so], 7;", ""],
    },
    Pair {
        name: "a barrier of two warps does not order the third",
        shape: (1, 96),
        told: Told::Race,
        body: "setp.gt.u32 %p0, %t, 31; @%p0 bra READ; st.shared.u32 [%so], %t; bar.sync 5, #1; bra DONE;
               READ: #2 and.b32 %r1, %so, 127; ld.shared.u32 %r2, [%r1]; DONE:",
        wrong: ["64", "setp.gt.u32 %p1, %t, 63; @!%p1 bar.sync 5, 64;"],
        right: ["96", "bar.sync 5, 96;"],
    },
    Pair {
        name: "neighbouring bytes",
        shape: (1, 64),
        told: Told::Race,
        body: "cvt.u64.u32 %d1, %t; #1 add.s64 %d1, %d1, %data; cvt.u16.u32 %r1, %t; st.global.u8 [%d1], %r1;",
        wrong: ["shr.u64 %d1, %d1, 1;", ""],
        right: ["", ""],
    },
    Pair {
        name: "a byte of a word",
        shape: (1, 64),
        told: Told::Race,
        body: "setp.lt.u32 %p0, %t, 32; @%p0 bra LOW; ld.shared.u32 %r1, [%s+4]; bra DONE; LOW: st.shared.u8 [%s+#1], %r2; DONE:",
        wrong: ["7", ""],
        right: ["8", ""],
    },
    Pair {
        name: "an element of a vector",
        shape: (2, 1),
        told: Told::Race,
        body: "setp.eq.u32 %p0, %b, 0; @%p0 bra LOW; ld.global.u32 %r1, [%data+#1]; bra DONE;
               LOW: st.global.v4.u32 [%data], {%t, %t, %t, %t}; DONE:",
        wrong: ["12", ""],
        right: ["16", ""],
    },
    Pair {
        name: "different values in one place",
        shape: (1, 32),
        told: Told::Race,
        body: "st.global.u32 [%data], #1;",
        wrong: ["%t", ""],
        right: ["7", ""],
    },
    Pair {
        name: "a copy that is not waited for",
        shape: (1, 32),
        told: Told::PendingCopy,
        body: "cp.async.ca.shared.global [%so], [%own], 4; cp.async.commit_group; #1 ld.shared.u32 %r1, [%so];",
        wrong: ["", ""],
        right: ["cp.async.wait_group 0;", ""],
    },
    Pair {
        name: "the source of a copy that is not waited for",
        shape: (1, 32),
        told: Told::PendingCopy,
        body: "cp.async.ca.shared.global [%so], [%own], 4; cp.async.commit_group; #1 st.global.u32 [%own], 1; cp.async.wait_all;",
        wrong: ["", ""],
        right: ["cp.async.wait_group 0;", ""],
    },
    Pair {
        name: "a constant that is written",
        shape: (1, 32),
        told: Told::NonCoherent,
        body: "xor.b32 %r1, %g, 16; mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %d1, %data; st.global.u32 [%own], 1; bar.sync 0; ld.global#1.u32 %r1, [%d1];",
        wrong: [".nc", ""],
        right: ["", ""],
    },
    Pair {
        name: "a constant that is written later",
        shape: (1, 32),
        told: Told::NonCoherent,
        body: "xor.b32 %r1, %g, 16; mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %d1, %data; ld.global#1.u32 %r1, [%d1]; bar.sync 0; st.global.u32 [%own], 1;",
        wrong: [".nc", ""],
        right: ["", ""],
    },
    Pair {
        name: "cluster of one block, a bulk copy of what threads wrote",
        shape: (1, 32),
        told: Told::NoProxyFence,
        body: "st.shared.u32 [%so], 1; #1 bar.sync 0; setp.ne.u32 %p1, %t, 0; @%p1 bra DONE; cp.async.bulk.global.shared::cta.bulk_group [%data], [%s], 128;
            cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; DONE:",
        wrong: ["", ""],
        right: ["fence.proxy.async.shared::cta;", ""],
    },
    Pair {
        name: "the second of two copies",
        shape: (1, 32),
        told: Told::PendingCopy,
        body: "cp.async.ca.shared.global [%so], [%own], 4; cp.async.commit_group;
               cp.async.ca.shared.global [%so+256], [%own], 4; cp.async.commit_group; cp.async.wait_group 1;
               ld.shared.u32 %r1, [%so+#1];",
        wrong: ["256", ""],
        right: ["0", ""],
    },
    Pair {
        name: "a copy of another thread",
        shape: (1, 64),
        told: Told::Race,
        body: "cp.async.ca.shared.global [%so], [%own], 4; cp.async.wait_all; #1 xor.b32 %r1, %so, 128; ld.shared.u32 %r2, [%r1];",
        wrong: ["", ""],
        right: ["bar.sync 0;", ""],
    },
    Pair {
        name: "a barrier hands on what threads have fenced",
        shape: (2, 64),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %b, 0; @%p0 bra CONSUMER;
               st.global.u32 [%own], %t; #1 bar.sync 0; setp.eq.u32 %p1, %t, 0; @%p1 st.volatile.global.u32 [%data+4096], 1; bra DONE;
               CONSUMER: setp.ne.u32 %p1, %t, 0; @%p1 bra MEET;
               SPIN: ld.volatile.global.u32 %r1, [%data+4096]; setp.eq.u32 %p2, %r1, 0; @%p2 bra SPIN;
               MEET: bar.sync 0; membar.gl; ld.global.u32 %r2, [%own+-256]; DONE:",
        wrong: ["", ""],
        right: ["membar.gl;", ""],
    },
    Pair {
        name: "the last block to finish reads what all wrote",
        shape: (4, 32),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %t, 0; @%p0 bra MEET; mul.wide.u32 %d1, %b, 4; add.s64 %d1, %d1, %data;
               st.global.u32 [%d1], %b; #1 atom.global.inc.u32 %r1, [%data+4096], 1000; st.shared.u32 [%s], %r1; #2
               MEET: bar.sync 0; ld.shared.u32 %r1, [%s]; setp.ne.u32 %p1, %r1, 3; @%p1 bra DONE;
               and.b32 %r2, %t, 3; mul.wide.u32 %d1, %r2, 4; add.s64 %d1, %d1, %data; ld.global.u32 %r3, [%d1]; DONE:",
        wrong: ["", "membar.gl;"],
        right: ["membar.gl;", "membar.gl;"],
    },
    Pair {
        name: "the last of many blocks resets the counter",
        shape: (40, 1),
        told: Told::Race,
        body: "atom.global.inc.u32 %r1, [%data], 1000; #1 @%p1 bra DONE; st.global.u32 [%data], 0; DONE:",
        wrong: ["setp.ne.u32 %p1, %r1, 7;", ""],
        right: ["setp.ne.u32 %p1, %r1, 39;", ""],
    },
    Pair {
        name: "the last of many lanes resets the counter",
        shape: (2, 64),
        told: Told::Race,
        body: "atom.global.add.u32 %r1, [%data], 1; #1 @%p1 bra DONE; ld.global.u32 %r2, [%data]; st.global.u32 [%data], 0; DONE:",
        wrong: ["setp.ne.u32 %p1, %r1, 60;", ""],
        right: ["setp.ne.u32 %p1, %r1, 127;", ""],
    },
    Pair {
        name: "grid barrier",
        shape: (4, 64),
        told: Told::Race,
        body: "st.global.u32 [%own], %t; bar.sync 0; setp.ne.u32 %p0, %t, 0; @%p0 bra MEET;
               #1 red.global.add.u32 [%data+4096], 1;
               SPIN: ld.volatile.global.u32 %r1, [%data+4096]; setp.ne.u32 %p1, %r1, 4; @%p1 bra SPIN; #2
               MEET: bar.sync 0; xor.b32 %r4, %g, 64; mul.wide.u32 %d1, %r4, 4; add.s64 %d1, %d1, %data; ld.global.u32 %r3, [%d1];",
        wrong: ["", ""],
        right: ["membar.gl;", "membar.gl;"],
    },
    Pair {
        name: "a lock that does not order",
        shape: (4, 1),
        told: Told::Race,
        body: "SPIN: #1 setp.ne.u32 %p0, %r1, 0; @%p0 bra SPIN;
               ld.global.u32 %r2, [%data]; add.u32 %r2, %r2, 1; st.global.u32 [%data], %r2; #2",
        wrong: ["atom.global.cas.b32 %r1, [%data+4096], 0, 1;", "atom.global.exch.b32 %r1, [%data+4096], 0;"],
        right: ["atom.acquire.gpu.global.cas.b32 %r1, [%data+4096], 0, 1;", "atom.release.gpu.global.exch.b32 %r1, [%data+4096], 0;"],
    },
    Pair {
        name: "two buffers one barrier short",
        shape: (1, 64),
        told: Told::Race,
        body: "mov.u32 %r9, 0; LOOP: and.b32 %r8, %r9, 1; shl.b32 %r8, %r8, 8; add.u32 %r8, %r8, %so;
               st.shared.u32 [%r8], %r9; #1 xor.b32 %r7, %r8, 128; ld.shared.u32 %r6, [%r7]; #2
               add.u32 %r9, %r9, 1; setp.lt.u32 %p0, %r9, 6; @%p0 bra LOOP;",
        wrong: ["", "bar.sync 0;"],
        right: ["bar.sync 0;", ""],
    },
    Pair {
        name: "memory of the device heap",
        shape: (1, 64),
        told: Told::Race,
        body: "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 16; call (r), malloc, (n); ld.param.b64 %d1, [r]; }
               #1 st.u32 [%d2], %t; { .param .b64 p; st.param.b64 [p], %d1; call free, (p); }",
        wrong: ["mov.u64 %d2, %data;", ""],
        right: ["mov.u64 %d2, %d1;", ""],
    },
    Pair {
        name: "a block of the heap that other lanes read is freed",
        shape: (1, 32),
        told: Told::Race,
        body: "setp.ne.u32 %p0, %t, 0; @%p0 bra SHARE;
               { .param .b64 n; .param .b64 r; st.param.b64 [n], 16; call (r), malloc, (n); ld.param.b64 %d1, [r]; }
               st.u32 [%d1], 7; st.shared.u64 [%s], %d1;
               SHARE: bar.sync 0; ld.shared.u64 %d1, [%s]; ld.u32 %r1, [%d1]; st.global.u32 [%own], %r1; #1 @%p0 bra DONE;
               { .param .b64 p; st.param.b64 [p], %d1; call free, (p); }
               DONE:",
        wrong: ["", ""],
        right: ["bar.warp.sync 0xffffffff;", ""],
    },
    Pair {
        name: "a shuffle from a lane the mask does not name",
        shape: (1, 32),
        told: Told::InactiveLane,
        body: "setp.gt.u32 %p0, %lane, 15; @%p0 bra DONE; shfl.sync.down.b32 %r1, %t, #1, #2, 0xffff; bar.warp.sync 0xffff; setp.eq.u32 %p1, %r1, 99; @%p1 trap; DONE:",
        wrong: ["8", "31"],
        right: ["8", "15"],
    },
    Pair {
        name: "a shuffle from a lane that has exited",
        shape: (1, 32),
        told: Told::InactiveLane,
        body: "setp.gt.u32 %p0, %lane, 23; @%p0 exit; #1 shfl.sync.idx.b32 %r1, %t, %r2, 31, 0xffffffff; setp.eq.u32 %p1, %r1, 99; @%p1 trap;",
        wrong: ["mov.u32 %r2, 30;", ""],
        right: ["mov.u32 %r2, 3;", ""],
    },
    Pair {
        name: "a shuffle from a lane that does not exist",
        shape: (1, 16),
        told: Told::InactiveLane,
        body: "shfl.sync.bfly.b32 %r1, %t, #1, 31, 0xffffffff; setp.eq.u32 %p1, %r1, 99; @%p1 trap;",
        wrong: ["16", ""],
        right: ["8", ""],
    },
];
