//! Sorts, against the standard library's.

use kiln::DeviceRuntime;
use kiln_libs::prims::{Numeric, Primitives};

use crate::prims_values::{bits, bits64, f32s, f64s, u32s, words};
use crate::rig::{everywhere, large};

/// None, one, two, parts of a tile, a tile, some tiles and a part.
const LENGTHS: [usize; 7] = [0, 1, 2, 33, 1000, 8448, 18_001];

fn sorted<K: Numeric>(gpu: &DeviceRuntime, keys: &[K], is_descending: bool) -> Vec<K> {
    let (input, output) = (gpu.upload(keys).unwrap(), gpu.allocate(keys.len()).unwrap());
    let prims = Primitives::new(gpu);
    let call = prims.sort(&input, &output);
    let call = if is_descending { call.descending() } else { call };
    call.submit().unwrap();
    output.download().unwrap()
}

#[test]
fn keys_of_32_bits_are_sorted() {
    everywhere("keys_of_32_bits_are_sorted", |gpu| {
        for len in LENGTHS {
            let keys = u32s(len as u64, len);
            let mut expected = keys.clone();
            expected.sort_unstable();
            assert_eq!(sorted(gpu, &keys, false), expected, "{len}");
            let mut floats = f32s(len as u64, len);
            let found = sorted(gpu, &floats, len % 2 == 0);
            floats.sort_by(|a, b| if len % 2 == 0 { b.total_cmp(a) } else { a.total_cmp(b) });
            assert_eq!(bits(&found), bits(&floats), "{len}");
        }
        let keys: Vec<i32> = u32s(8, 700).iter().map(|key| *key as i32).collect();
        let mut expected = keys.clone();
        expected.sort_unstable();
        assert_eq!(sorted(gpu, &keys, false), expected);
        expected.reverse();
        assert_eq!(sorted(gpu, &keys, true), expected);
    });
}

#[test]
fn keys_of_64_bits_are_sorted() {
    everywhere("keys_of_64_bits_are_sorted", |gpu| {
        for len in [1, 300, 6000] {
            let keys = words(len as u64, len);
            let mut expected = keys.clone();
            expected.sort_unstable();
            assert_eq!(sorted(gpu, &keys, false), expected, "{len}");
            let mut floats = f64s(len as u64, len);
            let found = sorted(gpu, &floats, true);
            floats.sort_by(|a, b| b.total_cmp(a));
            assert_eq!(bits64(&found), bits64(&floats), "{len}");
        }
        let keys: Vec<i64> = words(8, 700).iter().map(|key| *key as i64).collect();
        let mut expected = keys.clone();
        expected.sort_unstable();
        assert_eq!(sorted(gpu, &keys, false), expected);
    });
}

/// Keys of few values, so that most are equal, with the index as the value.
fn pairs_are_stable<K: Numeric>(
    gpu: &DeviceRuntime,
    key: impl Fn(u64) -> K,
    len: usize,
    is_descending: bool,
) {
    let keys: Vec<K> = words(len as u64, len).into_iter().map(|word| key(word % 7)).collect();
    let indices: Vec<u32> = (0..len as u32).collect();
    let mut expected: Vec<(K, u32)> = keys.iter().copied().zip(indices.iter().copied()).collect();
    expected
        .sort_by(|a, b| if is_descending { b.0.partial_cmp(&a.0) } else { a.0.partial_cmp(&b.0) }.unwrap());
    let (input, values) = (gpu.upload(&keys).unwrap(), gpu.upload(&indices).unwrap());
    let prims = Primitives::new(gpu);
    let call = prims.sort_by_key(&input, &values, &input, &values);
    let call = if is_descending { call.descending() } else { call };
    call.submit().unwrap();
    let expected_values: Vec<u32> = expected.iter().map(|pair| pair.1).collect();
    assert_eq!(values.download().unwrap(), expected_values, "{len}");
    assert!(input.download().unwrap() == expected.iter().map(|pair| pair.0).collect::<Vec<_>>(), "{len}");
}

#[test]
fn values_move_with_their_keys_and_equal_keys_keep_their_order() {
    everywhere("values_move_with_their_keys_and_equal_keys_keep_their_order", |gpu| {
        for len in [1, 500, 9000] {
            pairs_are_stable(gpu, |word| word as u32, len, false);
            pairs_are_stable(gpu, |word| word as i64 - 3, len, true);
            pairs_are_stable(gpu, |word| word as f32 - 3.0, len, true);
        }
        // Values of eight bytes, into other buffers; the input stays as it was.
        let (keys, values) = (u32s(5, 3000), words(6, 3000));
        let mut expected: Vec<(u32, u64)> = keys.iter().copied().zip(values.iter().copied()).collect();
        expected.sort_by_key(|pair| pair.0);
        let (input, with) = (gpu.upload(&keys).unwrap(), gpu.upload(&values).unwrap());
        let (sorted_keys, sorted_values) = (gpu.allocate(3000).unwrap(), gpu.allocate(3000).unwrap());
        Primitives::new(gpu).sort_by_key(&input, &with, &sorted_keys, &sorted_values).submit().unwrap();
        assert_eq!(sorted_values.download().unwrap(), expected.iter().map(|pair| pair.1).collect::<Vec<_>>());
        assert_eq!(sorted_keys.download().unwrap(), expected.iter().map(|pair| pair.0).collect::<Vec<_>>());
        assert_eq!((input.download().unwrap(), with.download().unwrap()), (keys, values));
    });
}

#[test]
fn a_range_of_bits_is_sorted_by() {
    everywhere("a_range_of_bits_is_sorted_by", |gpu| {
        for (first, end) in [(0, 8), (4, 9), (3, 20), (8, 32), (31, 32), (5, 5)] {
            let keys = u32s(first, 2000);
            let mut expected = keys.clone();
            let digit = |key: &u32| u64::from(*key) >> first & ((1 << (end - first)) - 1);
            expected.sort_by_key(digit);
            let buffer = gpu.upload(&keys).unwrap();
            let prims = Primitives::new(gpu);
            prims.sort(&buffer, &buffer).bits(first as u32..end as u32).submit().unwrap();
            assert_eq!(buffer.download().unwrap(), expected, "{first} to {end}");
        }
    });
}

#[test]
fn many_keys_are_sorted() {
    large("many_keys_are_sorted", |gpu, len| {
        let keys = u32s(3, len);
        let mut expected = keys.clone();
        expected.sort_unstable();
        assert!(sorted(gpu, &keys, false) == expected);
        // All digits alike.
        let equal = vec![0x0101_0101_u32; len];
        assert!(sorted(gpu, &equal, false) == equal);
    });
}
