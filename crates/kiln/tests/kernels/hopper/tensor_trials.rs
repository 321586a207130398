//! Tensor copies that are tried: loads, stores and reductions of boxes.

use kiln::tensor::{TensorElement, TensorFill, TensorSwizzle};
use kiln_kernels::{MatrixSpread, Random, matrix_number};

use super::reduction::reduced;
use super::tensor_box::TensorBox;
use super::tensor_kernel::{copy_in, copy_out, kernel, load, store};
use super::trial::{Oracle, Tensor, Trial};

const SWIZZLES: [TensorSwizzle; 4] =
    [TensorSwizzle::None, TensorSwizzle::B32, TensorSwizzle::B64, TensorSwizzle::B128];
const THREADS: u32 = 64;

/// Bytes of elements: any bits for most, numbers of a kind for those that are computed with.
fn content(
    element: TensorElement,
    count: usize,
    spread: Option<MatrixSpread>,
    random: &mut Random,
) -> Vec<u8> {
    let ty = match element {
        TensorElement::F16 => "f16",
        TensorElement::Bf16 => "bf16",
        TensorElement::F64 => "f64",
        _ => "f32",
    };
    let size = element.bytes() as usize;
    let one = |random: &mut Random| match spread.filter(|_| element.is_float()) {
        Some(spread) => matrix_number(ty, spread, random),
        None => random.next(),
    };
    let numbers = (0..count.div_ceil(size)).flat_map(|_| one(random).to_le_bytes()[..size].to_vec());
    numbers.take(count).collect()
}

/// What a load makes of the bits of an element.
fn converted(element: TensorElement, bits: u32) -> u32 {
    match element {
        TensorElement::Tf32 | TensorElement::Tf32Ftz if f32::from_bits(bits).is_finite() => {
            // In the middle to the even one.
            (bits + 0xfff + (bits >> 13 & 1)) & !0x1fff
        }
        _ => bits,
    }
}

/// The value for elements outside: zero, or the NaN that an H200 takes.
fn outside(map: &TensorBox) -> Vec<u8> {
    let halves = if map.fill == TensorFill::Nan { 0x7ff7_u16 } else { 0 };
    halves.to_le_bytes().into_iter().cycle().take(map.element.bytes() as usize).collect()
}

fn load_trial(map: &TensorBox, spread: Option<MatrixSpread>, random: &mut Random) -> Trial {
    let tensor = content(map.element, map.tensor_bytes(), spread, random);
    load_of(map, tensor, random)
}

/// A load of a tensor with this content.
fn load_of(map: &TensorBox, tensor: Vec<u8>, random: &mut Random) -> Trial {
    let (bytes, size) = (map.room(), map.element.bytes() as usize);
    let before: Vec<u8> = (0..bytes).map(|_| random.next() as u8).collect();
    let mut box_bytes = before.clone();
    map.each(|shared, inside| {
        let to = &mut box_bytes[shared..shared + size];
        match inside {
            Some(from) if size == 4 => {
                let bits = u32::from_le_bytes(tensor[from..from + 4].try_into().unwrap());
                to.copy_from_slice(&converted(map.element, bits).to_le_bytes());
            }
            Some(from) => to.copy_from_slice(&tensor[from..from + size]),
            None => to.copy_from_slice(&outside(map)),
        }
    });
    let body = [copy_in(bytes), load("tile", &map.at, &[], map.box_bytes()), copy_out(bytes)].concat();
    Trial {
        name: format!("load {}d {}", map.at.len(), map.name()),
        text: kernel(bytes, &body),
        blocks: 1,
        threads: THREADS,
        cluster: 1,
        oracle: Oracle::Bytes([&tensor[..], &box_bytes].concat()),
        tensor: Some(Tensor { map: map.map(), content: tensor, is_written: false }),
        input: before,
        output: vec![0; bytes],
        unit: size,
    }
}

/// Loads of every rank, swizzle and element, with zeros and NaN outside.
pub(crate) fn loads() -> Vec<Trial> {
    let random = &mut Random::new(7);
    let mut trials = Vec::new();
    for rank in 1..=5 {
        for swizzle in SWIZZLES {
            for round in 0..4 {
                let element = TensorElement::ALL[trials.len() % TensorElement::ALL.len()];
                let map = TensorBox::random(rank, (swizzle, round % 2 == 0), element, random);
                trials.push(load_trial(&map, Some(MatrixSpread::Near(6)), random));
            }
        }
    }
    for element in TensorElement::ALL.into_iter().filter(|element| element.is_float()) {
        for (at, spread) in MatrixSpread::ALL.into_iter().enumerate() {
            let mut map = TensorBox::random(1 + at % 3, (SWIZZLES[at % 4], true), element, random);
            map.fill = if at % 2 == 0 { TensorFill::Nan } else { TensorFill::Zero };
            map.at.fill(if at % 2 == 0 { -1 } else { 0 });
            map.at[0] *= 16 / element.bytes() as i32;
            trials.push(load_trial(&map, Some(spread), random));
        }
    }
    trials.extend(conversions());
    trials
}

