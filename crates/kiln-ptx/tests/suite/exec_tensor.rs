//! Tensor copies: boxes of every rank, swizzle and element type, in both directions, against a loop over indices.

use crate::tensor_kernel::{Numbers, Sample, copy_in, copy_out, kernel, launch, load, options, store};
use kiln_ptx::exec::{LaunchShape, SimpleMemory, TensorElement, TensorFill, TensorMap, TensorSwizzle};

const SWIZZLES: [TensorSwizzle; 4] =
    [TensorSwizzle::None, TensorSwizzle::B32, TensorSwizzle::B64, TensorSwizzle::B128];
/// The types whose values a load does not change.
const PLAIN: [TensorElement; 10] = [
    TensorElement::U8,
    TensorElement::U16,
    TensorElement::U32,
    TensorElement::S32,
    TensorElement::U64,
    TensorElement::S64,
    TensorElement::F16,
    TensorElement::F32,
    TensorElement::F64,
    TensorElement::Bf16,
];

#[test]
fn loads_hold_the_box_and_zeros_around_the_tensor() {
    let numbers = &mut Numbers(7);
    for (rank, swizzle) in (1..=5).flat_map(|rank| SWIZZLES.map(|swizzle| (rank, swizzle))) {
        for round in 0..4 {
            let sample = Sample::random(rank, swizzle, &PLAIN, numbers);
            let content = numbers.bytes(sample.tensor_bytes());
            let bytes = sample.room();
            let mut memory = SimpleMemory::new();
            let (tensor, out) = (memory.allocate_with(&content), memory.allocate(bytes));
            let map = sample.map(tensor).encode().unwrap_or_else(|error| panic!("{error}: {sample:?}"));
            // What the copy does not write is written before.
            let clear = copy_in(bytes).replace("next", "clear").replace("done", "cleared");
            let zeros = memory.allocate(bytes);
            let body = format!("{clear}{}{}", load(rank, &sample.at, sample.box_bytes()), copy_out(bytes));
            let text = kernel(bytes, &body);
            let shape = LaunchShape::linear(1, 64);
            let outcome = launch(&text, &shape, &memory, (&map, &[out, zeros]), &options(round));
            assert!(outcome.is_clean(), "{sample:?}: {:#?}", outcome.findings);
            let mut expected = vec![0; bytes as usize];
            let size = sample.element.bytes() as usize;
            sample.each(|shared, inside| {
                if let Some(from) = inside {
                    expected[shared..shared + size].copy_from_slice(&content[from..from + size]);
                }
            });
            assert_eq!(memory.read(out, bytes).unwrap(), expected, "{sample:?}");
        }
    }
}

#[test]
fn stores_write_what_lies_inside_of_the_tensor_in_whole_pieces() {
    let numbers = &mut Numbers(11);
    for (rank, swizzle) in (1..=5).flat_map(|rank| SWIZZLES.map(|swizzle| (rank, swizzle))) {
        for round in 0..4 {
            let sample = Sample::random(rank, swizzle, &TensorElement::ALL, numbers).within();
            let (before, bytes) = (numbers.bytes(sample.tensor_bytes()), sample.room());
            let content = numbers.bytes(bytes as usize);
            let mut memory = SimpleMemory::new();
            let (tensor, from) = (memory.allocate_with(&before), memory.allocate_with(&content));
            let map = sample.map(tensor).encode().unwrap();
            let name = format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group");
            let text = kernel(bytes, &format!("{}{}", copy_in(bytes), store(&name, &sample.at)));
            let shape = LaunchShape::linear(1, 64);
            let outcome = launch(&text, &shape, &memory, (&map, &[0, from]), &options(round));
            assert!(outcome.is_clean(), "{sample:?}: {:#?}", outcome.findings);
            let mut expected = before;
            let size = sample.element.bytes() as usize;
            sample.in_pieces().each(|shared, inside| {
                if let Some(to) = inside.filter(|to| to + size <= expected.len()) {
                    expected[to..to + size].copy_from_slice(&content[shared..shared + size]);
                }
            });
            assert_eq!(memory.read(tensor, expected.len() as u64).unwrap(), expected, "{sample:?}");
        }
    }
}

