//! Clusters: ranks, addresses, barriers, stores, updates and copies to the shared memory of other blocks.

use super::reduction::reduced;
use super::trial::{Oracle, Trial};

/// `cluster.sync()`.
const SYNC: &str = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
const THREADS: u32 = 64;
const BLOCKS: u32 = 8;

/// A kernel with 1024 bytes of shared memory behind `%data` (a word of each thread behind `%own`), an object behind `%bar`, input behind `%in`, a word of the output for each
/// thread of the grid behind `%out`, its number in `%g`, that of the thread in `%t`, and rank and size of the cluster in `%rank` and `%size`.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n.reg .b32 %r<24>;\n.reg .b32 %t, %g, %rank, %size, %data, %own, %bar, %tries;\n\
         .reg .b64 %s<8>;\n.reg .b64 %in, %out, %o;\n.reg .pred %p<6>;\n.reg .pred %first;\n.shared .align 8 .b8 object[8];\n.shared .align 16 .b8 data[1024];\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n\
         mov.u32 %t, %tid.x;\nmov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %ntid.x;\nmad.lo.u32 %g, %r0, %r1, %t;\nmul.wide.u32 %o, %g, 4;\nadd.u64 %out, %out, %o;\nadd.u64 %in, %in, %o;\n\
         mov.u32 %rank, %cluster_ctarank;\nmov.u32 %size, %cluster_nctarank;\nmov.u32 %data, data;\nmov.u32 %bar, object;\nmad.lo.u32 %own, %t, 4, %data;\n\
         setp.eq.u32 %first, %t, 0;\n{body}\nret;\n}}\n"
    )
}

/// The next block of the ring in `%r2`, its object behind `%r3` and the place of this thread there behind `%r4`. Each object waits for one arrival and some bytes.
fn next(bytes: u32) -> String {
    format!(
        "@%first mbarrier.init.shared::cta.b64 [%bar], 1;\n@%first fence.mbarrier_init.release.cluster;\n@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {bytes};\n\
         add.u32 %r2, %rank, 1;\nrem.u32 %r2, %r2, %size;\nmapa.shared::cluster.u32 %r3, %bar, %r2;\nmapa.shared::cluster.u32 %r4, %own, %r2;\n\
         mapa.shared::cluster.u32 %r10, %data, %r2;\nmad.lo.u32 %r5, %rank, 1000, %t;\n"
    )
}

const WAIT: &str = "mov.u32 %tries, 0;\nwait:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%bar], 0, 1000;\n@%p1 bra came;\nadd.u32 %tries, %tries, 1;\n\
                    setp.lt.u32 %p2, %tries, 20000;\n@%p2 bra wait;\ntrap;\ncame:\n";
const READ: &str = "ld.shared.u32 %r6, [%own];\nst.global.u32 [%out], %r6;\n";

/// A trial whose threads leave a word each.
fn trial(name: &str, cluster: u32, input: Vec<u32>, body: &str, of: impl Fn(u32) -> u32) -> Trial {
    let bytes = |words: Vec<u32>| words.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
    let expected = bytes((0..BLOCKS * THREADS).map(of).collect());
    Trial {
        name: format!("{name}, clusters of {cluster}"),
        text: kernel(body),
        blocks: BLOCKS,
        threads: THREADS,
        cluster,
        tensor: None,
        input: if input.is_empty() { vec![0; expected.len()] } else { bytes(input) },
        output: vec![0; expected.len()],
        unit: 4,
        oracle: Oracle::Bytes(expected),
    }
}

/// The rank of the block before that of a thread.
fn previous(thread: u32, size: u32) -> u32 {
    (thread / THREADS % size + size - 1) % size
}

/// Ranks, sums over the blocks, histograms, rings.
pub(crate) fn meetings() -> Vec<Trial> {
    let mut trials = Vec::new();
    for size in [1, 2, 4, 8] {
        let ranks = "mul.lo.u32 %r2, %rank, 100;\nadd.u32 %r2, %r2, %size;\nmov.u32 %r3, %clusterid.x;\nmad.lo.u32 %r2, %r3, 10000, %r2;\n\
                     mov.u32 %r3, %nclusterid.x;\nmad.lo.u32 %r2, %r3, 1000000, %r2;\nst.global.u32 [%out], %r2;\n";
        trials.push(trial("ranks", size, Vec::new(), ranks, |thread| {
            let block = thread / THREADS;
            block % size * 100 + size + block / size * 10_000 + BLOCKS / size * 1_000_000
        }));
        let sum = format!(
            "@%first st.shared.u32 [data], 0;\nbar.sync 0;\natom.shared.add.u32 %r2, [data], %g;\n{SYNC}mov.u64 %s7, data;\ncvta.shared.u64 %s0, %s7;\nmov.u32 %r3, 0;\nmov.u32 %r4, 0;\n\
             next:\nmapa.u64 %s1, %s0, %r3;\nld.u32 %r5, [%s1];\nadd.u32 %r4, %r4, %r5;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, %size;\n@%p2 bra next;\nst.global.u32 [%out], %r4;\n{SYNC}"
        );
        trials.push(trial("sum over blocks", size, Vec::new(), &sum, |thread| {
            let threads = size * THREADS;
            let first = thread / threads * threads;
            (first..first + threads).sum()
        }));
        let ring = format!(
            "{SYNC}add.u32 %r2, %rank, 1;\nrem.u32 %r2, %r2, %size;\nmapa.shared::cluster.u32 %r3, %own, %r2;\nmad.lo.u32 %r4, %rank, 1000, %t;\n\
             st.shared::cluster.u32 [%r3], %r4;\n{SYNC}{READ}"
        );
        trials.push(trial("ring", size, Vec::new(), &ring, |thread| {
            previous(thread, size) * 1000 + thread % THREADS
        }));
    }
    trials.push(histogram());
    trials.push(addresses());
    trials.push(generic_atomics());
    trials.push(arrivals());
    trials
}

