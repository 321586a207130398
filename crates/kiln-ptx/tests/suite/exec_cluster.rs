//! Clusters: blocks that reach each other's shared memory and meet at a barrier.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecOutcome, ExecProgram, LaunchError, LaunchShape, Options, SimpleMemory};

pub(crate) const SM_90: &str = ".version 8.6\n.target sm_90\n.address_size 64\n";
/// `cluster.sync()`.
pub(crate) const SYNC: &str = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

/// An entry with 512 bytes of shared memory behind `%data` (a word of each thread behind `%own`), an object behind `%bar`, a word of global memory for each thread
/// of the grid behind `%out`, its number in `%g`, that of the thread in `%t`, and rank and size of the cluster in `%rank` and `%size`.
pub(crate) fn kernel(header: &str, directives: &str, body: &str) -> String {
    format!(
        "{header}.visible .entry k(.param .u64 out) {directives}\n{{\n.reg .b32 %r<24>, %t, %g, %rank, %size, %data, %own, %bar;\n.reg .b64 %out, %o, %s<8>;\n\
         .reg .pred %p<6>, %first;\n.shared .align 8 .b8 bar[8];\n.shared .align 16 .b8 data[512];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\n\
         mov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %ntid.x;\nmad.lo.u32 %g, %r0, %r1, %t;\nmul.wide.u32 %o, %g, 4;\nadd.u64 %out, %out, %o;\n\
         mov.u32 %rank, %cluster_ctarank;\nmov.u32 %size, %cluster_nctarank;\nmov.u32 %data, data;\nmov.u32 %bar, bar;\nmad.lo.u32 %own, %t, 4, %data;\n\
         setp.eq.u32 %first, %t, 0;\n{body}\nret;\n}}\n"
    )
}

fn launch(
    text: &str,
    shape: &LaunchShape,
    options: &Options<'_>,
) -> Result<(Vec<u32>, ExecOutcome), LaunchError> {
    let program = ExecProgram::new(PtxModule::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let entry = program.entry("k").unwrap();
    assert!(entry.unsupported().is_empty(), "{:?}", entry.unsupported());
    let mut memory = SimpleMemory::new();
    let words = shape.grid.iter().chain(&shape.block).product::<u32>();
    let out = memory.allocate(4 * u64::from(words));
    let outcome = entry.launch(shape, &out.to_le_bytes(), &[], &memory, options)?;
    let bytes = memory.read(out, 4 * u64::from(words)).unwrap();
    Ok((bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect(), outcome))
}

fn options(seed: u64) -> Options<'static> {
    Options { checks: Checks::ALL, seed, sole_writer: true, ..Options::default() }
}

/// Runs a kernel that is right, with several seeds and on several threads, and gives the words that it leaves.
pub(crate) fn right(text: &str, shape: &LaunchShape) -> Vec<u32> {
    assert_portable(text, shape);
    let (expected, _) = launch(text, shape, &options(0)).unwrap();
    for (seed, portable, threads) in
        [(0, false, 1), (0, true, 1), (1, false, 1), (2, true, 1), (3, false, 1), (4, false, 3)]
    {
        let options = Options { portable, threads, ..options(seed) };
        let (words, outcome) = launch(text, shape, &options).unwrap();
        assert!(outcome.is_clean(), "seed {seed}: {:#?}", outcome.findings);
        assert_eq!(words, expected, "seed {seed}");
    }
    expected
}

/// Lanes that are computed one by one change nothing.
fn assert_portable(text: &str, shape: &LaunchShape) {
    for seed in [0, 2] {
        let seen =
            |portable: bool| format!("{:#?}", launch(text, shape, &Options { portable, ..options(seed) }));
        assert_eq!(seen(true), seen(false), "seed {seed}");
    }
}

