//! Tensor copies in wrong programs: each has its finding, with the line.

use crate::tensor_kernel::{copy_in, copy_out, kernel, launch, load, options, store};
use kiln_ptx::exec::{
    LaunchShape, SimpleMemory, TensorColumns, TensorElement, TensorInterleave, TensorMap,
    TensorMapField as Field,
};

/// A matrix of singles with 32 columns and 64 rows, of which boxes of 32 columns and 8 rows are copied: 1024 bytes.
fn matrix(address: u64) -> TensorMap {
    TensorMap::tiled(address, TensorElement::F32, &[32, 64], &[32, 8])
}

const BOX: u64 = 1024;

/// Runs a kernel on a matrix; `change` makes another map of it.
fn findings(
    body: &str,
    threads: u32,
    seed: u64,
    change: impl Fn(&mut SimpleMemory, TensorMap) -> [u8; 128],
) -> Vec<String> {
    let mut memory = SimpleMemory::new();
    let tensor = memory.allocate(32 * 64 * 4);
    let out = memory.allocate(BOX);
    let from = memory.allocate(BOX);
    let map = change(&mut memory, matrix(tensor));
    let text = kernel(2048, body);
    let shape = LaunchShape::linear(1, threads);
    let outcome = launch(&text, &shape, &memory, (&map, &[out, from]), &options(seed));
    outcome.findings.iter().map(ToString::to_string).collect()
}

fn plain(_: &mut SimpleMemory, map: TensorMap) -> [u8; 128] {
    map.encode().unwrap()
}

/// Runs a wrong kernel: the finding has the words and the line with `// here`.
fn told_with(body: &str, words: &str, change: impl Fn(&mut SimpleMemory, TensorMap) -> [u8; 128] + Copy) {
    let text = kernel(2048, body);
    let line = 1 + text.lines().position(|line| line.contains("// here")).unwrap();
    let place = format!("PTX line {line}");
    for seed in 0..3 {
        let found = findings(body, 64, seed, change);
        let is_told = found.iter().any(|text| text.contains(words) && text.contains(&place));
        assert!(is_told, "seed {seed}: `{words}` at line {line} is not in {found:#?}\n{text}");
    }
}

fn told(body: &str, words: &str) {
    told_with(body, words, plain);
}

/// The load of the first box, with a mark at the copy.
fn marked() -> String {
    load(2, &[0, 0], BOX).replace("[%bar];\nwait", "[%bar]; // here\nwait")
}

const STORE: &str = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group";

#[test]
fn shared_memory_is_used_behind_the_wait() {
    let right = format!("{}{}", load(2, &[0, 8], BOX), copy_out(BOX));
    for seed in 0..3 {
        assert_eq!(findings(&right, 64, seed, plain), Vec::<String>::new());
    }
    let at = right.find("wait:").unwrap();
    let end = right.find("mov.u32 %r0").unwrap();
    // Other threads race with the copy.
    let hasty = format!("{}{}", &right[..at], &right[end..]);
    told(&hasty, "race");
    // The thread that issues it is told as well.
    let text = kernel(2048, &hasty);
    let line = 1 + text.lines().position(|line| line.contains("// here")).unwrap();
    let found = findings(&hasty, 1, 0, plain);
    let is_told = |text: &String| text.contains("pending copy") && text.contains(&format!("PTX line {line}"));
    assert!(found.iter().any(is_told), "{found:#?}");
    // A wait for the next phase does not end.
    let old = right.replace("[%bar], 0;\n@!%p0", "[%bar], 1;\n@!%p0");
    assert!(findings(&old, 1, 0, plain).iter().any(|text| text.contains("no thread is left")));
}