/// A histogram of 128 bins, 32 in each block of a cluster.
fn histogram() -> Trial {
    let body = format!(
        "setp.lt.u32 %p0, %t, 32;\n@%p0 st.shared.u32 [%own], 0;\n{SYNC}mul.lo.u32 %r2, %g, 37;\nand.b32 %r2, %r2, 127;\nshr.u32 %r3, %r2, 5;\nand.b32 %r4, %r2, 31;\n\
         mad.lo.u32 %r5, %r4, 4, %data;\nmapa.shared::cluster.u32 %r6, %r5, %r3;\nred.relaxed.cluster.shared::cluster.add.u32 [%r6], 1;\n{SYNC}\
         setp.ge.u32 %p1, %t, 32;\n@%p1 ret;\n{READ}"
    );
    trial("histogram", 4, Vec::new(), &body, |thread| {
        let (cluster, bin) = (thread / 256, thread / THREADS % 4 * 32 + thread % THREADS);
        let all = cluster * 256..cluster * 256 + 256;
        if thread % THREADS < 32 { all.filter(|other| other * 37 % 128 == bin).count() as u32 } else { 0 }
    })
}

/// What instructions tell of addresses of other blocks.
fn addresses() -> Trial {
    let body = format!(
        "mov.u64 %s7, data;\ncvta.shared.u64 %s0, %s7;\nadd.u32 %r2, %rank, 1;\nrem.u32 %r2, %r2, %size;\nmapa.u64 %s1, %s0, %r2;\ngetctarank.u64 %r3, %s1;\n\
         mapa.shared::cluster.u64 %s2, %s7, %r2;\ngetctarank.shared::cluster.u64 %r4, %s2;\ncvta.shared::cluster.u64 %s3, %s2;\nsetp.ne.u64 %p0, %s3, %s1;\nselp.u32 %r10, 1, 0, %p0;\n\
         isspacep.shared::cluster %p1, %s1;\nisspacep.shared::cta %p2, %s1;\nisspacep.shared %p3, %s0;\nisspacep.global %p4, %s1;\n\
         selp.u32 %r5, 1, 0, %p1;\nselp.u32 %r6, 1, 0, %p2;\nselp.u32 %r7, 1, 0, %p3;\nselp.u32 %r8, 1, 0, %p4;\n\
         mad.lo.u32 %r9, %r3, 10, %r4;\nmad.lo.u32 %r9, %r9, 10, %r5;\nmad.lo.u32 %r9, %r9, 10, %r6;\nmad.lo.u32 %r9, %r9, 10, %r7;\nmad.lo.u32 %r9, %r9, 10, %r8;\n\
         mad.lo.u32 %r9, %r9, 10, %r10;\nst.global.u32 [%out], %r9;\n{SYNC}"
    );
    trial("addresses", 4, Vec::new(), &body, |thread| {
        let next = (thread / THREADS % 4 + 1) % 4;
        next * 1_100_000 + 10_100
    })
}

fn generic_atomics() -> Trial {
    let body = format!(
        "st.shared.u32 [%own], 100;\n{SYNC}mov.u64 %s7, data;\ncvta.shared.u64 %s0, %s7;\nadd.u32 %r2, %rank, 1;\nrem.u32 %r2, %r2, %size;\nmapa.u64 %s1, %s0, %r2;\n\
         mul.wide.u32 %s2, %t, 4;\nadd.u64 %s1, %s1, %s2;\natom.add.u32 %r3, [%s1], %rank;\nst.u32 [%s1+256], %r3;\n{SYNC}ld.shared.u32 %r4, [%own];\n\
         ld.shared.u32 %r5, [%own+256];\nmad.lo.u32 %r4, %r4, 1000, %r5;\nst.global.u32 [%out], %r4;\n"
    );
    trial("generic atomics", 4, Vec::new(), &body, |thread| (100 + previous(thread, 4)) * 1000 + 100)
}