/// Loads of numbers that conversions change: subnormal ones, and such as lie in the middle of two of `.tf32` or close to it.
fn conversions() -> Vec<Trial> {
    const LOW_BITS: [u32; 6] = [0x1000, 0x0fff, 0x1001, 0x3000, 0x2fff, 0x3001];
    let random = &mut Random::new(41);
    let mut trials = Vec::new();
    for element in [TensorElement::F32, TensorElement::F32Ftz, TensorElement::Tf32, TensorElement::Tf32Ftz] {
        for fill in [TensorFill::Zero, TensorFill::Nan] {
            for is_small in [false, true] {
                let mut map = TensorBox::random(2, (SWIZZLES[trials.len() % 4], true), element, random);
                map.at.fill(0);
                map.fill = fill;
                let words = (0..map.tensor_bytes().div_ceil(4)).flat_map(|number| {
                    let bits = random.next() as u32 & !0x3fff | LOW_BITS[number % LOW_BITS.len()];
                    let exponent = if is_small { 0 } else { 0x40 };
                    (bits & 0x807f_ffff | exponent << 23).to_le_bytes()
                });
                let tensor = words.take(map.tensor_bytes()).collect();
                trials.push(load_of(&map, tensor, random));
            }
        }
    }
    trials
}

/// Whether there are operands for which PTX does not say what a reduction gives.
pub(crate) fn is_odd(spread: MatrixSpread) -> bool {
    use MatrixSpread::{Any, Special, Subnormal, Zeros};
    matches!(spread, Special | Any | Subnormal | Zeros)
}

/// A store, or a reduction with an operation and a PTX type; operands that no oracle is sure of are for the GPU alone.
fn store_trial(
    map: &TensorBox,
    (action, ty): (&str, &str),
    spread: Option<MatrixSpread>,
    random: &mut Random,
) -> Trial {
    let (rank, bytes, size) = (map.at.len(), map.room(), map.element.bytes() as usize);
    let before = content(map.element, map.tensor_bytes(), spread, random);
    let input = content(map.element, bytes, spread, random);
    let mut after = before.clone();
    let is_odd = spread.is_some_and(is_odd);
    map.in_pieces().each(|shared, inside| {
        if let Some(to) = inside.filter(|to| to + size <= after.len()) {
            let (old, new) = (after[to..to + size].to_vec(), &input[shared..shared + size]);
            let result = if action.is_empty() { Some(new.to_vec()) } else { reduced(action, ty, &old, new) };
            after[to..to + size].copy_from_slice(&result.unwrap());
        }
    });
    let (start, operation) = match action {
        "" => ("cp.async", String::new()),
        _ => ("cp.reduce.async", format!(".{action}")),
    };
    let name = format!("{start}.bulk.tensor.{rank}d.global.shared::cta{operation}.tile.bulk_group");
    let output = vec![0; 16];
    let spread_name = spread.map_or_else(String::new, |spread| format!(" {spread:?}"));
    Trial {
        name: format!("{name}{spread_name} {}", map.name()),
        text: kernel(bytes, &[copy_in(bytes), store(&name, &map.at)].concat()),
        blocks: 1,
        threads: THREADS,
        cluster: 1,
        oracle: match !action.is_empty() && is_odd {
            true => Oracle::Any,
            false => Oracle::Bytes([&after[..], &output].concat()),
        },
        tensor: Some(Tensor { map: map.map(), content: before, is_written: true }),
        input,
        output,
        unit: size,
    }
}

pub(crate) fn stores() -> Vec<Trial> {
    let random = &mut Random::new(11);
    let mut trials = Vec::new();
    for rank in 1..=5 {
        for swizzle in SWIZZLES {
            for round in 0..3 {
                let element = TensorElement::ALL[trials.len() % TensorElement::ALL.len()];
                let map = TensorBox::random(rank, (swizzle, round % 2 == 0), element, random).within();
                trials.push(store_trial(&map, ("", ""), Some(MatrixSpread::Subnormal), random));
            }
        }
    }
    trials
}

pub(crate) fn reductions() -> Vec<Trial> {
    use TensorElement::{Bf16, F16, F32, F64, S32, S64, U32, U64};
    let types: [(TensorElement, &str, &[&str]); 8] = [
        (U32, "u32", &["add", "min", "max", "inc", "dec", "and", "or", "xor"]),
        (S32, "s32", &["add", "min", "max", "and", "or", "xor"]),
        (U64, "u64", &["add", "min", "max", "and", "or", "xor"]),
        (S64, "s64", &["min", "max"]),
        (F16, "f16", &["add", "min", "max"]),
        (Bf16, "bf16", &["add", "min", "max"]),
        (F32, "f32", &["add"]),
        (F64, "f64", &["add"]),
    ];
    let random = &mut Random::new(23);
    let mut trials = Vec::new();
    for (element, ty, operations) in types {
        for operation in operations {
            for spread in MatrixSpread::ALL {
                let is_one = !element.is_float();
                let rank = 1 + trials.len() % 5;
                let swizzle = SWIZZLES[trials.len() % 4];
                let mut map = TensorBox::random(rank, (swizzle, true), element, random).within();
                map.at[0] = 0;
                trials.push(store_trial(&map, (*operation, ty), Some(spread), random));
                if is_one {
                    break;
                }
            }
        }
    }
    trials
}