#[test]
fn bytes_of_the_whole_box_are_announced() {
    let right = |at: &[i32]| format!("{}{}", load(2, at, BOX), copy_out(BOX));
    assert_eq!(findings(&right(&[20, 60]), 64, 0, plain), Vec::<String>::new());
    let few = right(&[20, 60]).replace("[%bar], 1024;", "[%bar], 192;");
    assert!(!findings(&few, 64, 0, plain).is_empty());
    let many = right(&[0, 0]).replace("[%bar], 1024;", "[%bar], 2048;");
    let found = findings(&many, 64, 0, plain);
    assert!(found.iter().any(|text| text.contains("1024 announced bytes were not copied")), "{found:#?}");
    let without = format!("@%first mbarrier.inval.shared::cta.b64 [%bar];\nbar.sync 0;\n{}", marked());
    told(
        &without.replace("@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 1024;\n", ""),
        "mbarrier object",
    );
}

#[test]
fn boxes_lie_in_shared_memory_at_multiples_of_128() {
    told(&marked().replace("[%data]", "[%data+64]"), "is no multiple of 128");
    told(&marked().replace("[%data]", "[%data+1152]"), "out of bounds");
    let source =
        format!("{}{}", copy_in(BOX), store(STORE, &[0, 0])).replace("[%data];\n", "[%data+16]; // here\n");
    told(&source, "the source of a tensor copy");
    let over = source.replace("[%data+16]", "[%data+1152]");
    told(&over, "out of bounds");
    let large = |_: &mut SimpleMemory, map: TensorMap| {
        let boxes = TensorMap::tiled(map.address, map.element, &map.dimensions, &[256, 256]);
        boxes.encode().unwrap()
    };
    told_with(&marked(), "out of bounds", large);
}

#[test]
fn tensors_lie_in_memory_that_is_there() {
    let longer = |_: &mut SimpleMemory, map: TensorMap| {
        TensorMap { dimensions: vec![32, 100], ..map }.encode().unwrap()
    };
    told_with(&marked().replace("{0, 0}", "{0, 60}"), "out of bounds", longer);
    let stored =
        format!("{}{}", copy_in(BOX), store(STORE, &[0, 62])).replace("[%data];\n", "[%data]; // here\n");
    told_with(&stored, "out of bounds", longer);
    let freed = |memory: &mut SimpleMemory, map: TensorMap| {
        memory.free(map.address);
        map.encode().unwrap()
    };
    told_with(&marked(), "freed", freed);
    let protected = |memory: &mut SimpleMemory, map: TensorMap| {
        memory.protect(map.address);
        map.encode().unwrap()
    };
    told_with(&stored.replace("{0, 62}", "{0, 0}"), "which may only be read", protected);
}

#[test]
fn maps_are_aligned_and_whole() {
    told(&marked().replace("[%map,", "[%in,"), "are no tensor map");
    let shifted = format!("add.u64 %a3, %map, 32;\n{}", marked().replace("[%map,", "[%a3,"));
    told(&shifted, "is not aligned to 64 bytes");
    let behind = format!("add.u64 %a3, %map, 64;\n{}", marked().replace("[%map,", "[%a3,"));
    told(&behind, "reaches over the end of the arguments");
    let outside = format!("add.u64 %a3, %in, 1024;\n{}", marked().replace("[%map,", "[%a3,"));
    told(&outside, "out of bounds");
    told(
        &marked().replace("[%map,", "[%a4,").replace("@%first cp", "mov.u64 %a4, 0;\n@%first cp"),
        "out of bounds",
    );
    let shared =
        format!("mov.b64 %a3, data;\ncvta.shared.u64 %a4, %a3;\n{}", marked().replace("[%map,", "[%a4,"));
    told(&shared, "lies in shared memory");
    // Bytes that were never written are none.
    let mut memory = SimpleMemory::new();
    let bare = memory.allocate_uninitialised(128);
    let text = kernel(2048, &marked().replace("[%map,", "[%in,"));
    let outcome = launch(&text, &LaunchShape::linear(1, 32), &memory, (&[0; 128], &[0, bare]), &options(0));
    let found: Vec<String> = outcome.findings.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|text| text.contains("never written")), "{found:#?}");
    assert!(found.iter().any(|text| text.contains("are no tensor map")), "{found:#?}");
}

