//! What is drawn: held against the generator on the host, and against plain arithmetic on its words.

use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::rand::{
    Bernoulli, Bits, Distribution, Integers, LogNormal, Normal, Permutation, Philox, Sampler, Uniform,
};

use crate::rig::everywhere;

const SEED: u64 = 0x1234_5678_9abc_def0;

/// Offsets in and across groups, across subsequences, and far out.
const OFFSETS: [u64; 7] = [0, 1, 3, 262_143, 262_145, (1 << 40) + 2, (1 << 50) - 5];

fn drawn<T: kiln::buffer::Element, D: Distribution<T> + Copy>(
    gpu: &DeviceRuntime,
    len: usize,
    offset: u64,
    distribution: D,
) -> Vec<T> {
    let buffer: GpuRef<T> = gpu.allocate(len).unwrap();
    Sampler::new(gpu).draw(SEED).offset(offset).fill(&buffer, distribution).unwrap();
    buffer.download().unwrap()
}

fn sequence<T>(len: usize, offset: u64, number: impl Fn(Philox, u64) -> T) -> Vec<T> {
    (0..len as u64).map(|at| number(Philox::new(SEED), offset + at)).collect()
}

#[test]
fn bits_and_uniform_numbers_are_those_of_the_host() {
    everywhere("bits_and_uniform_numbers_are_those_of_the_host", |gpu| {
        // Of the last, one more thread than blocks of 256 have draws the end, because the first thread begins before the draw.
        let ends = [(1024, 1), (1023, 3), (512, 1), (512, 3)];
        for (len, offset) in
            [1, 2, 5, 700, 1023].into_iter().zip(OFFSETS).chain(OFFSETS.map(|at| (600, at))).chain(ends)
        {
            assert_eq!(
                drawn::<u32, _>(gpu, len, offset, Bits),
                sequence(len, offset, Philox::u32),
                "u32 {offset}"
            );
            assert_eq!(
                drawn::<u64, _>(gpu, len, offset, Bits),
                sequence(len, offset, Philox::u64),
                "u64 {offset}"
            );
            let (f32s, f64s): (Vec<f32>, Vec<f64>) =
                (drawn(gpu, len, offset, Uniform), drawn(gpu, len, offset, Uniform));
            assert_eq!(f32s, sequence(len, offset, Philox::f32), "f32 {offset}");
            assert_eq!(f64s, sequence(len, offset, Philox::f64), "f64 {offset}");
        }
    });
}

#[test]
fn a_draw_in_parts_is_the_draw() {
    everywhere("a_draw_in_parts_is_the_draw", |gpu| {
        let whole: Vec<f64> = drawn(gpu, 1000, 7, Normal { mean: 1.0, deviation: 2.0 });
        let parts = gpu.allocate::<f64>(1000).unwrap();
        let random = Sampler::new(gpu);
        let streams = [gpu.stream().unwrap(), gpu.stream().unwrap()];
        for (at, range) in [0..1, 1..334, 334..335, 335..1000].into_iter().enumerate() {
            let (offset, part) = (7 + range.start as u64, parts.view(range).unwrap());
            let draw = random.draw(SEED).offset(offset).on(&streams[at % 2]);
            draw.fill(&part, Normal { mean: 1.0, deviation: 2.0 }).unwrap();
        }
        assert_eq!(parts.download().unwrap(), whole);
    });
}

/// Two numbers from two uniform ones, in f64 by the functions of the standard library.
fn box_muller(first: f64, turns: f64) -> [f64; 2] {
    let (length, angle) = ((-2.0 * first.ln()).sqrt(), turns * std::f64::consts::TAU);
    [length * angle.sin(), length * angle.cos()]
}

pub(crate) fn normal_f32(sequence: Philox, position: u64) -> f64 {
    let pair = position / 2 * 2;
    // The first one is rounded to f32, which tells near 1, where its logarithm is near 0.
    let first = f64::from(sequence.f32(pair));
    let turns = (f64::from(sequence.u32(pair + 1)) + 0.5) / 4_294_967_296.0;
    box_muller(first, turns)[(position % 2) as usize]
}

