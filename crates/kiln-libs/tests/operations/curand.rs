//! cuRAND's generator on the host, which needs no GPU, as the oracle.

use kiln_libs::rand::Philox;
use libloading::Library;

use crate::rand_values::{normal_f32, normal_f64};
use crate::rig::skip;

const SEED: u64 = 0xfeed_beef_1234_5678;
const PHILOX: i32 = 161;
const MANY: usize = 1 << 24;
const NORMALS: usize = 1 << 20;

type Handle = *mut std::ffi::c_void;

struct Generator {
    library: Library,
    handle: Handle,
}

impl Generator {
    /// A new generator; none where the library is not there, which is counted.
    fn new(test: &str) -> Option<Self> {
        let path = std::env::var("KILN_CURAND").unwrap_or_else(|_| "libcurand.so.10".into());
        // SAFETY: cuRAND does nothing harmful when it is loaded.
        let Ok(library) = (unsafe { Library::new(&path) }) else {
            skip(test, &format!("{path} is not there; `cargo xtask test` fetches it"));
            return None;
        };
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: the functions have these signatures in curand.h; the handle is one of this library.
        unsafe {
            let create =
                library.get::<unsafe extern "C" fn(*mut Handle, i32) -> i32>(b"curandCreateGeneratorHost");
            assert_eq!(create.unwrap()(&mut handle, PHILOX), 0);
            let seed = library
                .get::<unsafe extern "C" fn(Handle, u64) -> i32>(b"curandSetPseudoRandomGeneratorSeed");
            assert_eq!(seed.unwrap()(handle, SEED), 0);
        }
        Some(Self { library, handle })
    }

    fn fill<T: Copy + Default>(&self, function: &str) -> Vec<T> {
        let mut values = vec![T::default(); MANY];
        // SAFETY: the function takes a pointer to so many elements of this type.
        unsafe {
            let generate =
                self.library.get::<unsafe extern "C" fn(Handle, *mut T, usize) -> i32>(function.as_bytes());
            assert_eq!(generate.unwrap()(self.handle, values.as_mut_ptr(), MANY), 0);
        }
        values
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        // SAFETY: the handle is a generator of this library, and not used again.
        unsafe {
            let destroy = self.library.get::<unsafe extern "C" fn(Handle) -> i32>(b"curandDestroyGenerator");
            destroy.unwrap()(self.handle);
        }
    }
}

/// Normal numbers, which take a mean and a deviation.
fn normals<T: Copy + Default>(test: &str, function: &str, mean: T, deviation: T) -> Option<Vec<T>> {
    let generator = Generator::new(test)?;
    let mut values = vec![T::default(); NORMALS];
    // SAFETY: the function takes a pointer to so many elements of this type, and two numbers of it.
    unsafe {
        type Generate<T> = unsafe extern "C" fn(Handle, *mut T, usize, T, T) -> i32;
        let generate = generator.library.get::<Generate<T>>(function.as_bytes()).unwrap();
        assert_eq!(generate(generator.handle, values.as_mut_ptr(), NORMALS, mean, deviation), 0);
    }
    Some(values)
}

#[test]
fn a_million_normal_numbers_are_curands_up_to_rounding() {
    let sequence = Philox::new(SEED);
    let test = "a_million_normal_numbers_are_curands_up_to_rounding";
    let Some(floats) = normals(test, "curandGenerateNormal", 0.0_f32, 1.0) else { return };
    let doubles = normals(test, "curandGenerateNormalDouble", 0.0_f64, 1.0).unwrap();
    for (at, (float, double)) in (0..).zip(floats.iter().zip(&doubles)) {
        assert!((f64::from(*float) - normal_f32(sequence, at)).abs() < 5e-6, "{at}: {float}");
        assert!((double - normal_f64(sequence, at)).abs() < 1e-14, "{at}: {double}");
    }
}

/// What cuRAND gave, so that a machine without it holds the generator against it, too.
const DIGESTS: [u64; 3] = [0x30b7_ab5a_c958_a95a, 0xd858_f601_0e4f_e273, 0xc026_0479_1a19_680c];

fn digest(bits: impl Iterator<Item = u64>) -> u64 {
    bits.fold(0xcbf2_9ce4_8422_2325, |hash, bits| (hash ^ bits).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn sixteen_million_numbers_of_each_kind_have_the_digests_of_curands() {
    let (sequence, all) = (Philox::new(SEED), || 0..MANY as u64);
    let found = [
        digest(all().map(|at| u64::from(sequence.u32(at)))),
        digest(all().map(|at| u64::from(sequence.f32(at).to_bits()))),
        digest(all().map(|at| sequence.f64(at).to_bits())),
    ];
    assert_eq!(found, DIGESTS, "{found:#x?}");
}

#[test]
fn sixteen_million_numbers_of_each_kind_are_curands() {
    let sequence = Philox::new(SEED);
    let test = "sixteen_million_numbers_of_each_kind_are_curands";
    let Some(generator) = Generator::new(test) else { return };
    let words: Vec<u32> = generator.fill("curandGenerate");
    assert!((0..).zip(&words).all(|(at, word)| sequence.u32(at) == *word));
    let floats: Vec<f32> = Generator::new(test).unwrap().fill("curandGenerateUniform");
    assert!((0..).zip(&floats).all(|(at, float)| sequence.f32(at).to_bits() == float.to_bits()));
    let doubles: Vec<f64> = Generator::new(test).unwrap().fill("curandGenerateUniformDouble");
    assert!((0..).zip(&doubles).all(|(at, double)| sequence.f64(at).to_bits() == double.to_bits()));
    let digests = [
        digest(words.iter().map(|word| u64::from(*word))),
        digest(floats.iter().map(|float| u64::from(float.to_bits()))),
        digest(doubles.iter().map(|double| double.to_bits())),
    ];
    assert_eq!(digests, DIGESTS, "{digests:#x?}");
}
