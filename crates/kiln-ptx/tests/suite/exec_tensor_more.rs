//! Reductions, columns of pixels, copies to several blocks, prefetches, and maps that kernels change.

use crate::tensor_kernel::{
    Numbers, Sample, WAIT, coordinates, copy_in, copy_out, kernel, launch, load, options, store,
};
use kiln_ptx::exec::{
    ExecOutcome, LaunchShape, SimpleMemory, TensorColumns, TensorElement, TensorMap, TensorSwizzle,
};

fn clean(outcome: &ExecOutcome) {
    assert!(outcome.is_clean(), "{:#?}", outcome.findings);
}

/// What a reduction makes of two elements, computed apart from the executor.
fn reduced(operation: &str, element: TensorElement, old: &[u8], new: &[u8]) -> Option<Vec<u8>> {
    use TensorElement::{F32, F64, S32, S64, U32, U64};
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let wide = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    Some(match (operation, element) {
        ("add", F32) => (f32::from_bits(word(old)) + f32::from_bits(word(new))).to_le_bytes().to_vec(),
        ("add", F64) => (f64::from_bits(wide(old)) + f64::from_bits(wide(new))).to_le_bytes().to_vec(),
        ("add", U32 | S32) => word(old).wrapping_add(word(new)).to_le_bytes().to_vec(),
        ("add", U64 | S64) => wide(old).wrapping_add(wide(new)).to_le_bytes().to_vec(),
        ("min", U32) => word(old).min(word(new)).to_le_bytes().to_vec(),
        ("max", U64) => wide(old).max(wide(new)).to_le_bytes().to_vec(),
        ("min", S64) => (wide(old) as i64).min(wide(new) as i64).to_le_bytes().to_vec(),
        ("max", S32) => (word(old) as i32).max(word(new) as i32).to_le_bytes().to_vec(),
        ("inc", U32) => (if word(old) >= word(new) { 0 } else { word(old) + 1 }).to_le_bytes().to_vec(),
        ("dec", U32) => {
            let next = if word(old) == 0 || word(old) > word(new) { word(new) } else { word(old) - 1 };
            next.to_le_bytes().to_vec()
        }
        ("and", U32 | U64) => old.iter().zip(new).map(|(a, b)| a & b).collect(),
        ("or", U32 | U64) => old.iter().zip(new).map(|(a, b)| a | b).collect(),
        ("xor", S32 | U64) => old.iter().zip(new).map(|(a, b)| a ^ b).collect(),
        _ => return None,
    })
}

/// Bytes of finite numbers.
fn numbers_of(element: TensorElement, count: usize, numbers: &mut Numbers) -> Vec<u8> {
    let size = element.bytes() as usize;
    let one = |numbers: &mut Numbers| match element {
        TensorElement::F32 => (numbers.between(-1000, 1000) as f32 / 8.0).to_le_bytes().to_vec(),
        TensorElement::F64 => (numbers.between(-1000, 1000) as f64 / 8.0).to_le_bytes().to_vec(),
        _ => numbers.bytes(size),
    };
    (0..count.div_ceil(size)).flat_map(|_| one(numbers)).collect()
}

#[test]
fn reductions_update_what_lies_inside_of_the_tensor() {
    let numbers = &mut Numbers(23);
    let elements = [
        TensorElement::U32,
        TensorElement::S32,
        TensorElement::U64,
        TensorElement::S64,
        TensorElement::F32,
        TensorElement::F64,
    ];
    let mut done = 0;
    for operation in ["add", "min", "max", "inc", "dec", "and", "or", "xor"] {
        for element in elements {
            if reduced(
                operation,
                element,
                &[0; 8][..element.bytes() as usize],
                &[0; 8][..element.bytes() as usize],
            )
            .is_none()
            {
                continue;
            }
            let rank = 1 + done % 5;
            done += 1;
            let mut sample = Sample::random(rank, TensorSwizzle::B64, &[element], numbers).within();
            let piece = 16 / u64::from(element.bytes());
            sample.dims[0] = sample.dims[0].next_multiple_of(piece);
            let bytes = sample.room();
            let before = numbers_of(element, sample.tensor_bytes(), numbers);
            let content = numbers_of(element, bytes as usize, numbers);
            let mut memory = SimpleMemory::new();
            let (tensor, from) = (memory.allocate_with(&before), memory.allocate_with(&content));
            let map = sample.map(tensor).encode().unwrap();
            let name =
                format!("cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}.tile.bulk_group");
            let text = kernel(bytes, &format!("{}{}", copy_in(bytes), store(&name, &sample.at)));
            let shape = LaunchShape::linear(1, 64);
            clean(&launch(&text, &shape, &memory, (&map, &[0, from]), &options(done as u64)));
            let (mut expected, size) = (before, element.bytes() as usize);
            sample.each(|shared, inside| {
                if let Some(to) = inside {
                    let new = reduced(
                        operation,
                        element,
                        &expected[to..to + size],
                        &content[shared..shared + size],
                    );
                    expected[to..to + size].copy_from_slice(&new.unwrap());
                }
            });
            assert_eq!(
                memory.read(tensor, expected.len() as u64).unwrap(),
                expected,
                "{operation} {sample:?}"
            );
        }
    }
    assert_eq!(done, 18);
}