#[test]
fn instructions_fit_their_maps() {
    let three = marked().replace("2d", "3d").replace("{0, 0}", "{0, 0, 0}");
    told(&three, "the instruction is `.3d`, and the tensor of its map has 2 dimensions");
    let columns = |_: &mut SimpleMemory, map: TensorMap| {
        let columns = TensorColumns { lower_corner: vec![0], upper_corner: vec![0], channels: 16, pixels: 4 };
        TensorMap::im2col(map.address, map.element, &[32, 8, 8], columns).encode().unwrap()
    };
    told_with(&three, "the instruction is `.tile`, and its tensor map was made for `.im2col`", columns);
    let stored =
        format!("{}{}", copy_in(BOX), store(STORE, &[0, 0])).replace("[%data];\n", "[%data]; // here\n");
    let stored = stored
        .replace("2d", "3d")
        .replace("{0, 0}", "{0, 0, 0}")
        .replace("cta.bulk", "cta.im2col_no_offs.bulk");
    for (lower, upper, words) in [(-1, 0, "a lower corner of -1"), (0, 1, "an upper corner of 1")] {
        let outer = move |_: &mut SimpleMemory, map: TensorMap| {
            let (lower_corner, upper_corner) = (vec![lower], vec![upper]);
            let columns = TensorColumns { lower_corner, upper_corner, channels: 16, pixels: 4 };
            TensorMap::im2col(map.address, map.element, &[32, 8, 8], columns).encode().unwrap()
        };
        told_with(&stored, words, outer);
    }
    let slices = |_: &mut SimpleMemory, map: TensorMap| {
        let map = TensorMap::tiled(map.address, map.element, &[32, 8, 8], &[4, 8, 8]);
        map.with_interleave(TensorInterleave::B16).encode().unwrap()
    };
    told_with(&three, "interleaved", slices);
}

#[test]
fn the_source_of_a_store_is_kept_until_its_group_is_done() {
    let write =
        "bar.sync 0;\nshl.b32 %r4, %t, 2;\nadd.u32 %r5, %data, %r4;\nst.shared.u32 [%r5], %t; // here\n";
    let right = format!("{}{}{write}", copy_in(BOX), store(STORE, &[0, 8]));
    for wait in ["wait_group 0", "wait_group.read 0"] {
        for seed in 0..3 {
            let body = right.replace("wait_group 0", wait);
            assert_eq!(findings(&body, 64, seed, plain), Vec::<String>::new());
        }
    }
    told(&right.replace("@%first cp.async.bulk.wait_group 0;\n", ""), "pending copy");
    told(&right.replace("wait_group 0", "wait_group.read 1"), "pending copy");
    told(&right.replace("@%first cp.async.bulk.commit_group;\n", ""), "pending copy");
    // Reads do not disturb it, if the thread waits before the block ends.
    let wait = "@%first cp.async.bulk.wait_group 0;\n";
    let read = right.replace(wait, "") + wait;
    let read = read.replace("st.shared.u32 [%r5], %t;", "ld.shared.u32 %r6, [%r5];");
    assert_eq!(findings(&read, 64, 0, plain), Vec::<String>::new());
    // A load into it does.
    let again = format!(
        "{}{}{}",
        copy_in(BOX),
        store(STORE, &[0, 8]).replace("@%first cp.async.bulk.wait_group 0;\n", ""),
        marked()
    );
    told(&again, "pending copy");
}

#[test]
fn stores_race_with_threads_that_do_not_meet_them() {
    let body = format!("{}{}", copy_in(BOX).replace("bar.sync 0;\n", ""), store(STORE, &[0, 0]))
        .replace("[%data];\n", "[%data]; // here\n");
    told(&body, "race");
}

