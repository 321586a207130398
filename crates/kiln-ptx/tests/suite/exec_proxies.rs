//! Proxies: what threads write to shared memory is read by bulk copies, tensor copies and products of warpgroups behind a `fence.proxy.async` alone.

use crate::tensor_kernel::{Numbers, copy_in, kernel, launch, options, store};
use crate::warpgroup_kernel::Product;
use kiln_ptx::exec::{LaunchShape, SimpleMemory, TensorElement, TensorMap};

const BYTES: u64 = 1024;
const FENCE: &str = "fence.proxy.async.shared::cta;\n";
const STORE: &str = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group";

/// The findings of a kernel with a map of a matrix of 32 columns and 64 rows, in boxes of 8 rows.
fn findings(body: &str, seed: u64) -> Vec<String> {
    let mut memory = SimpleMemory::new();
    let tensor = memory.allocate(32 * 64 * 4);
    let out = memory.allocate(BYTES);
    let from = memory.allocate_with(&Numbers(seed).bytes(BYTES as usize));
    let map = TensorMap::tiled(tensor, TensorElement::F32, &[32, 64], &[32, 8]).encode().unwrap();
    let text = kernel(2048, body);
    let outcome = launch(&text, &LaunchShape::linear(1, 64), &memory, (&map, &[out, from]), &options(seed));
    outcome.findings.iter().map(ToString::to_string).collect()
}

fn clean(body: &str) {
    for seed in 0..4 {
        assert_eq!(findings(body, seed), Vec::<String>::new(), "seed {seed}\n{body}");
    }
}

/// Told with the lines of the write and of the copy, and nothing else is.
fn told(body: &str) {
    let text = kernel(2048, body);
    let line = |mark: &str| 1 + text.lines().position(|line| line.contains(mark)).unwrap();
    let (write, copy) = (line("st.shared"), line("// copy"));
    for seed in 0..4 {
        let found = findings(body, seed);
        let [finding] = &found[..] else { panic!("seed {seed}: {found:#?}\n{text}") };
        assert!(finding.contains("no proxy fence: read"), "{finding}");
        assert!(finding.contains(&format!("PTX line {write} wrote")), "{write}: {finding}");
        assert!(finding.contains(&format!("PTX line {copy}")), "{copy}: {finding}");
    }
}

/// All threads write, and the first one stores.
fn write_and_store(between: &str) -> String {
    let write = copy_in(BYTES).replace(&format!("{FENCE}bar.sync 0;\n"), between);
    assert!(write.contains(between) && write.contains("st.shared"));
    let copy = store(STORE, &[0, 8]).replace("[%data];\n", "[%data]; // copy\n");
    format!("{write}{copy}")
}

#[test]
fn a_fence_stands_behind_the_writes_and_before_the_copy() {
    let barrier = "bar.sync 0;\n";
    // In the threads that write, or in the one that copies, behind the barrier.
    clean(&write_and_store(&format!("{FENCE}{barrier}")));
    clean(&write_and_store(&format!("{barrier}@%first {FENCE}")));
    clean(&write_and_store(&format!("fence.proxy.async;\n{barrier}")));
    let one_way = "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;\n";
    clean(&write_and_store(&format!("{one_way}{barrier}")));
    told(&write_and_store(barrier));
    // That of one thread does not cover what others have yet to hand over, and that of global memory covers none.
    told(&write_and_store(&format!("@%first {FENCE}{barrier}")));
    told(&write_and_store(&format!("fence.proxy.async.global;\n{barrier}")));
    // Other fences are for threads.
    told(&write_and_store(&format!("fence.acq_rel.gpu;\n{barrier}")));
    told(&write_and_store(&format!("fence.proxy.alias;\n{barrier}")));
}

#[test]
fn a_fence_covers_no_later_write() {
    let again = "add.u32 %r2, %data, 4;\n@%first st.shared.u32 [%r2], 7;\n";
    let first = copy_in(BYTES).replace("st.shared.u32", "st.volatile.shared.u32");
    let copy = store(STORE, &[0, 8]).replace("[%data];\n", "[%data]; // copy\n");
    told(&format!("{first}{again}bar.sync 0;\n{copy}"));
    clean(&format!("{first}{again}@%first {FENCE}bar.sync 0;\n{copy}"));
    // Bytes that are not copied do not matter.
    clean(&format!("{first}{}{copy}", again.replace("%data, 4", "%data, 1024")));
}

#[test]
fn bulk_copies_and_reductions_read_through_the_async_proxy() {
    for name in [
        "cp.async.bulk.global.shared::cta.bulk_group",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32",
    ] {
        let body = |fence: &str| {
            format!(
                "mad.lo.u32 %r1, %t, 4, %data;\nst.shared.u32 [%r1], %t;\n{fence}bar.sync 0;\n@%first {name} [%in], [%data], 256; // copy\n\
                 @%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group 0;\n"
            )
        };
        clean(&body(FENCE));
        told(&body(""));
    }
}

#[test]
fn what_a_tensor_copy_loaded_needs_no_fence() {
    let load = crate::tensor_kernel::load(2, &[0, 0], BYTES);
    clean(&format!("{load}{}", store(STORE, &[0, 8])));
    // Reads of threads are none that a copy must see.
    let read = "mad.lo.u32 %r1, %t, 4, %data;\nld.shared.u32 %r2, [%r1];\n";
    clean(&format!("{load}{read}bar.sync 0;\n{}", store(STORE, &[0, 8])));
}

#[test]
fn products_of_warpgroups_read_through_the_async_proxy() {
    let product = Product {
        a: "bf16",
        b: "bf16",
        sum: "f32",
        columns: 16,
        swizzle: 64,
        a_in_registers: false,
        transposed: [false; 2],
        scales: [1; 2],
        adds: true,
        satfinite: false,
    };
    assert_eq!(product.run_text(|text| text), None);
    let found = product.run_text(|text| text.replace("fence.proxy.async;\n", "")).unwrap_or_default();
    assert!(found.contains("no proxy fence: read") && found.contains("fence.proxy.async"), "{found}");
}