#[test]
fn whole_pieces_are_updated_where_a_row_ends_in_one_and_nothing_behind_the_tensor() {
    // Three rows of five words, eight words apart, and three words behind the last one.
    let words = |of: &dyn Fn(u32) -> u32| (0..24).flat_map(|at| of(at).to_le_bytes()).collect::<Vec<u8>>();
    let mut memory = SimpleMemory::new();
    let tensor = memory.allocate_with(&words(&|at| 1000 + at));
    let from = memory.allocate_with(&words(&|at| 10 * at));
    let map = TensorMap::tiled(tensor, TensorElement::U32, &[5, 3], &[8, 3]).with_strides(&[32]);
    let name = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group";
    let text = kernel(128, &format!("{}{}", copy_in(96), store(name, &[0, 0])));
    let map = map.encode().unwrap();
    clean(&launch(&text, &LaunchShape::linear(1, 32), &memory, (&map, &[0, from]), &options(0)));
    let expected = words(&|at| 1000 + at + if at < 21 { 10 * at } else { 0 });
    assert_eq!(memory.read(tensor, 96).unwrap(), expected);
}

#[test]
fn reductions_that_a_type_does_not_have_are_told() {
    let mut memory = SimpleMemory::new();
    let tensor = memory.allocate(64);
    for (operation, element) in [
        ("min", TensorElement::F32),
        ("and", TensorElement::F16),
        ("inc", TensorElement::S32),
        ("add", TensorElement::U8),
    ] {
        let map = TensorMap::tiled(tensor, element, &[16], &[16]).encode().unwrap();
        let name = format!("cp.reduce.async.bulk.tensor.1d.global.shared::cta.{operation}.bulk_group");
        let from = memory.allocate(64);
        let text = kernel(128, &format!("{}{}", copy_in(64), store(&name, &[0])));
        let outcome = launch(&text, &LaunchShape::linear(1, 32), &memory, (&map, &[0, from]), &options(0));
        let found: Vec<String> = outcome.findings.iter().map(ToString::to_string).collect();
        let words = format!("cannot be reduced with `.{operation}`");
        assert!(found.iter().any(|text| text.contains(&words)), "{operation} {element:?}: {found:?}");
    }
}

/// A tensor of pixels and a column of them.
struct Column {
    dims: Vec<u64>,
    lower: Vec<i32>,
    upper: Vec<i32>,
    steps: Vec<u32>,
    channels: u32,
    pixels: u32,
    at: Vec<i32>,
    offsets: Vec<i32>,
}

impl Column {
    fn random(rank: usize, numbers: &mut Numbers) -> Self {
        let inner = rank - 2;
        let mut dims = vec![8 * (1 + numbers.below(4))];
        (0..inner).for_each(|_| dims.push(3 + numbers.below(6)));
        dims.push(1 + numbers.below(3));
        let lower: Vec<i32> = (0..inner).map(|_| numbers.between(-2, 1) as i32).collect();
        let upper: Vec<i32> = (0..inner).map(|_| numbers.between(-1, 1) as i32).collect();
        let mut steps = vec![1];
        (0..inner).for_each(|_| steps.push(numbers.pick(&[1, 1, 2])));
        steps.push(1);
        let mut at = vec![8 * numbers.between(-1, dims[0] as i64 / 8) as i32];
        for k in 0..inner {
            at.push(numbers.between(i64::from(lower[k]), dims[k + 1] as i64 - 1 + i64::from(upper[k])) as i32);
        }
        at.push(numbers.between(0, dims[rank - 1] as i64 - 1) as i32);
        let offsets = (0..inner).map(|_| numbers.below(3) as i32).collect();
        let (channels, pixels) = (8 * (1 + numbers.below(3) as u32), 1 + numbers.below(60) as u32);
        Self { dims, lower, upper, steps, channels, pixels, at, offsets }
    }

