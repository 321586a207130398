//! Clusters: stores, updates and copies that complete bytes of objects of other blocks, and addresses of every kind.

use crate::exec_cluster::{SM_90, SYNC, four, kernel, right, wrong};
use kiln_ptx::exec::LaunchShape;

/// The next block of the ring in `%r2`, its object behind `%r3` and the place of this thread there behind `%r4`. Each object waits for one arrival and 256 bytes.
const NEXT: &str = "@%first mbarrier.init.shared::cta.b64 [%bar], 1;\n@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 256;\n\
                    add.u32 %r2, %rank, 1;\nrem.u32 %r2, %r2, %size;\nmapa.shared::cluster.u32 %r3, %bar, %r2;\nmapa.shared::cluster.u32 %r4, %own, %r2;\n\
                    mapa.shared::cluster.u32 %r10, %data, %r2;\nmad.lo.u32 %r5, %rank, 1000, %t;\n";
const WAIT: &str =
    "wait:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%bar], 0;\n@!%p1 bra wait;\n";
const READ: &str = "ld.shared.u32 %r6, [%own]; // here\nst.global.u32 [%out], %r6;\n";

fn from_previous(size: u32) -> Vec<u32> {
    (0..8 * 64).map(|at| ((at / 64 % size + size - 1) % size) * 1000 + at % 64).collect()
}

#[test]
fn asynchronous_stores_complete_bytes_of_the_other_block() {
    let store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4], %r5, [%r3];\n";
    let text = |wait: &str| kernel(SM_90, "", &format!("{NEXT}{SYNC}{store}{wait}{READ}{SYNC}"));
    assert_eq!(right(&text(WAIT), &four()), from_previous(4));
    wrong(&text(""), &four(), "race");
    // Vectors count all their bytes.
    let pair = "and.b32 %r7, %t, 1;\nsetp.eq.u32 %p2, %r7, 0;\nadd.u32 %r8, %r5, 1;\n\
                @%p2 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r4], {%r5, %r8}, [%r3];\n";
    assert_eq!(right(&text(WAIT).replace(store, pair), &four()), from_previous(4));
}

#[test]
fn asynchronous_updates_complete_bytes_of_the_other_block() {
    let update =
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4], %r5, [%r3];\n";
    let text = |wait: &str| {
        kernel(SM_90, "", &format!("st.shared.u32 [%own], 7;\n{NEXT}{SYNC}{update}{wait}{READ}{SYNC}"))
    };
    let expected: Vec<u32> = from_previous(4).iter().map(|word| word + 7).collect();
    assert_eq!(right(&text(WAIT), &four()), expected);
    wrong(&text(""), &four(), "race");
}

#[test]
fn waits_with_a_limit_let_the_other_blocks_run() {
    let store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4], %r5, [%r3];\n";
    for test in ["try_wait", "test_wait"] {
        let wait = format!(
            "mov.u32 %r12, 0;\nwait:\nmbarrier.{test}.parity.acquire.cluster.shared::cta.b64 %p1, [%bar], 0;\n@%p1 bra came;\nadd.u32 %r12, %r12, 1;\n\
             setp.lt.u32 %p2, %r12, 20000;\n@%p2 bra wait;\ntrap;\ncame:\n"
        );
        let text = kernel(SM_90, "", &format!("{NEXT}{SYNC}{store}{wait}{READ}{SYNC}"));
        assert_eq!(right(&text, &four()), from_previous(4), "{test}");
    }
}

#[test]
fn bulk_copies_reach_the_other_block() {
    let copy = "st.shared.u32 [%own+256], %r5;\nfence.proxy.async.shared::cta;\nbar.sync 0;\nadd.u32 %r11, %data, 256;\n\
                @%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r10], [%r11], 256, [%r3];\n";
    let text = |wait: &str| kernel(SM_90, "", &format!("{NEXT}{SYNC}{copy}{wait}{READ}{SYNC}"));
    assert_eq!(right(&text(WAIT), &four()), from_previous(4));
    wrong(&text(""), &four(), "race");
    let over = text(WAIT)
        .replace("add.u32 %r11, %data, 256;", "add.u32 %r11, %data, 256;\nadd.u32 %r10, %r10, 384;")
        .replace("], 256, [%r3];", "], 256, [%r3]; // here")
        .replace("[%own]; // here", "[%own];");
    wrong(&over, &four(), "out of bounds");
}