/// Loads a row of 16 bytes of a tensor with one dimension.
fn load_row(map: &TensorMap, memory: &mut SimpleMemory, at: i32) -> Vec<u8> {
    let out = memory.allocate(16);
    let text = kernel(128, &format!("{}{}", load(1, &[at], 16), copy_out(16)));
    let shape = LaunchShape::linear(1, 32);
    let outcome = launch(&text, &shape, memory, (&map.encode().unwrap(), &[out, 0]), &options(0));
    assert!(outcome.is_clean(), "{:#?}", outcome.findings);
    memory.read(out, 16).unwrap()
}

#[test]
fn loads_convert_singles_and_fill_with_nan() {
    let singles = [1.0e-40f32, 1.0 + 0.75 / 1024.0, f32::INFINITY, -1.0e-39];
    let content: Vec<u8> = singles.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut memory = SimpleMemory::new();
    let tensor = memory.allocate_with(&content);
    let mut read = |element: TensorElement, size: u64, fill: TensorFill| -> Vec<f32> {
        let map = TensorMap::tiled(tensor, element, &[size], &[4]).with_fill(fill);
        let bytes = load_row(&map, &mut memory, 0);
        bytes.chunks(4).map(|value| f32::from_le_bytes(value.try_into().unwrap())).collect()
    };
    let zero = TensorFill::Zero;
    assert_eq!(read(TensorElement::F32, 4, zero), singles);
    // An H200 keeps subnormal numbers, whatever the type says.
    assert_eq!(read(TensorElement::F32Ftz, 4, zero), singles);
    let rounded = read(TensorElement::Tf32Ftz, 4, zero);
    assert_eq!(rounded[1..3], [1.0 + 1.0 / 1024.0, f32::INFINITY]);
    assert!(rounded[0].is_subnormal() && rounded[3].is_subnormal(), "{rounded:?}");
    let short = read(TensorElement::Tf32, 2, TensorFill::Nan);
    assert!(short[2].is_nan() && short[3].is_nan() && !short[0].is_nan());
    assert_eq!((short[1], short[2].to_bits()), (1.0 + 1.0 / 1024.0, 0x7ff7_7ff7));
    let halves = load_row(
        &TensorMap::tiled(tensor, TensorElement::F16, &[1], &[8]).with_fill(TensorFill::Nan),
        &mut memory,
        0,
    );
    assert!(halves[2..].chunks(2).all(|half| half == 0x7ff7_u16.to_le_bytes()));
}

#[test]
fn tensors_have_up_to_the_most_elements_and_coordinates_wrap_nowhere() {
    let mut memory = SimpleMemory::new();
    let tensor = memory.allocate_with(&[9; 64]);
    // Only what the box reaches must be there.
    let map = TensorMap::tiled(tensor, TensorElement::U8, &[1 << 32], &[16]);
    assert_eq!(load_row(&map, &mut memory, 48), [9; 16]);
    let map = TensorMap::tiled(tensor, TensorElement::U8, &[64], &[16]);
    for at in [i32::MIN, i32::MAX - 15, 64, -16] {
        assert_eq!(load_row(&map, &mut memory, at), [0; 16], "{at}");
    }
}

#[test]
fn maps_lie_in_global_memory_too_and_parameters_are_named() {
    let mut memory = SimpleMemory::new();
    let tensor = memory.allocate_with(&(0..64).collect::<Vec<u8>>());
    let map = TensorMap::tiled(tensor, TensorElement::U8, &[64], &[32]).encode().unwrap();
    let in_memory = memory.allocate_with(&map);
    let out = memory.allocate(32);
    let body = format!("{}{}", load(1, &[16], 32), copy_out(32));
    let expected: Vec<u8> = (16..48).collect();
    for (at, argument) in [("[%in, ", [0; 128]), ("[map, ", map)] {
        let text = kernel(128, &body.replace("[%map, ", at));
        let shape = LaunchShape::linear(1, 32);
        let outcome = launch(&text, &shape, &memory, (&argument, &[out, in_memory]), &options(0));
        assert!(outcome.is_clean(), "{:#?}", outcome.findings);
        assert_eq!(memory.read(out, 32).unwrap(), expected);
        memory.write(out, &[0; 32]);
    }
}