    /// The pixels of the column, one after the other, each by its coordinates without the channel.
    fn pixels(&self) -> Vec<Vec<i64>> {
        // All positions of one image in their order, then the next image.
        let inner = self.lower.len();
        let range = |k: usize| -> Vec<i64> {
            let (low, high) =
                (i64::from(self.lower[k]), self.dims[k + 1] as i64 - 1 + i64::from(self.upper[k]));
            (low..=high).step_by(self.steps[k + 1] as usize).collect()
        };
        let mut position: Vec<i64> = self.at[1..].iter().map(|at| i64::from(*at)).collect();
        let mut pixels = Vec::new();
        while pixels.len() < self.pixels as usize {
            let mut pixel = position.clone();
            pixel.iter_mut().zip(&self.offsets).for_each(|(place, offset)| *place += i64::from(*offset));
            pixels.push(pixel);
            let mut carries = true;
            for (k, place) in position.iter_mut().enumerate().take(inner) {
                if !carries {
                    break;
                }
                let next = *place + i64::from(self.steps[k + 1]);
                let places = range(k);
                let high = self.dims[k + 1] as i64 - 1 + i64::from(self.upper[k]);
                carries = next > high;
                *place = if carries { places[0] } else { next };
            }
            if carries {
                position[inner] += 1;
            }
        }
        pixels
    }

    fn each(&self, mut visit: impl FnMut(usize, Option<usize>)) {
        for (number, pixel) in self.pixels().iter().enumerate() {
            for channel in 0..self.channels as i64 {
                let mut place = vec![i64::from(self.at[0]) + channel];
                place.extend(pixel);
                let (mut offset, mut stride, mut is_inside) = (0, 2, true);
                for (at, dim) in place.iter().zip(&self.dims) {
                    is_inside &= *at >= 0 && *at < *dim as i64;
                    offset += at * stride;
                    stride *= *dim as i64;
                }
                let shared = 2 * (number * self.channels as usize + channel as usize);
                visit(shared, is_inside.then_some(offset as usize));
            }
        }
    }

    fn map(&self, address: u64) -> [u8; 128] {
        let (lower_corner, upper_corner) = (self.lower.clone(), self.upper.clone());
        let columns =
            TensorColumns { lower_corner, upper_corner, channels: self.channels, pixels: self.pixels };
        TensorMap::im2col(address, TensorElement::F16, &self.dims, columns)
            .with_element_strides(&self.steps)
            .encode()
            .unwrap()
    }

    fn bytes(&self) -> u64 {
        u64::from(2 * self.channels * self.pixels)
    }
}

#[test]
fn columns_of_pixels_go_through_the_box_and_the_images() {
    let numbers = &mut Numbers(31);
    for (rank, round) in (3..=5).flat_map(|rank| (0..6).map(move |round| (rank, round))) {
        let column = Column::random(rank, numbers);
        let content = numbers.bytes(2 * column.dims.iter().product::<u64>() as usize);
        let bytes = column.bytes();
        let mut memory = SimpleMemory::new();
        let (tensor, out) = (memory.allocate_with(&content), memory.allocate(bytes));
        let body = load(rank, &column.at, bytes)
            .replace("global.tile", "global.im2col")
            .replace("[%bar];\nwait", &format!("[%bar], {};\nwait", coordinates(&column.offsets)));
        let text = kernel(bytes, &format!("{body}{}", copy_out(bytes)));
        let shape = LaunchShape::linear(1, 64);
        clean(&launch(&text, &shape, &memory, (&column.map(tensor), &[out, 0]), &options(round)));
        let mut expected = vec![0; bytes as usize];
        column.each(|shared, inside| {
            if let Some(from) = inside {
                expected[shared..shared + 2].copy_from_slice(&content[from..from + 2]);
            }
        });
        assert_eq!(memory.read(out, bytes).unwrap(), expected, "{:?} {:?}", column.dims, column.at);
        // Stores have no offsets, and their columns stay inside of the tensor.
        let (lower, upper) = (vec![0; rank - 2], vec![0; rank - 2]);
        let clamped =
            column.at.iter().zip(&column.dims).skip(1).map(|(at, dim)| (*at).clamp(0, *dim as i32 - 1));
        let at = std::iter::once(column.at[0].max(0)).chain(clamped).collect();
        let plain = Column { offsets: vec![0; rank - 2], at, lower, upper, ..column };
        let (fresh, source) = (numbers.bytes(content.len()), numbers.bytes(bytes as usize));
        let (target, from) = (memory.allocate_with(&fresh), memory.allocate_with(&source));
        let name = format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.im2col_no_offs.bulk_group");
        let text = kernel(bytes, &format!("{}{}", copy_in(bytes), store(&name, &plain.at)));
        clean(&launch(&text, &shape, &memory, (&plain.map(target), &[0, from]), &options(round)));
        let mut expected = fresh;
        plain.each(|shared, inside| {
            if let Some(to) = inside {
                expected[to..to + 2].copy_from_slice(&source[shared..shared + 2]);
            }
        });
        assert_eq!(memory.read(target, expected.len() as u64).unwrap(), expected);
    }
}