pub(crate) fn normal_f64(sequence: Philox, position: u64) -> f64 {
    let pair = position / 2 * 2;
    box_muller(sequence.f64(pair), sequence.f64(pair + 1))[(position % 2) as usize]
}

#[track_caller]
fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance * expected.abs().max(1.0), "{found} is not {expected}");
}

#[test]
fn normal_numbers_come_of_pairs_of_uniform_ones() {
    everywhere("normal_numbers_come_of_pairs_of_uniform_ones", |gpu| {
        for offset in OFFSETS {
            let f32s: Vec<f32> = drawn(gpu, 300, offset, Normal { mean: 3.0_f32, deviation: 0.5 });
            let f64s: Vec<f64> = drawn(gpu, 300, offset, Normal { mean: 3.0_f64, deviation: 0.5 });
            let logs: Vec<f32> = drawn(gpu, 300, offset, LogNormal { mean: 0.25_f32, deviation: 0.5 });
            let log64s: Vec<f64> = drawn(gpu, 300, offset, LogNormal { mean: 0.25_f64, deviation: 0.5 });
            for at in 0..300 {
                let position = offset + at as u64;
                let one = normal_f32(Philox::new(SEED), position);
                let two = normal_f64(Philox::new(SEED), position);
                close(f64::from(f32s[at]), 3.0 + 0.5 * one, 4e-6);
                close(f64s[at], 3.0 + 0.5 * two, 1e-14);
                close(f64::from(logs[at]), (0.25 + 0.5 * one).exp(), 8e-6);
                close(log64s[at], (0.25 + 0.5 * two).exp(), 4e-14);
            }
        }
        let many: Vec<f32> = drawn(gpu, 20_000, 0, Normal { mean: 0.0_f32, deviation: 1.0 });
        let mean = many.iter().map(|value| f64::from(*value)).sum::<f64>() / 20_000.0;
        let square = many.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() / 20_000.0;
        // Five standard deviations of each.
        assert!(mean.abs() < 0.036 && (square - 1.0).abs() < 0.05, "{mean} {square}");
    });
}

/// The bits of numbers, as one number.
fn digest(bits: impl Iterator<Item = u64>) -> u64 {
    bits.fold(0xcbf2_9ce4_8422_2325, |hash, bits| (hash ^ bits).wrapping_mul(0x0100_0000_01b3))
}

/// What the documentation says: how far a number may lie from the exact one of the same words, and that all devices agree in all bits.
#[test]
fn normal_numbers_are_near_the_exact_ones_and_the_same_bits_on_every_device() {
    const DIGESTS: [u64; 4] =
        [0xeac8_9fb2_222f_8a64, 0x80a6_2295_16b2_4f31, 0x9178_78f2_ceda_20d6, 0xb6de_872b_46d3_cd7d];
    const MANY: usize = 5000;
    everywhere("normal_numbers_are_near_the_exact_ones_and_the_same_bits_on_every_device", |gpu| {
        let philox = Philox::new(SEED);
        let f32s: Vec<f32> = drawn(gpu, MANY, 3, Normal { mean: 0.0_f32, deviation: 1.0 });
        let f64s: Vec<f64> = drawn(gpu, MANY, 3, Normal { mean: 0.0_f64, deviation: 1.0 });
        let logs: Vec<f32> = drawn(gpu, MANY, 3, LogNormal { mean: 0.0_f32, deviation: 1.0 });
        let log64s: Vec<f64> = drawn(gpu, MANY, 3, LogNormal { mean: 0.0_f64, deviation: 1.0 });
        for at in 0..MANY {
            let (one, two) = (normal_f32(philox, 3 + at as u64), normal_f64(philox, 3 + at as u64));
            assert!((f64::from(f32s[at]) - one).abs() <= 5e-6, "{at}: {} is not {one}", f32s[at]);
            assert!((f64s[at] - two).abs() <= 1e-14, "{at}: {} is not {two}", f64s[at]);
            assert!(
                (f64::from(logs[at]) / one.exp() - 1.0).abs() <= 6e-6,
                "{at}: {} is not {}",
                logs[at],
                one.exp()
            );
            assert!(
                (log64s[at] / two.exp() - 1.0).abs() <= 2e-14,
                "{at}: {} is not {}",
                log64s[at],
                two.exp()
            );
        }
        let narrow = |values: &[f32]| digest(values.iter().map(|value| u64::from(value.to_bits())));
        let wide = |values: &[f64]| digest(values.iter().map(|value| value.to_bits()));
        let found = [narrow(&f32s), wide(&f64s), narrow(&logs), wide(&log64s)];
        assert_eq!(found, DIGESTS, "{found:#x?}");
    });
}