#[test]
fn fields_keep_their_rules() {
    let base = || TensorMap::tiled(0x1000, TensorElement::F16, &[64, 64], &[64, 8]);
    let check = |map: TensorMap, field: Field, index: Option<usize>, words: &str| {
        let error = map.encode().unwrap_err();
        assert_eq!((error.field, error.index), (field, index), "{error}");
        assert!(error.to_string().contains(words), "`{words}` is not in {error}");
    };
    use kiln_ptx::exec::{TensorFill, TensorSwizzle};
    assert!(base().encode().is_ok());
    check(TensorMap { dimensions: vec![], ..base() }, Field::TensorRank, None, "from 1 to 5");
    check(TensorMap { dimensions: vec![8; 6], ..base() }, Field::TensorRank, None, "from 1 to 5");
    check(TensorMap { address: 0x1008, ..base() }, Field::GlobalAddress, None, "a multiple of 16");
    check(TensorMap { dimensions: vec![64, 0], ..base() }, Field::GlobalDim, Some(1), "from 1 to 4294967296");
    check(
        TensorMap { dimensions: vec![(1 << 32) + 1, 4], ..base() },
        Field::GlobalDim,
        Some(0),
        "4294967297",
    );
    check(base().with_strides(&[136]), Field::GlobalStrides, Some(0), "a multiple of 16");
    check(base().with_strides(&[1 << 40]), Field::GlobalStrides, Some(0), "less than 1099511627776");
    check(base().with_strides(&[128, 128]), Field::GlobalStrides, None, "a list of 1");
    check(
        TensorMap::tiled(0, TensorElement::U8, &[64, 64], &[64, 257]),
        Field::BoxDim,
        Some(1),
        "from 1 to 256",
    );
    check(
        TensorMap::tiled(0, TensorElement::U8, &[64, 64], &[0, 1]),
        Field::BoxDim,
        Some(0),
        "from 1 to 256",
    );
    check(
        TensorMap::tiled(0, TensorElement::F16, &[64, 64], &[12, 1]),
        Field::BoxDim,
        Some(0),
        "multiple of 16 bytes",
    );
    check(base().with_element_strides(&[1, 9]), Field::ElementStrides, Some(1), "from 1 to 8");
    check(base().with_element_strides(&[1, 0]), Field::ElementStrides, Some(1), "from 1 to 8");
    for (swizzle, span) in [(TensorSwizzle::B32, "32 bytes"), (TensorSwizzle::B64, "64 bytes")] {
        check(base().with_swizzle(swizzle), Field::BoxDim, Some(0), span);
    }
    assert!(base().with_swizzle(TensorSwizzle::B128).encode().is_ok());
    check(base().with_interleave(TensorInterleave::B16), Field::Interleave, None, "3, 4 or 5 dimensions");
    let cube = || {
        TensorMap::tiled(0x1010, TensorElement::F16, &[16, 8, 8], &[16, 4, 4])
            .with_interleave(TensorInterleave::B32)
    };
    check(cube(), Field::GlobalAddress, None, "a multiple of 32");
    check(TensorMap { address: 0x1020, ..cube() }, Field::Swizzle, None, "interleave of 32 bytes");
    let nan = TensorMap::tiled(0, TensorElement::S32, &[64], &[64]).with_fill(TensorFill::Nan);
    check(nan, Field::OobFill, None, "floating-point");
    let columns = |lower: i32, upper: i32, channels: u32, pixels: u32| {
        let (lower_corner, upper_corner) = (vec![lower; 2], vec![upper; 2]);
        let columns = TensorColumns { lower_corner, upper_corner, channels, pixels };
        TensorMap::im2col(0, TensorElement::F16, &[64, 9, 14, 64], columns)
    };
    assert!(columns(-1, -1, 8, 64).encode().is_ok());
    check(columns(-129, 0, 8, 64), Field::PixelBoxLowerCorner, Some(0), "from -128 to 127");
    check(columns(5, -4, 8, 64), Field::PixelBoxUpperCorner, Some(0), "at least one pixel");
    check(columns(0, 0, 257, 64), Field::ChannelsPerPixel, None, "from 1 to 256");
    check(columns(0, 0, 4, 64), Field::ChannelsPerPixel, None, "multiple of 16 bytes");
    check(columns(0, 0, 8, 1025), Field::PixelsPerColumn, None, "from 1 to 1024");
    let flat = TensorColumns { lower_corner: vec![], upper_corner: vec![], channels: 8, pixels: 4 };
    check(TensorMap::im2col(0, TensorElement::F16, &[64, 9], flat), Field::TensorRank, None, "from 3 to 5");
}