#[test]
fn the_example_of_the_ptx_isa_begins_inside_of_its_box() {
    let column = |at: [i32; 4]| Column {
        dims: vec![64, 9, 14, 64],
        lower: vec![-1, -1],
        upper: vec![-1, -1],
        steps: vec![1; 4],
        channels: 8,
        pixels: 64,
        at: at.to_vec(),
        offsets: vec![0, 0],
    };
    let mut memory = SimpleMemory::new();
    let tensor = memory.allocate(2 * 64 * 9 * 14 * 64);
    let found = |at: [i32; 4]| -> Vec<String> {
        let column = column(at);
        let body = load(4, &column.at, 1024)
            .replace("global.tile", "global.im2col")
            .replace("[%bar];\nwait", "[%bar], {0, 0};\nwait");
        let text = kernel(1024, &body);
        let outcome =
            launch(&text, &LaunchShape::linear(1, 32), &memory, (&column.map(tensor), &[0, 0]), &options(0));
        outcome.findings.iter().map(ToString::to_string).collect()
    };
    assert_eq!(found([8, 7, 4, 0]), Vec::<String>::new());
    let wrong = found([8, 8, 4, 0]);
    assert!(
        wrong.iter().any(|text| text.contains("coordinate 1 of the column is 8; it must be from -1 to 7")),
        "{wrong:?}"
    );
}

/// Copies of the first block go to all blocks of a mask, at the same place, and complete bytes of the object there.
fn multicast(copy: &str, mask: u32, sync_first: bool) -> (Vec<u8>, Vec<u8>, ExecOutcome) {
    let content: Vec<u8> = Numbers(5).bytes(512);
    let mut memory = SimpleMemory::new();
    let (tensor, out) = (memory.allocate_with(&content), memory.allocate(4 * 512));
    let map = TensorMap::tiled(tensor, TensorElement::U32, &[16, 8], &[16, 8]).encode().unwrap();
    let sync = "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n";
    let body = format!(
        "mov.u32 %r10, %cluster_ctarank;\n@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 512;\n{}mul.wide.u32 %a4, %r10, 512;\n\
         add.u64 %out, %out, %a4;\nsetp.eq.u32 %p4, %r10, 0;\nand.pred %p4, %p4, %first;\nmov.u16 %h0, {mask};\n@%p4 {copy}\nmov.u32 %r11, {mask};\n\
         shr.u32 %r11, %r11, %r10;\nand.b32 %r11, %r11, 1;\nsetp.eq.u32 %p5, %r11, 0;\n@%p5 bra over;\n{WAIT}{}over:\n{sync}",
        if sync_first { sync } else { "" },
        copy_out(512)
    );
    let text = kernel(1024, &body);
    let shape = LaunchShape::linear(4, 64).in_clusters([4, 1, 1]);
    let outcome = launch(&text, &shape, &memory, (&map, &[out, tensor]), &options(1));
    (content, memory.read(out, 4 * 512).unwrap(), outcome)
}

const TENSOR: &str = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%data], [%map, {0, 0}], [%bar], %h0;";
const PLAIN: &str = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%data], [%in], 512, [%bar], %h0;";

#[test]
fn copies_go_to_several_blocks_of_the_cluster() {
    for copy in [TENSOR, PLAIN] {
        let (content, out, outcome) = multicast(copy, 0b1011, true);
        clean(&outcome);
        for (rank, block) in out.chunks(512).enumerate() {
            let expected = if rank == 2 { vec![0; 512] } else { content.clone() };
            assert_eq!(block, expected, "{copy}: rank {rank}");
        }
        let found = |mask: u32, sync: bool| -> Vec<String> {
            multicast(copy, mask, sync).2.findings.iter().map(ToString::to_string).collect()
        };
        let outside = found(0b1_0001, true);
        assert!(outside.iter().any(|text| text.contains("rank 4 of the cluster")), "{outside:#?}");
        // The object of the other block may not be there yet.
        let hasty = found(0b11, false);
        assert!(!hasty.is_empty(), "{copy}");
    }
}