#[test]
fn bulk_reductions_update_the_other_block() {
    let copy = "st.shared.u32 [%own], 7;\nst.shared.u32 [%own+256], %r5;\nfence.proxy.async.shared::cta;\nbar.sync 0;\nadd.u32 %r11, %data, 256;\n";
    let name = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes";
    let text = |form: &str, wait: &str| {
        let reduce = format!("@%first {name}.{form} [%r10], [%r11], 256, [%r3];\n");
        kernel(SM_90, "", &format!("{NEXT}{copy}{SYNC}{reduce}{wait}{READ}{SYNC}"))
    };
    let expected: Vec<u32> = from_previous(4).iter().map(|word| word + 7).collect();
    assert_eq!(right(&text("add.u32", WAIT), &four()), expected);
    let expected: Vec<u32> = from_previous(4).iter().map(|word| (*word).min(7)).collect();
    assert_eq!(right(&text("min.s32", WAIT), &four()), expected);
    wrong(&text("add.u32", ""), &four(), "race");
    let bare = text("xor.b32", WAIT)
        .replace("st.shared.u32 [%own], 7;\n", "")
        .replace("], 256, [%r3];", "], 256, [%r3]; // here")
        .replace("[%own]; // here", "[%own];");
    wrong(&bare, &four(), "never written");
}

#[test]
fn arrivals_reach_objects_of_other_blocks_and_waits_do_not() {
    // All threads of the cluster arrive at the object of the first block.
    let arrive = "@%first mbarrier.init.shared::cta.b64 [%bar], 256;\n";
    let rest = "mov.u32 %r2, 0;\nmapa.shared::cluster.u32 %r3, %bar, %r2;\nmapa.shared::cluster.u32 %r4, %own, %r2;\n\
                setp.eq.u32 %p0, %rank, 3;\n@%p0 st.shared::cluster.u32 [%r4], %g;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];\n\
                setp.ne.u32 %p2, %rank, 0;\n@%p2 bra done;\n";
    let text = |wait: &str| kernel(SM_90, "", &format!("{arrive}{SYNC}{rest}{wait}{READ}done:\n{SYNC}"));
    let words = right(&text(WAIT), &four());
    assert_eq!((words[5], words[256 + 63]), (3 * 64 + 5, 7 * 64 + 63));
    wrong(&text(""), &four(), "race");
    let remote =
        "mov.u32 %r2, 0;\nmapa.u64 %s1, %s0, %r2;\nmbarrier.test_wait.parity.b64 %p1, [%s1], 0; // here\n";
    let body = format!("{arrive}{SYNC}mov.u64 %s7, bar;\ncvta.shared.u64 %s0, %s7;\n{remote}{SYNC}");
    wrong(&kernel(SM_90, "", &body), &four(), "does not reach the mbarrier object of block (");
}

