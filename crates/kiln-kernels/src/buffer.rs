//! Buffers: device memory a kernel reads and writes, and how its content is judged.

use std::fmt;

/// Device memory of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseBuffer {
    /// What it holds.
    pub data: Data,
    /// How it is judged afterwards.
    pub compare: Compare,
}

/// When two contents count as equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compare {
    /// Bit for bit.
    Exact,
    /// Every float within so many representable numbers.
    Ulps(u32),
    /// Every float within a part of its magnitude, or within an absolute distance.
    Close {
        /// Part of the magnitude.
        relative: f64,
        /// Distance that is always allowed.
        absolute: f64,
    },
    /// Bit for bit once both are sorted.
    Sorted,
    /// Not at all.
    Ignore,
}

/// Numbers of one type.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Data {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// Calls `$body` with the list inside, whatever its type.
macro_rules! with {
    ($data:expr, $list:ident => $body:expr) => {
        match $data {
            Data::U8($list) => $body,
            Data::I8($list) => $body,
            Data::U16($list) => $body,
            Data::I16($list) => $body,
            Data::U32($list) => $body,
            Data::I32($list) => $body,
            Data::U64($list) => $body,
            Data::I64($list) => $body,
            Data::F32($list) => $body,
            Data::F64($list) => $body,
        }
    };
}

impl Data {
    /// The content as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        with!(self, list => list.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    /// The same type of numbers from bytes.
    pub fn from_bytes(&self, bytes: &[u8]) -> Self {
        macro_rules! read {
            ($variant:ident, $ty:ty) => {
                Self::$variant(
                    bytes
                        .chunks_exact(size_of::<$ty>())
                        .filter_map(|chunk| chunk.try_into().ok().map(<$ty>::from_le_bytes))
                        .collect(),
                )
            };
        }
        match self {
            Self::U8(_) => read!(U8, u8),
            Self::I8(_) => read!(I8, i8),
            Self::U16(_) => read!(U16, u16),
            Self::I16(_) => read!(I16, i16),
            Self::U32(_) => read!(U32, u32),
            Self::I32(_) => read!(I32, i32),
            Self::U64(_) => read!(U64, u64),
            Self::I64(_) => read!(I64, i64),
            Self::F32(_) => read!(F32, f32),
            Self::F64(_) => read!(F64, f64),
        }
    }
}

impl CaseBuffer {
    /// Whether another content counts as equal to this one; else where it differs.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn check(&self, actual: &Data) -> Result<(), String> {
        match (self.compare, &self.data, actual) {
            (Compare::Ignore, ..) => Ok(()),
            (Compare::Ulps(limit), Data::F32(want), Data::F32(have)) => {
                all(want, have, |w, h| distance(w.to_bits().into(), h.to_bits().into(), 31) <= limit.into())
            }
            (Compare::Ulps(limit), Data::F64(want), Data::F64(have)) => {
                all(want, have, |w, h| distance(w.to_bits(), h.to_bits(), 63) <= limit.into())
            }
            (Compare::Close { relative, absolute }, Data::F32(want), Data::F32(have)) => {
                all(want, have, |w, h| is_close((*w).into(), (*h).into(), relative, absolute))
            }
            (Compare::Close { relative, absolute }, Data::F64(want), Data::F64(have)) => {
                all(want, have, |w, h| is_close(*w, *h, relative, absolute))
            }
            (Compare::Sorted, ..) => {
                let sorted = |data: &Data| {
                    with!(data, list => {
                        let mut texts: Vec<String> = list.iter().map(|x| x.to_string()).collect();
                        texts.sort_unstable();
                        texts
                    })
                };
                all(&sorted(&self.data), &sorted(actual), |w, h| w == h)
            }
            _ => self.check_bits(actual),
        }
    }

    fn check_bits(&self, actual: &Data) -> Result<(), String> {
        let (want, have) = (self.data.to_bytes(), actual.to_bytes());
        let size = with!(&self.data, list => size_of_val(list.as_slice()) / list.len().max(1)).max(1);
        let differs =
            |at: &usize| want.get(at * size..(at + 1) * size) != have.get(at * size..(at + 1) * size);
        match (0..want.len().max(have.len()) / size).find(differs) {
            None => Ok(()),
            Some(at) => {
                let show = |data: &Data| with!(data, list => list.get(at).map_or("nothing".to_owned(), |x| format!("{x:?}")));
                let hex = |bytes: &[u8]| {
                    let part = bytes.get(at * size..(at + 1) * size).unwrap_or(&[]);
                    part.iter().rev().map(|b| format!("{b:02x}")).collect::<String>()
                };
                Err(format!(
                    "element {at} is {} (0x{}), not {} (0x{})",
                    show(actual),
                    hex(&have),
                    show(&self.data),
                    hex(&want)
                ))
            }
        }
    }
}

fn all<T: fmt::Debug>(want: &[T], have: &[T], equal: impl Fn(&T, &T) -> bool) -> Result<(), String> {
    if want.len() != have.len() {
        return Err(format!("{} elements, not {}", have.len(), want.len()));
    }
    match want.iter().zip(have).position(|(w, h)| !equal(w, h)) {
        None => Ok(()),
        Some(at) => Err(format!("element {at} is {:?}, not {:?}", have[at], want[at])),
    }
}

/// Representable numbers between two floats; NaN is next to NaN only.
fn distance(a: u64, b: u64, sign: u32) -> u64 {
    let infinity = if sign == 31 { 0x7f80_0000 } else { 0x7ff0_0000_0000_0000 };
    let is_nan = |x: u64| x & ((1 << sign) - 1) > infinity;
    match (is_nan(a), is_nan(b)) {
        (true, true) => return 0,
        (false, false) => {}
        _ => return u64::MAX,
    }
    let key = |x: u64| {
        let magnitude = (x & ((1 << sign) - 1)) as i128;
        if x >> sign & 1 != 0 { -magnitude } else { magnitude }
    };
    key(a).abs_diff(key(b)) as u64
}

fn is_close(want: f64, have: f64, relative: f64, absolute: f64) -> bool {
    if want.is_nan() || have.is_nan() {
        return want.is_nan() && have.is_nan();
    }
    want == have || (want - have).abs() <= absolute.max(relative * want.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closeness_is_judged_as_said() {
        let buffer = |compare| CaseBuffer { data: Data::F32(vec![1.0, f32::NAN]), compare };
        let near = Data::F32(vec![1.0f32.next_up(), f32::NAN]);
        assert!(buffer(Compare::Ulps(1)).check(&near).is_ok());
        assert!(buffer(Compare::Ulps(0)).check(&near).is_err());
        assert!(buffer(Compare::Close { relative: 1e-6, absolute: 0.0 }).check(&near).is_ok());
        assert!(buffer(Compare::Ulps(9)).check(&Data::F32(vec![1.0, 2.0])).is_err());
        let text = buffer(Compare::Exact).check(&near).unwrap_err();
        assert_eq!(text, "element 0 is 1.0000001 (0x3f800001), not 1.0 (0x3f800000)");
    }

    #[test]
    fn order_does_not_matter_where_it_is_said() {
        let buffer = CaseBuffer { data: Data::I32(vec![3, 1, 2]), compare: Compare::Sorted };
        assert!(buffer.check(&Data::I32(vec![1, 2, 3])).is_ok());
        assert!(buffer.check(&Data::I32(vec![1, 2, 2])).is_err());
    }
}