#[test]
fn chances_and_integers_are_exact() {
    everywhere("chances_and_integers_are_exact", |gpu| {
        for probability in [0.0, 1e-3, 0.3, 0.5, 1.0] {
            let found: Vec<u8> = drawn(gpu, 500, 3, Bernoulli { probability });
            let below = |word: u32| f64::from(word) < (probability * 4_294_967_296.0).round();
            assert_eq!(
                found,
                sequence(500, 3, |philox, at| u8::from(below(philox.u32(at)))),
                "{probability}"
            );
        }
        for (first, last) in [(0, 0), (5, 14), (0, u32::MAX), (u32::MAX - 1, u32::MAX)] {
            let found: Vec<u32> = drawn(gpu, 300, 5, Integers { first, last });
            let count = u128::from(last - first) + 1;
            let expected = |philox: Philox, at| first + ((u128::from(philox.u64(at)) * count) >> 64) as u32;
            assert_eq!(found, sequence(300, 5, expected), "{first} to {last}");
        }
        for (first, last) in [(-3, 3), (i32::MIN, i32::MAX), (i32::MIN, i32::MIN)] {
            let found: Vec<i32> = drawn(gpu, 300, 5, Integers { first, last });
            let count = (i64::from(last) - i64::from(first) + 1) as u128;
            let value = |philox: Philox, at| ((u128::from(philox.u64(at)) * count) >> 64) as i64;
            let expected = |philox: Philox, at| (i64::from(first) + value(philox, at)) as i32;
            assert_eq!(found, sequence(300, 5, expected), "{first} to {last}");
        }
    });
}

/// The upper 64 bits of 128 random bits times a count, by schoolbook multiplication of words.
fn upper(words: [u32; 4], count: u128) -> u64 {
    let mut product = [0_u64; 7];
    for (at, word) in words.into_iter().enumerate() {
        for part in 0..3 {
            let factor = (count >> (32 * part)) as u32;
            let mut carry = u64::from(word) * u64::from(factor);
            for place in &mut product[at + part..] {
                let sum = *place + (carry & 0xffff_ffff);
                (*place, carry) = (sum & 0xffff_ffff, (carry >> 32) + (sum >> 32));
            }
        }
    }
    product[4] | product[5] << 32
}

#[test]
fn wide_integers_are_exact() {
    everywhere("wide_integers_are_exact", |gpu| {
        let words = |at: u64| {
            let (counter, subsequence) = (at / 65_536, (at % 65_536) as u32);
            Philox::block([SEED as u32, (SEED >> 32) as u32], [counter as u32, 0, subsequence, 0])
        };
        for (first, last) in [(0, 0), (7, 1 << 40), (0, u64::MAX), (1, u64::MAX)] {
            let found: Vec<u64> = drawn(gpu, 200, 65_500, Integers { first, last });
            let count = u128::from(last - first) + 1;
            let expected: Vec<u64> = (65_500..65_700).map(|at| first + upper(words(at), count)).collect();
            assert_eq!(found, expected, "{first} to {last}");
        }
        for (first, last) in [(-5, 5), (i64::MIN, i64::MAX), (i64::MIN, 0)] {
            let found: Vec<i64> = drawn(gpu, 200, 0, Integers { first, last });
            let count = (i128::from(last) - i128::from(first) + 1) as u128;
            let expected: Vec<i64> =
                (0..200).map(|at| first.wrapping_add(upper(words(at), count) as i64)).collect();
            assert_eq!(found, expected, "{first} to {last}");
        }
    });
}