#[test]
fn addresses_of_every_kind_tell_the_block() {
    let body = "mov.u64 %s7, data;\ncvta.shared.u64 %s0, %s7;\nadd.u32 %r2, %rank, 1;\nrem.u32 %r2, %r2, %size;\nmapa.u64 %s1, %s0, %r2;\n\
         getctarank.u64 %r3, %s1;\nmapa.shared::cluster.u64 %s2, %s7, %r2;\ngetctarank.shared::cluster.u64 %r4, %s2;\ncvta.shared::cluster.u64 %s3, %s2;\n\
         cvta.to.shared::cluster.u64 %s4, %s1;\nsetp.ne.u64 %p0, %s3, %s1;\n@%p0 trap;\nsetp.ne.u64 %p0, %s4, %s2;\n@%p0 trap;\n\
         isspacep.shared::cluster %p1, %s1;\nisspacep.shared::cta %p2, %s1;\nisspacep.shared %p3, %s0;\nisspacep.global %p4, %s1;\n\
         selp.u32 %r5, 1, 0, %p1;\nselp.u32 %r6, 1, 0, %p2;\nselp.u32 %r7, 1, 0, %p3;\nselp.u32 %r8, 1, 0, %p4;\n\
         mad.lo.u32 %r9, %r3, 10, %r4;\nmad.lo.u32 %r9, %r9, 10, %r5;\nmad.lo.u32 %r9, %r9, 10, %r6;\nmad.lo.u32 %r9, %r9, 10, %r7;\nmad.lo.u32 %r9, %r9, 10, %r8;\n\
         st.global.u32 [%out], %r9;\n";
    let words = right(&kernel(SM_90, "", body), &four());
    assert_eq!((words[0], words[64], words[3 * 64]), (111_010, 221_010, 1_010));
    // A cluster of one block has its own memory alone.
    assert_eq!(right(&kernel(SM_90, "", body), &LaunchShape::linear(1, 32))[0], 1_110);
    // Generic stores and atomics reach other blocks, too.
    let body = format!(
        "st.shared.u32 [%own], 100;\n{SYNC}mov.u64 %s7, data;\ncvta.shared.u64 %s0, %s7;\nadd.u32 %r2, %rank, 1;\nrem.u32 %r2, %r2, %size;\nmapa.u64 %s1, %s0, %r2;\n\
         mul.wide.u32 %s2, %t, 4;\nadd.u64 %s1, %s1, %s2;\natom.add.u32 %r3, [%s1], %rank;\nst.u32 [%s1+256], %r3;\n{SYNC}ld.shared.u32 %r4, [%own];\n\
         ld.shared.u32 %r5, [%own+256];\nadd.u32 %r4, %r4, %r5;\nst.global.u32 [%out], %r4;\n"
    );
    let words = right(&kernel(SM_90, "", &body), &four());
    assert_eq!((words[0], words[64], words[128]), (203, 200, 201));
}

#[test]
fn bytes_of_another_block_that_were_never_written_are_told() {
    let body = format!(
        "setp.eq.u32 %p0, %rank, 2;\n@!%p0 st.shared.u32 [%own], 1;\n{SYNC}mov.u32 %r2, 2;\nmapa.shared::cluster.u32 %r3, %own, %r2;\n\
         ld.shared::cluster.u32 %r4, [%r3]; // here\nsetp.eq.u32 %p1, %r4, 9;\n@%p1 st.global.u32 [%out], 1;\n{SYNC}"
    );
    wrong(&kernel(SM_90, "", &body), &four(), "never written");
    right(&kernel(SM_90, "", &body.replace("@!%p0 st.shared", "st.shared")), &four());
}

#[test]
fn instructions_of_clusters_are_printed_as_they_are_read() {
    let text = kernel(
        SM_90,
        ".reqnctapercluster 2, 2 .explicitcluster",
        "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire.aligned;\nmapa.shared::cluster.u32 %r2, data+4, %rank;\n\
         mapa.u64 %s1, %s0, %r2;\ngetctarank.shared::cluster.u32 %r3, %r2;\nst.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r2], {%r3, %r3, %r3, %r3}, [%r4];\n\
         red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r2], %r3, [%r4];\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4], 2;\n\
         mov.pred %p1, %is_explicit_cluster;\n",
    );
    let module = kiln_ptx::PtxModule::parse(&text).unwrap();
    let printed = module.to_string();
    assert_eq!(kiln_ptx::PtxModule::parse(&printed).unwrap(), module, "{printed}");
    for word in [
        "barrier.cluster.arrive.relaxed.aligned",
        ".reqnctapercluster 2, 2",
        ".explicitcluster",
        "%is_explicit_cluster",
        "st.async.weak.shared::cluster",
    ] {
        assert!(printed.contains(word), "`{word}` is not in {printed}");
    }
}