/// Runs a kernel that is wrong: with every seed one finding names the line with the mark `// here` and has these words.
#[track_caller]
pub(crate) fn wrong(text: &str, shape: &LaunchShape, words: &str) {
    assert_portable(text, shape);
    let line = 1 + text.lines().position(|line| line.contains("// here")).unwrap() as u32;
    for (seed, portable) in [(0, false), (0, true), (1, false), (2, false), (3, false)] {
        let (_, outcome) = launch(text, shape, &Options { portable, ..options(seed) }).unwrap();
        let found: Vec<String> = outcome.findings.iter().map(ToString::to_string).collect();
        let place = format!("PTX line {line}");
        let is_told = found.iter().any(|text| text.contains(words) && text.contains(&place));
        assert!(is_told, "seed {seed}: `{words}` at line {line} is not in {found:#?}");
    }
}

pub(crate) fn four() -> LaunchShape {
    LaunchShape::linear(8, 64).in_clusters([4, 1, 1])
}

/// The sum of the numbers of the threads of each cluster: blocks add up their own, then the first block adds up those of all.
fn reduction(first_sync: &str, last_sync: &str) -> String {
    let body = format!(
        "@%first st.shared.u32 [data], 0;\nbar.sync 0;\natom.shared.add.u32 %r2, [data], %g;\n{first_sync}\
         setp.ne.u32 %p0, %rank, 0;\nsetp.ne.u32 %p1, %t, 0;\nor.pred %p0, %p0, %p1;\n@%p0 bra done;\n\
         cvta.shared.u64 %s0, %s7;\nmov.u32 %r3, 0;\nmov.u32 %r4, 0;\nnext:\nmapa.u64 %s1, %s0, %r3;\n\
         ld.u32 %r5, [%s1]; // here\nadd.u32 %r4, %r4, %r5;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, %size;\n@%p2 bra next;\n\
         st.global.u32 [%out], %r4;\ndone:\n{last_sync}"
    );
    kernel(SM_90, "", &format!("mov.u64 %s7, data;\n{body}"))
}

#[test]
fn a_cluster_adds_up_what_its_blocks_have_in_shared_memory() {
    for size in [1, 2, 4, 8] {
        let words = right(&reduction(SYNC, SYNC), &LaunchShape::linear(8, 64).in_clusters([size, 1, 1]));
        for cluster in 0..8 / size {
            let (first, threads) = (cluster * size * 64, size * 64);
            let sum = (first..first + threads).sum::<u32>();
            assert_eq!(words[first as usize], sum, "cluster {cluster} of {size}");
        }
    }
}

#[test]
fn a_missing_barrier_before_the_reads_is_a_race() {
    wrong(&reduction("", SYNC), &four(), "race");
    let relaxed = SYNC.replace("arrive", "arrive.relaxed");
    wrong(&reduction(&relaxed, SYNC), &four(), "race");
    // A barrier of the block does not order other blocks.
    wrong(&reduction("bar.sync 0;\n", SYNC), &four(), "race");
}

#[test]
fn a_block_that_exits_while_others_use_its_memory_is_told() {
    wrong(&reduction(SYNC, ""), &four(), "use after free");
    wrong(&reduction(SYNC, ""), &four(), "before any of them exits");
    wrong(&reduction(SYNC, ""), &four(), "in the shared memory of block (");
}

#[test]
fn memory_of_a_block_that_has_exited_is_gone() {
    // The block of rank 2 says that it is about to exit, and a thread of the first block waits for that.
    let body = "setp.eq.u32 %p0, %rank, 0;\n@%p0 bra stay;\n@%first st.volatile.global.u32 [%out], 1;\nret;\nstay:\n@!%first ret;\n\
                wait:\nld.volatile.global.u32 %r2, [%out+512];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra wait;\n\
                mapa.shared::cluster.u32 %r3, %own, 2;\nst.shared::cluster.u32 [%r3], %t; // here\n";
    let text = kernel(SM_90, "", body);
    let line = 1 + text.lines().position(|line| line.contains("// here")).unwrap();
    for checks in [Checks::ALL, Checks::NONE] {
        let (_, outcome) = launch(&text, &four(), &Options { checks, ..options(0) }).unwrap();
        let found: Vec<String> = outcome.findings.iter().map(ToString::to_string).collect();
        let is_told = |text: &String| {
            text.contains("all threads of which have exited") && text.contains(&format!("PTX line {line}"))
        };
        assert!(found.iter().any(is_told), "{found:#?}");
        assert!(outcome.fault.is_some());
    }
}