#[test]
fn a_permutation_has_each_value_once_and_depends_on_seed_and_offset() {
    everywhere("a_permutation_has_each_value_once_and_depends_on_seed_and_offset", |gpu| {
        for len in [1, 2, 3, 4, 5, 16, 17, 64, 1000] {
            let mut found: Vec<u32> = drawn(gpu, len, 9, Permutation);
            assert!(len < 64 || found != (0..len as u32).collect::<Vec<_>>(), "{len}");
            found.sort_unstable();
            assert_eq!(found, (0..len as u32).collect::<Vec<_>>(), "{len}");
        }
        let [one, two, again]: [Vec<u64>; 3] = [0, 1, 0].map(|offset| drawn(gpu, 300, offset, Permutation));
        assert!(one == again && one != two);
    });
}

/// Every value lands in every place about as often as in any other.
#[test]
fn permutations_are_even() {
    let gpu = DeviceRuntime::simulated(3).unwrap();
    let (random, buffer) = (Sampler::new(&gpu), gpu.allocate::<u32>(5).unwrap());
    let mut counts = [[0_u32; 5]; 5];
    for seed in 0..2000 {
        random.draw(seed).fill(&buffer, Permutation).unwrap();
        for (place, value) in buffer.download().unwrap().into_iter().enumerate() {
            counts[place][value as usize] += 1;
        }
    }
    // 400 are expected, with a standard deviation of 18.
    assert!(counts.iter().flatten().all(|count| (310..=490).contains(count)), "{counts:?}");
}

#[test]
fn a_view_is_filled_and_nothing_beside_it() {
    everywhere("a_view_is_filled_and_nothing_beside_it", |gpu| {
        let buffer = gpu.zeros::<u32>(100).unwrap();
        let random = Sampler::new(gpu);
        random.draw(1).offset(2).fill(&buffer.view(33..40).unwrap(), Bits).unwrap();
        let expected: Vec<u32> = (0..100)
            .map(|at| if (33..40).contains(&at) { Philox::new(1).u32(at - 33 + 2) } else { 0 })
            .collect();
        assert_eq!(buffer.download().unwrap(), expected);
        random.draw(1).fill(&buffer.view(5..5).unwrap(), Bits).unwrap();
        assert_eq!(buffer.download().unwrap(), expected, "no elements are no elements");
    });
}

#[test]
fn a_recorded_draw_is_the_same_at_every_replay() {
    everywhere("a_recorded_draw_is_the_same_at_every_replay", |gpu| {
        let (random, buffer) = (Sampler::new(gpu), gpu.zeros::<f32>(500).unwrap());
        let mut builder = gpu.graph();
        random.draw(SEED).offset(11).record(&mut builder, &buffer, Uniform).unwrap();
        let graph = builder.build().unwrap();
        for _ in 0..3 {
            buffer.fill(0.0).unwrap();
            graph.replay().unwrap();
            assert_eq!(buffer.download().unwrap(), sequence(500, 11, Philox::f32));
        }
    });
}

/// 2^24 numbers of each kind on the GPU are those of the host, which are those of cuRAND.
#[test]
fn millions_of_numbers_on_the_gpu() {
    let gpu = match kiln::probe::gpu_for_test("millions_of_numbers_on_the_gpu").unwrap() {
        kiln::probe::TestGate::Ready(gpu) => gpu,
        kiln::probe::TestGate::Skipped(absence) => return println!("skipped: {absence}"),
    };
    const MANY: usize = 1 << 24;
    assert_eq!(drawn::<u32, _>(gpu, MANY, 0, Bits), sequence(MANY, 0, Philox::u32));
    let (f32s, f64s): (Vec<f32>, Vec<f64>) = (drawn(gpu, MANY, 0, Uniform), drawn(gpu, MANY, 0, Uniform));
    assert!(f32s == sequence(MANY, 0, Philox::f32) && f64s == sequence(MANY, 0, Philox::f64));
}
