//! Random number generators, hashes, n-body and fractals.

use crate::argument::{exact, value};
use crate::buffer::Compare;
use crate::case::{Case, CaseShape, case};
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("number");

fn philox(i: u32, mut key: [u32; 2]) -> [u32; 4] {
    let mut c = [i, 0, 7, 9];
    for _ in 0..10 {
        let (p, q) = (u64::from(c[0]) * 0xd251_1f53, u64::from(c[2]) * 0xcd9e_8d57);
        c = [(q >> 32) as u32 ^ c[1] ^ key[0], q as u32, (p >> 32) as u32 ^ c[3] ^ key[1], p as u32];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    c
}

/// The digest of one padded block, by way of the first bits of roots of primes.
fn sha256(block: &[u8]) -> [u32; 8] {
    let primes: Vec<u32> = (2u32..312).filter(|n| (2..*n).all(|d| n % d != 0)).collect();
    let fraction = |root: f64| (root.fract() * 4_294_967_296.0) as u32;
    let k: Vec<u32> = primes.iter().map(|p| fraction(f64::from(*p).cbrt())).collect();
    let h: Vec<u32> = primes.iter().take(8).map(|p| fraction(f64::from(*p).sqrt())).collect();
    let mut w: Vec<u32> = block.chunks(4).map(|c| u32::from_be_bytes([c[0], c[1], c[2], c[3]])).collect();
    for t in 16..64 {
        let (a, b) = (w[t - 15], w[t - 2]);
        let s0 = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
        let s1 = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
        w.push(w[t - 16].wrapping_add(s0).wrapping_add(w[t - 7]).wrapping_add(s1));
    }
    let mut v: Vec<u32> = h.clone();
    for t in 0..64 {
        let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
        let choice = (v[4] & v[5]) ^ (!v[4] & v[6]);
        let t1 = v[7].wrapping_add(s1).wrapping_add(choice).wrapping_add(k[t]).wrapping_add(w[t]);
        let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
        let t2 = s0.wrapping_add((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        v.rotate_right(1);
        v[4] = v[4].wrapping_add(t1);
        v[0] = t1.wrapping_add(t2);
    }
    std::array::from_fn(|at| h[at].wrapping_add(v[at]))
}

/// A message of up to 55 bytes with the padding of SHA-256.
fn padded(message: &[u8]) -> Vec<u8> {
    let mut block = message.to_vec();
    block.push(0x80);
    block.resize(56, 0);
    block.extend((message.len() as u64 * 8).to_be_bytes());
    block
}

fn attract(bodies: &[f32], dt: f32) -> Vec<f32> {
    let step = |me: &[f32]| {
        let mut force = [0f64; 3];
        for other in bodies.chunks(4) {
            let d: Vec<f64> = (0..3).map(|k| f64::from(other[k]) - f64::from(me[k])).collect();
            let distance = d.iter().map(|x| x * x).sum::<f64>() + f64::from(0.01f32);
            let pull = f64::from(other[3]) / distance.powf(1.5);
            (0..3).for_each(|k| force[k] += d[k] * pull);
        }
        let moved = |k: usize| (f64::from(me[k]) + force[k] * f64::from(dt)) as f32;
        [moved(0), moved(1), moved(2), me[3]]
    };
    bodies.chunks(4).flat_map(step).collect()
}

pub(super) const CASES: &[Case] = &[
    case!(
        SOURCE,
        "philox",
        CaseShape::linear(3, 128),
        |r| vec![exact(vec![0u32; 4 * 300]), value(r.next() as u32), value(r.next() as u32), value(300u32)],
        |a| {
            let key = [a.integer(1) as u32, a.integer(2) as u32];
            a.set(0, (0..300).flat_map(|i| philox(i, key)).collect::<Vec<u32>>());
        }
    ),
    case!(
        SOURCE,
        "splitmix",
        CaseShape::linear(3, 128),
        |r| vec![exact(vec![0u64; 300]), value(r.next()), value(300u32)],
        |a| {
            let seed = a.integer(1);
            let mix = |i: u64| {
                let z = seed.wrapping_add((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^ (z >> 31)
            };
            a.set(0, (0..300).map(mix).collect::<Vec<u64>>());
        }
    ),
    case!(
        SOURCE,
        "sha256",
        CaseShape::linear(2, 64),
        |r| {
            let message = |r: &mut crate::Random| {
                let len = r.within(0, 55) as usize;
                padded(&r.bytes(len))
            };
            let mut blocks: Vec<u8> = r.list(99, message).concat();
            blocks.extend(padded(b"abc"));
            let words = blocks.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]));
            vec![exact(words.collect::<Vec<u32>>()), exact(vec![0u32; 800]), value(100u32)]
        },
        |a| {
            let bytes: Vec<u8> = a.u32s(0).iter().flat_map(|w| w.to_le_bytes()).collect();
            a.set(1, bytes.chunks(64).flat_map(sha256).collect::<Vec<u32>>());
        }
    ),
    case!(
        SOURCE,
        "crc32",
        CaseShape::linear(2, 32),
        |r| vec![exact(r.bytes(50 * 40)), value(40u32), exact(vec![0u32; 50]), value(50u32)],
        |a| {
            let data = a.u8s(0);
            let step = |crc: u32, byte: &u8| {
                (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
            };
            a.set(2, data.chunks(40).map(|c| !c.iter().fold(u32::MAX, step)).collect::<Vec<u32>>());
        }
    ),
    case!(
        SOURCE,
        "mandelbrot",
        CaseShape::cubic([3, 5, 1], [16, 8, 1]),
        |_| vec![exact(vec![0u32; 45 * 36]), value(45u32), value(36u32), value(200u32)],
        |a| {
            let cell = |at: u32| {
                let (cr, ci) =
                    (-2.0 + 3.0 / 45.0 * f64::from(at % 45), -1.0 + 2.0 / 36.0 * f64::from(at / 45));
                let (mut r, mut i, mut k) = (0.0f64, 0.0f64, 0);
                while k < 200 && r * r + i * i <= 4.0 {
                    (r, i) = (r * r - i * i + cr, (r + r) * i + ci);
                    k += 1;
                }
                k
            };
            a.set(0, (0..45 * 36).map(cell).collect::<Vec<u32>>());
        }
    ),
    case!(
        SOURCE,
        "nbody",
        CaseShape::linear(2, 64).shared(64 * 16),
        |r| vec![
            exact(r.f32s(128 * 4, 0.1, 1.0)),
            exact(vec![0f32; 128 * 4]).judged(Compare::Close { relative: 2e-5, absolute: 1e-6 }),
            value(128u32),
            value(0.001f32)
        ],
        |a| a.set(1, attract(&a.f32s(0), a.float(3)))
    ),
    case!(
        SOURCE,
        "collatz",
        CaseShape::linear(3, 64),
        |r| vec![exact(r.u32s(150, 1_000_000)), exact(vec![0u32; 150]), value(150u32)],
        |a| {
            let steps = |x: &u32| {
                let (mut v, mut steps) = (u64::from(*x), 0u32);
                while v > 1 {
                    v = if v % 2 == 1 { 3 * v + 1 } else { v / 2 };
                    steps += 1;
                }
                steps
            };
            let x = a.u32s(0);
            a.set(1, x.iter().map(steps).collect::<Vec<u32>>());
        }
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_abc_is_the_published_one() {
        assert_eq!(sha256(&padded(b"abc"))[..2], [0xba78_16bf, 0x8f01_cfea]);
    }
}