/// A histogram of 128 bins, 32 in each block of a cluster of 4.
fn histogram(bins: &str) -> String {
    let body = format!(
        "setp.lt.u32 %p0, %t, {bins};\n@%p0 st.shared.u32 [%own], 0;\n{SYNC}mul.lo.u32 %r2, %g, 37;\nand.b32 %r2, %r2, 127;\n\
         shr.u32 %r3, %r2, 5;\nand.b32 %r4, %r2, 31;\nmad.lo.u32 %r5, %r4, 4, %data;\nmapa.shared::cluster.u32 %r6, %r5, %r3;\n\
         red.relaxed.cluster.shared::cluster.add.u32 [%r6], 1; // here\n{SYNC}setp.ge.u32 %p1, %t, 32;\n@%p1 ret;\nld.shared.u32 %r7, [%own];\n\
         st.global.u32 [%out], %r7;\n"
    );
    kernel(SM_90, ".reqnctapercluster 4", &body)
}

#[test]
fn a_histogram_is_spread_over_the_blocks_of_a_cluster() {
    let words = right(&histogram("32"), &LaunchShape::linear(8, 64));
    let mut expected = vec![0; 512];
    for cluster in 0..2 {
        for thread in cluster * 256..cluster * 256 + 256 {
            let bin = thread * 37 % 128;
            expected[cluster * 256 + bin / 32 * 64 + bin % 32] += 1;
        }
    }
    assert_eq!(words, expected);
    wrong(&histogram("16"), &LaunchShape::linear(8, 64), "never written");
}

/// Each block stores to the next one of the ring.
fn ring(place: &str, offset: &str) -> String {
    let body = format!(
        "{SYNC}add.u32 %r2, %rank, 1;\nsetp.eq.u32 %p0, %r2, %size;\n{place}mapa.shared::cluster.u32 %r3, %own, %r2;\n\
         mad.lo.u32 %r4, %rank, 1000, %t;\nst.shared::cluster.u32 [%r3{offset}], %r4; // here\n{SYNC}ld.shared.u32 %r5, [%own];\nst.global.u32 [%out], %r5;\n"
    );
    kernel(SM_90, "", &body)
}

#[test]
fn values_go_around_a_ring_of_blocks() {
    let text = ring("@%p0 mov.u32 %r2, 0;\n", "");
    for size in [2, 4, 8] {
        let words = right(&text, &LaunchShape::linear(16, 64).in_clusters([size, 1, 1]));
        let expected: Vec<u32> =
            (0..16 * 64).map(|at| ((at / 64 % size + size - 1) % size) * 1000 + at % 64).collect();
        assert_eq!(words, expected);
    }
    let shape =
        LaunchShape { non_portable_cluster: true, ..LaunchShape::linear(16, 64).in_clusters([16, 1, 1]) };
    assert_eq!(right(&text, &shape)[0], 15_000);
}