/// All threads of a cluster arrive at the object of its first block.
fn arrivals() -> Trial {
    let body = format!(
        "@%first mbarrier.init.shared::cta.b64 [%bar], 256;\n@%first fence.mbarrier_init.release.cluster;\n{SYNC}mov.u32 %r2, 0;\nmapa.shared::cluster.u32 %r3, %bar, %r2;\n\
         mapa.shared::cluster.u32 %r4, %own, %r2;\nsetp.eq.u32 %p0, %rank, 3;\n@%p0 st.shared::cluster.u32 [%r4], %g;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];\n\
         setp.ne.u32 %p2, %rank, 0;\n@%p2 bra done;\n{WAIT}{READ}done:\n{SYNC}"
    );
    trial("arrivals at another block", 4, Vec::new(), &body, |thread| {
        if (thread / THREADS).is_multiple_of(4) { thread + 3 * THREADS } else { 0 }
    })
}

/// Asynchronous stores and updates, and copies between blocks.
pub(crate) fn messages() -> Vec<Trial> {
    let mut trials = Vec::new();
    for size in [2, 4, 8] {
        let mut send = |name: &str, bytes: u32, code: &str| {
            let body = format!("{}{SYNC}{code}{WAIT}{READ}{SYNC}", next(bytes));
            trials.push(trial(name, size, Vec::new(), &body, |thread| {
                previous(thread, size) * 1000 + thread % THREADS
            }));
        };
        for ty in ["u32", "s32", "b32"] {
            let name = format!("st.async.shared::cluster.mbarrier::complete_tx::bytes.{ty}");
            send(&name, 256, &format!("{name} [%r4], %r5, [%r3];\n"));
        }
        let pair = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32";
        send(
            pair,
            256,
            &format!(
                "and.b32 %r7, %t, 1;\nsetp.eq.u32 %p2, %r7, 0;\nadd.u32 %r8, %r5, 1;\n@%p2 {pair} [%r4], {{%r5, %r8}}, [%r3];\n"
            ),
        );
        let four = "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32";
        send(
            four,
            256,
            &format!(
                "and.b32 %r7, %t, 3;\nsetp.eq.u32 %p2, %r7, 0;\nadd.u32 %r8, %r5, 1;\nadd.u32 %r9, %r5, 2;\nadd.u32 %r11, %r5, 3;\n@%p2 {four} [%r4], {{%r5, %r8, %r9, %r11}}, [%r3];\n"
            ),
        );
        let wide = "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64";
        send(
            wide,
            256,
            &format!(
                "and.b32 %r7, %t, 1;\nsetp.eq.u32 %p2, %r7, 0;\nadd.u32 %r8, %r5, 1;\nmov.b64 %s1, {{%r5, %r8}};\n@%p2 {wide} [%r4], %s1, [%r3];\n"
            ),
        );
        send(
            "cp.async.bulk to another block",
            256,
            "st.shared.u32 [%own+256], %r5;\nfence.proxy.async.shared::cta;\nbar.sync 0;\nadd.u32 %r11, %data, 256;\n\
              @%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r10], [%r11], 256, [%r3];\n",
        );
    }
    trials.extend(updates());
    trials
}

/// `red.async` and `cp.reduce.async.bulk` to another block: words of the input meet those of the block before.
fn updates() -> Vec<Trial> {
    let odd = |thread: u32| match thread % 5 {
        0 => thread.wrapping_mul(0x9e37_79b9),
        1 => thread,
        2 => u32::MAX - thread,
        3 => 0x8000_0000 + thread,
        _ => 0,
    };
    let all: Vec<u32> = (0..BLOCKS * THREADS).map(odd).collect();
    let list: [(&str, &[&str]); 3] = [
        ("u32", &["add", "min", "max", "inc", "dec"]),
        ("s32", &["add", "min", "max"]),
        ("b32", &["and", "or", "xor"]),
    ];
    let mut trials = Vec::new();
    for (ty, operation) in
        list.into_iter().flat_map(|(ty, all)| all.iter().map(move |operation| (ty, *operation)))
    {
        let fresh = "ld.global.u32 %r6, [%in];\nst.shared.u32 [%own], %r6;\nmul.lo.u32 %r5, %r6, 3;\n";
        let async_name = format!(
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{operation}.{ty}"
        );
        let bulk_name = format!(
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{operation}.{ty}"
        );
        let sends = [
            (async_name.clone(), format!("{async_name} [%r4], %r5, [%r3];\n")),
            (
                bulk_name.clone(),
                format!(
                    "st.shared.u32 [%own+256], %r5;\nfence.proxy.async.shared::cta;\nbar.sync 0;\nadd.u32 %r11, %data, 256;\n@%first {bulk_name} [%r10], [%r11], 256, [%r3];\n"
                ),
            ),
        ];
        for (name, code) in sends {
            let body =
                format!("{}{fresh}fence.proxy.async.shared::cta;\n{SYNC}{code}{WAIT}{READ}{SYNC}", next(256));
            trials.push(trial(&name, 4, all.clone(), &body, |thread| {
                let cluster = thread / (4 * THREADS) * 4 * THREADS;
                let sender = cluster + previous(thread, 4) * THREADS + thread % THREADS;
                let (old, new) = (all[thread as usize], all[sender as usize].wrapping_mul(3));
                let bytes = reduced(operation, ty, &old.to_le_bytes(), &new.to_le_bytes()).unwrap();
                u32::from_le_bytes(bytes.try_into().unwrap())
            }));
        }
    }
    trials
}
