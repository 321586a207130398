//! Vector instructions, rows, patterns and words change nothing: every launch is made both ways, and all that can be seen of it must be equal.

use kiln_kernels::cases;
use kiln_ptx::exec::LaunchShape;

use crate::both_ways::{Inputs, compare};
use crate::random_kernel::RandomLaunch;

/// Random kernels that are compared; `KILN_EXECUTOR_SEEDS` is another number of them.
const SEEDS: u64 = 300;

#[test]
fn every_kernel_of_the_table_runs_alike_both_ways() {
    for case in cases() {
        let arguments = case.arguments(3);
        let shape = LaunchShape {
            dynamic_shared_bytes: case.shape.shared_bytes,
            cooperative: case.shape.cooperative,
            ..LaunchShape::new(case.shape.grid, case.shape.block)
        };
        let inputs = Inputs {
            contents: arguments.buffers().map(|buffer| buffer.data.to_bytes()).collect(),
            bare_bytes: 0,
            pack: &|addresses| arguments.pack(addresses),
        };
        compare(case.source.ptx, case.entry, &shape, &inputs, 5).unwrap();
    }
}

#[test]
fn random_kernels_run_alike_both_ways() {
    let seeds = std::env::var("KILN_EXECUTOR_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    for seed in 1..=seeds {
        RandomLaunch::new(seed).compare(seed).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

/// The body of a kernel of one block with one buffer, made both ways.
fn run_both_ways(body: &str, block: [u32; 3], bytes: usize) {
    let ptx = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
         .shared .align 64 .b8 words[128];\n.reg .pred %p;\n.reg .b32 %x<4>;\n.reg .b64 %d<6>;\n\
         ld.param.u64 %d0, [out];\nmov.u32 %x0, %tid.x;\n{body}ret;\n}}\n"
    );
    let shape = LaunchShape::new([1, 1, 1], block);
    let inputs = Inputs {
        contents: vec![vec![0; bytes]],
        bare_bytes: 0,
        pack: &|addresses| addresses[0].to_le_bytes().to_vec(),
    };
    compare(&ptx, "k", &shape, &inputs, 1).unwrap();
}

#[test]
fn values_that_have_32_bits_at_the_ends_of_a_half_of_a_warp_and_more_in_between_are_not_words() {
    // The factor is the inverse of 15, so that lane 15 of each half has 1.
    let factor = "0xEEEEEEEEEEEEEEEF";
    run_both_ways(
        &format!(
            "cvt.u64.u32 %d1, %x0;\nmul.lo.u64 %d2, %d1, {factor};\nsetp.lt.u32 %p, %x0, 8;\n\
             selp.b64 %d3, %d2, 0, %p;\ncvt.u64.u32 %d4, %d2;\nmov.u32 %x1, %tid.y;\n\
             mad.lo.u32 %x1, %x1, 16, %x0;\nmul.wide.u32 %d5, %x1, 24;\nadd.u64 %d5, %d5, %d0;\n\
             st.global.u64 [%d5], %d3;\nst.global.u64 [%d5+8], %d2;\nst.global.u64 [%d5+16], %d4;\n"
        ),
        [16, 2, 1],
        32 * 24,
    );
}

#[test]
fn rows_that_a_bulk_copy_reads_are_seen_by_the_check_of_proxies() {
    run_both_ways(
        "mov.u32 %x1, words;\nshl.b32 %x2, %x0, 2;\nadd.u32 %x2, %x2, %x1;\nst.shared.u32 [%x2], %x0;\n\
         bar.sync 0;\nsetp.ne.u32 %p, %x0, 0;\n@%p bra E;\n\
         cp.async.bulk.global.shared::cta.bulk_group [%d0], [%x1], 128;\ncp.async.bulk.commit_group;\n\
         cp.async.bulk.wait_group 0;\nE:\n",
        [32, 1, 1],
        128,
    );
}

#[test]
fn halves_of_a_warp_that_write_parts_of_one_row_are_remembered_in_the_order_of_their_lanes() {
    // Warps 0 and 1 write, the second half of the first row or the first half of the second one is no row of the check; warp 2 reads what both halves wrote.
    for (first, second, read) in [(0, 12, 48), (4, 0, 32), (0, 0, 32), (8, 4, 40)] {
        run_both_ways(
            &format!(
                "and.b32 %x1, %x0, 15;\nand.b32 %x2, %x0, 16;\nsetp.eq.u32 %p, %x2, 0;\n\
                 selp.b32 %x2, {first}, {second}, %p;\nadd.u32 %x1, %x1, %x2;\nmul.wide.u32 %d1, %x1, 4;\n\
                 add.u64 %d1, %d1, %d0;\nsetp.lt.u32 %p, %x0, 64;\n@%p st.global.u32 [%d1], %x0;\n\
                 @!%p ld.global.u32 %x3, [%d0+{read}];\n@!%p st.global.u32 [%d0+256], %x3;\n"
            ),
            [96, 1, 1],
            512,
        );
    }
}