#[test]
fn ranks_and_addresses_outside_are_told() {
    wrong(
        &ring("", ""),
        &four(),
        "in the shared memory of rank 4 of the cluster, which has 4 blocks, ranks 0 to 3",
    );
    wrong(&ring("@%p0 mov.u32 %r2, 0;\n", "+512"), &four(), "out of bounds");
    wrong(&ring("@%p0 mov.u32 %r2, 0;\n", "+512"), &four(), "past the end of `data`");
    // An address that is computed and not used is no mistake.
    let unused = kernel(SM_90, "", "mapa.shared::cluster.u32 %r2, %own, %size;\nst.global.u32 [%out], 7;\n");
    assert_eq!(right(&unused, &four())[3], 7);
    // Generic addresses say the same.
    let generic = "cvta.shared.u64 %s0, %s7;\nmapa.u64 %s1, %s0, %size;\nld.u32 %r5, [%s1]; // here\n";
    wrong(&kernel(SM_90, "", &format!("mov.u64 %s7, data;\n{generic}")), &four(), "rank 4 of the cluster");
    let plain = "add.u32 %r2, %rank, 1;\nrem.u32 %r2, %r2, %size;\nmapa.shared::cluster.u32 %r3, %own, %r2;\nst.shared.u32 [%r3], 1; // here\n";
    wrong(&kernel(SM_90, "", plain), &four(), "access it with `.shared::cluster`");
}

#[test]
fn special_registers_tell_the_place_in_the_cluster() {
    let sum = "mov.u32 %r0, %clusterid.x;\nmov.u32 %r1, %clusterid.y;\nmov.u32 %r2, %nclusterid.x;\nmov.u32 %r3, %nclusterid.y;\nmov.u32 %r4, %cluster_ctaid.x;\n\
               mov.u32 %r5, %cluster_ctaid.y;\nmov.u32 %r6, %cluster_nctaid.x;\nmov.u32 %r7, %cluster_nctaid.y;\nmov.pred %p0, %is_explicit_cluster;\nselp.u32 %r8, 1, 0, %p0;\n";
    let digits = (0..9).map(|at| format!("mad.lo.u32 %r10, %r10, 10, %r{at};\n")).collect::<String>();
    let place = "mov.u32 %r11, %ctaid.x;\nmov.u32 %r12, %ctaid.y;\nmov.u32 %r13, %nctaid.x;\nmad.lo.u32 %r11, %r12, %r13, %r11;\nld.param.u64 %out, [out];\n\
                 mul.wide.u32 %o, %r11, 4;\nadd.u64 %out, %out, %o;\nmul.lo.u32 %r14, %rank, 1000000000;\nadd.u32 %r10, %r10, %r14;\nst.global.u32 [%out], %r10;\n";
    let text = kernel(SM_90, "", &format!("mov.u32 %r10, 0;\n{sum}{digits}{place}"));
    let shape = LaunchShape::new([4, 4, 1], [1, 1, 1]);
    let words = right(&text, &shape.in_clusters([2, 1, 1]));
    // clusterid, nclusterid, cluster_ctaid, cluster_nctaid, is_explicit_cluster; the rank in front.
    assert_eq!((words[0], words[3], words[15]), (2_400_211, 1_102_410_211, 1_132_410_211));
    let words = right(&text, &shape.in_clusters([1, 2, 1]));
    assert_eq!((words[4], words[6]), (1_004_201_121, 1_204_201_121));
    // Without a cluster each block is one.
    let words = right(&text, &shape);
    assert_eq!((words[0], words[6]), (4_400_110, 214_400_110));
    let text = text.replace("(.param .u64 out) ", "(.param .u64 out) .explicitcluster .maxclusterrank 2 ");
    assert!(matches!(launch(&text, &shape, &options(0)), Err(LaunchError::Cluster { .. })));
    assert!(launch(&text, &shape.in_clusters([2, 1, 1]), &options(0)).is_ok());
}