#[test]
fn prefetches_look_at_the_map_alone() {
    let mut memory = SimpleMemory::new();
    let tensor = memory.allocate(64);
    let map = TensorMap::tiled(tensor, TensorElement::U32, &[16], &[16]).encode().unwrap();
    let body = "prefetch.tensormap [%map];\ncp.async.bulk.prefetch.tensor.1d.L2.global.tile [%map, {0}];\n";
    let run = |body: &str, map: &[u8; 128]| -> Vec<String> {
        let outcome =
            launch(&kernel(128, body), &LaunchShape::linear(1, 32), &memory, (map, &[0, 0]), &options(0));
        outcome.findings.iter().map(ToString::to_string).collect()
    };
    assert_eq!(run(body, &map), Vec::<String>::new());
    assert!(run(body, &[1; 128]).iter().any(|text| text.contains("are no tensor map")));
    assert!(run(&body.replace(".1d", ".2d").replace("{0}", "{0, 0}"), &map)[0].contains("`.2d`"));
}

/// A map is copied to shared memory, changed there, and copied to global memory for all.
const REPLACE: &str = "
setp.lt.u32 %p2, %t, 16;
mul.wide.u32 %a1, %t, 8;
add.u64 %a2, %map, %a1;
ld.param.u64 %a5, [map];
shl.b32 %r1, %t, 3;
add.u32 %r2, %data, %r1;
add.u32 %r2, %r2, 1024;
@%p2 ld.u64 %a3, [%a2];
@%p2 st.shared.u64 [%r2], %a3;
bar.sync 0;
add.u32 %r3, %data, 1024;
ld.global.u64 %a4, [%out+1024];
@%first tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r3], %a4;
@%first tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r3], 1;
@%first tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r3], 0, 16;
@%first tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r3], 1, 4;
@%first tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r3], 0, 64;
@%first tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r3], 0, 16;
@%first tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r3], 1, 4;
@%first tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r3], 1, 1;
@%first tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r3], 2;
@%first tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r3], 0;
@%first tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r3], 0;
@%first tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r3], 0;
bar.sync 0;
setp.lt.u32 %p3, %t, 32;
@!%p3 bra copied;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%in], [%r3], 128;
copied:
bar.sync 0;
@%first fence.proxy.tensormap::generic.acquire.gpu [%in], 128;
";

fn replaced(body: &str, address: u64) -> (Vec<u8>, Vec<String>) {
    let mut memory = SimpleMemory::new();
    let old = memory.allocate(64);
    let content: Vec<u8> = (0..=255).collect();
    let tensor = memory.allocate_with(&content);
    let mut results = vec![0; 1024];
    results.extend((if address == 0 { tensor } else { address }).to_le_bytes());
    let (out, space) = (memory.allocate_with(&results), memory.allocate(128));
    let map = TensorMap::tiled(old, TensorElement::U8, &[64], &[64]).encode().unwrap();
    let load = load(2, &[0, 1], 256).replace("[%map,", "[%in,");
    let text = kernel(2048, &format!("{body}{load}{}", copy_out(256)));
    let outcome = launch(&text, &LaunchShape::linear(1, 64), &memory, (&map, &[out, space]), &options(0));
    (memory.read(out, 256).unwrap(), outcome.findings.iter().map(ToString::to_string).collect())
}

#[test]
fn maps_that_kernels_change_describe_other_tensors() {
    let (out, found) = replaced(REPLACE, 0);
    assert_eq!(found, Vec::<String>::new());
    let expected: Vec<u8> = (64..=255).chain([0; 64]).collect();
    assert_eq!(out, expected);
    let told = |old: &str, new: &str, words: &str| {
        assert!(REPLACE.contains(old));
        let (_, found) = replaced(&REPLACE.replace(old, new), 0);
        assert!(found.iter().any(|text| text.contains(words)), "`{words}` is not in {found:#?}");
    };
    told(
        "[%r3], 0, 64;",
        "[%r3], 0, 72;",
        "globalStrides[0] of the tensor map is 72; it must be a multiple of 16",
    );
    told(
        "elemtype.shared::cta.b1024.b32 [%r3], 2;",
        "elemtype.shared::cta.b1024.b32 [%r3], 13;",
        "`elemtype` of a tensor map cannot be 13",
    );
    told(
        "[%r3], 1, 4;\n@%first tensormap.replace.tile.element",
        "[%r3], 5, 4;\n@%first tensormap.replace.tile.element",
        "`box_dim[5]` of a tensor map cannot be 4",
    );
    told("bar.sync 0;\nsetp.lt.u32 %p3", "setp.lt.u32 %p3", "race");
    let (_, found) = replaced(REPLACE, 0x1008);
    assert!(found.iter().any(|text| text.contains("globalAddress of the tensor map is 4104; it must be a multiple of 16")), "{found:#?}");
}