#[test]
fn clusters_that_do_not_fit_are_refused_with_words() {
    let refused = |header: &str, directives: &str, shape: LaunchShape| {
        launch(&kernel(header, directives, ""), &shape, &options(0)).unwrap_err().to_string()
    };
    let shape = LaunchShape::linear(12, 32);
    let old = |shape: LaunchShape| {
        let text = kernel(&SM_90.replace("sm_90", "sm_80"), "", "");
        let text = text.replace("%cluster_ctarank", "0").replace("%cluster_nctarank", "1");
        launch(&text, &shape, &options(0)).unwrap_err().to_string()
    };
    for (text, words) in [
        (
            refused(SM_90, "", shape.in_clusters([5, 1, 1])),
            "make each dimension of the grid a multiple of that of the cluster",
        ),
        (refused(SM_90, "", shape.in_clusters([12, 1, 1])), "8 blocks are portable"),
        (
            refused(SM_90, "", LaunchShape::linear(32, 1).in_clusters([32, 1, 1])),
            "a cluster has 1 to 8 blocks",
        ),
        (refused(SM_90, "", shape.in_clusters([0, 1, 1])), "a cluster has 1 to 8 blocks"),
        (
            refused(SM_90, ".reqnctapercluster 4", shape.in_clusters([2, 1, 1])),
            "was compiled for clusters of 4 x 1 x 1 blocks (`.reqnctapercluster`, line 4",
        ),
        (refused(SM_90, ".maxclusterrank 2", shape.in_clusters([4, 1, 1])), "at most 2 blocks"),
        (refused(SM_90, ".explicitcluster", shape), "name the blocks of a cluster at the launch"),
        (old(shape.in_clusters([2, 1, 1])), "clusters need sm_90 or newer"),
        (refused(SM_90, ".reqntid 32 .reqnctapercluster 2 .blocksareclusters", shape), "run it on a GPU"),
    ] {
        assert!(text.contains(words), "`{words}` is not in `{text}`");
    }
    let wide = LaunchShape { non_portable_cluster: true, ..shape.in_clusters([12, 1, 1]) };
    assert!(launch(&kernel(SM_90, "", ""), &wide, &options(0)).is_ok());
}

#[test]
fn exited_threads_count_as_arrived() {
    // All threads of odd blocks exit at once.
    let body = format!(
        "and.b32 %r2, %rank, 1;\nsetp.eq.u32 %p0, %r2, 1;\n@%p0 ret;\n{SYNC}st.global.u32 [%out], 5;\n"
    );
    let words = right(&kernel(SM_90, "", &body), &four());
    assert_eq!((words[0], words[64], words[128]), (5, 0, 5));
}

#[test]
fn misuse_of_the_barrier_is_told() {
    let body = "barrier.cluster.arrive.aligned;\nbarrier.cluster.arrive.aligned; // here\nbarrier.cluster.wait.aligned;\n";
    wrong(&kernel(SM_90, "", body), &four(), "have not waited since they arrived");
    wrong(&kernel(SM_90, "", "barrier.cluster.wait.aligned; // here\n"), &four(), "have not arrived at it");
    let apart = "setp.lt.u32 %p0, %t, 16;\n@%p0 bra low;\nbarrier.cluster.arrive.aligned;\nbra meet;\nlow:\nbarrier.cluster.arrive.aligned; // here\nmeet:\nbarrier.cluster.wait;\n";
    let (_, outcome) = launch(&kernel(SM_90, "", apart), &four(), &options(0)).unwrap();
    assert!(
        outcome.findings.iter().any(|finding| finding.to_string().contains("lanes of one warp arrive")),
        "{:#?}",
        outcome.findings
    );
    let free = apart.replace("arrive.aligned", "arrive");
    right(&kernel(SM_90, "", &free), &four());
}

#[test]
fn blocks_that_wait_for_each_other_are_a_deadlock() {
    // The first block waits for an object that no thread arrives at, and all others for the first block.
    let body = format!(
        "@%first mbarrier.init.shared::cta.b64 [%bar], 1;\n{SYNC}setp.ne.u32 %p0, %rank, 0;\n@%p0 bra meet;\n\
         wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%bar], 0; // here\n@!%p1 bra wait;\nmeet:\n{SYNC}"
    );
    wrong(
        &kernel(SM_90, "", &body),
        &four(),
        "no thread of the cluster can go on; block of rank 0: 64 threads wait at",
    );
    wrong(&kernel(SM_90, "", &body), &four(), "64 threads wait at the barrier of the cluster at");
}
