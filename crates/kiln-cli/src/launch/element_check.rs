//! Whether the elements of an array are what the kernel takes them for.
//!
//! A `float*` reads eight bytes of a float64 file as two numbers, without a fault. PTX has no types of pointers, but two things tell
//! what a kernel expects: the types of its parameters, which the mangled name of a C++ kernel has and the source of another declares, and the types of the
//! instructions that access the memory. Declared types decide. Instructions tell less: a kernel may move the bits of one type as another, such as a `double*` as
//! `uint4`. A uint8 file is raw bytes and fits everywhere.

use kiln_ptx::{PointerField, ScalarKind, ScalarSet, ScalarType};

use crate::element_type::ElementType;

/// What is known of the elements behind a pointer.
#[derive(Clone, Debug, Default)]
pub(super) struct Expected {
    /// From the C++ type of the parameter.
    declared: Option<ElementType>,
    /// Whether that type is known, and is not a pointer to numbers: a struct, or `void`.
    is_other: bool,
    /// From the instructions; none if an access cannot be followed.
    accessed: Option<ScalarSet>,
}

/// How an array fits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fit {
    /// As far as can be told, it does.
    Fits,
    /// It may be wrong, and may be meant.
    Doubtful(String),
    /// The kernel would read other numbers than are there.
    Differs {
        /// What the kernel expects.
        expected: String,
        /// The type to convert to.
        cast_to: Option<ElementType>,
        /// Whether the type is declared. Otherwise the kernel may use the bits of other elements.
        is_certain: bool,
    },
}

impl Expected {
    /// What a parameter's type and the kernel's accesses tell.
    pub(super) fn new(parameter_type: Option<&str>, field: Option<&PointerField>) -> Self {
        let declared = parameter_type.and_then(pointee);
        let is_other = parameter_type.is_some() && declared.is_none();
        Self { declared, is_other, accessed: field.and_then(|field| field.elements) }
    }

    /// Compares the elements of an array.
    pub(super) fn compare(&self, given: ElementType) -> Fit {
        match (self.declared, self.accessed) {
            _ if given == ElementType::U8 => Fit::Fits,
            (Some(declared), _) => compare_declared(given, declared),
            (None, Some(accessed)) if accessed.is_empty() => Fit::Fits,
            (None, Some(accessed)) => match compare_accessed(given, accessed) {
                Fit::Differs { expected, .. } if self.is_other => Fit::Doubtful(expected),
                fit => fit,
            },
            (None, None) => Fit::Doubtful("the kernel's accesses cannot be followed".into()),
        }
    }
}

fn compare_declared(given: ElementType, declared: ElementType) -> Fit {
    use ElementType::{Bf16, Bool, F16, I8, U8, U16};
    let is_half = |element| matches!(element, F16 | Bf16);
    let fits = match declared {
        // Bytes may be anything.
        Bool | I8 | U8 => true,
        _ if given.component_bytes() != declared.bytes() => false,
        _ if is_half(declared) => given == declared || given == U16,
        _ => is_number_with_point(given) == declared.is_float(),
    };
    match fits {
        true => Fit::Fits,
        // Elements whose bits are moved as integers, such as two halves in an `unsigned`.
        false if !declared.is_float() && given.component_bytes() <= declared.bytes() => {
            Fit::Doubtful(format!("the kernel takes {declared}"))
        }
        false => Fit::Differs {
            expected: format!("the kernel takes {declared}"),
            cast_to: real(given, declared),
            is_certain: true,
        },
    }
}

fn compare_accessed(given: ElementType, accessed: ScalarSet) -> Fit {
    if let Some(half) = packed_half(accessed) {
        return compare_declared(given, half);
    }
    let widths = accessed.iter().map(|ty| u64::from(ty.size_bytes()));
    let (least, most) =
        widths.fold((u64::MAX, 0), |(least, most), width| (least.min(width), most.max(width)));
    let floats = accessed.iter().all(|ty| ty.kind() == ScalarKind::Float);
    let size = given.component_bytes();
    let types: Vec<&str> = accessed.iter().map(|ty| ty.keyword()).collect();
    let expected = format!("the kernel accesses {}", types.join(" and "));
    let cast_to = (least == most).then(|| of_width(given, most, floats)).flatten();
    let differs = Fit::Differs {
        expected: expected.clone(),
        cast_to: cast_to.and_then(|to| real(given, to)),
        is_certain: false,
    };
    let is_integer = |ty: ScalarType| matches!(ty.kind(), ScalarKind::Signed | ScalarKind::Unsigned);
    // A `float*` is accessed as floats. Floats that are accessed as integers are moved, or their bits are used.
    let moves_bits = is_number_with_point(given) && accessed.iter().all(is_integer);
    match size {
        // Bytes may be anything.
        _ if least == 1 => Fit::Fits,
        _ if size > most && moves_bits => Fit::Doubtful(expected),
        _ if size > most => differs,
        _ if size < least && floats => differs,
        _ if floats && !is_number_with_point(given) && size > 2 => differs,
        // Elements that are moved several at a time, such as the two floats of a point.
        _ if size < least => Fit::Doubtful(expected),
        _ => Fit::Fits,
    }
}

/// The half that an instruction on packed halves shows to be the element, such as that of `atomicAdd(__half2*)`. Other accesses to the same memory
/// have types of 16 or 32 bits, which move halves as well.
fn packed_half(accessed: ScalarSet) -> Option<ElementType> {
    let half = accessed.iter().find_map(|ty| match ty {
        ScalarType::F16x2 => Some(ElementType::F16),
        ScalarType::Bf16x2 => Some(ElementType::Bf16),
        _ => None,
    })?;
    accessed.iter().all(|ty| matches!(ty.size_bytes(), 2 | 4)).then_some(half)
}

fn is_number_with_point(element: ElementType) -> bool {
    element.is_float() || element.is_complex()
}

/// The type to convert to; complex numbers stay complex.
fn real(given: ElementType, to: ElementType) -> Option<ElementType> {
    match (given.is_complex(), to) {
        (false, _) => Some(to),
        (true, ElementType::F32) => Some(ElementType::Complex64),
        (true, ElementType::F64) => Some(ElementType::Complex128),
        (true, _) => None,
    }
}

/// The type of that width, and of the same kind unless floating-point numbers are wanted.
fn of_width(given: ElementType, bytes: u64, floats: bool) -> Option<ElementType> {
    let float = floats || is_number_with_point(given);
    Some(match (bytes, float, given.is_signed()) {
        (2, true, _) => ElementType::F16,
        (4, true, _) => ElementType::F32,
        (8, true, _) => ElementType::F64,
        (2, false, true) => ElementType::I16,
        (2, false, false) => ElementType::U16,
        (4, false, true) => ElementType::I32,
        (4, false, false) => ElementType::U32,
        (8, false, true) => ElementType::I64,
        (8, false, false) => ElementType::U64,
        _ => return None,
    })
}

/// The element type behind a C++ pointer to numbers or to CUDA's vectors of them, such as `float const*` or `__half2*`.
fn pointee(ty: &str) -> Option<ElementType> {
    let mut words: Vec<&str> = ty.split_whitespace().collect();
    words.retain(|word| !matches!(*word, "restrict" | "__restrict" | "__restrict__"));
    let text = words.join(" ");
    let base = text.strip_suffix('*').filter(|base| !base.ends_with('*'))?;
    let base: Vec<&str> =
        base.split(' ').filter(|word| !matches!(*word, "const" | "volatile" | "")).collect();
    let base = base.join(" ");
    number(base.strip_prefix("std::").or_else(|| base.strip_prefix("std :: ")).unwrap_or(&base))
}

/// The integer that words such as `unsigned long` name, in any order.
fn integer(words: &str) -> Option<ElementType> {
    let words: Vec<&str> = words.split(' ').collect();
    let count = |word: &str| words.iter().filter(|other| **other == word).count();
    let is_integer = |word: &&str| matches!(*word, "signed" | "unsigned" | "char" | "short" | "int" | "long");
    if !words.iter().all(is_integer) {
        return None;
    }
    Some(match (count("char"), count("short"), count("long"), count("unsigned") > 0) {
        (1.., _, _, false) => ElementType::I8,
        (1.., _, _, true) => ElementType::U8,
        (_, 1.., _, false) => ElementType::I16,
        (_, 1.., _, true) => ElementType::U16,
        (_, _, 1.., false) => ElementType::I64,
        (_, _, 1.., true) => ElementType::U64,
        (_, _, _, false) => ElementType::I32,
        (_, _, _, true) => ElementType::U32,
    })
}

/// The element type of a C++ type: a number, or a vector of CUDA such as `float4`.
fn number(ty: &str) -> Option<ElementType> {
    Some(match ty {
        "bool" => ElementType::Bool,
        "int8_t" => ElementType::I8,
        "uint8_t" => ElementType::U8,
        "int16_t" => ElementType::I16,
        "uint16_t" => ElementType::U16,
        "int32_t" => ElementType::I32,
        "uint32_t" | "uint" => ElementType::U32,
        "int64_t" | "ptrdiff_t" => ElementType::I64,
        "uint64_t" | "size_t" => ElementType::U64,
        "float" | "cuFloatComplex" | "cuComplex" => ElementType::F32,
        "double" | "cuDoubleComplex" => ElementType::F64,
        "__half" | "__half2" | "half" | "half2" => ElementType::F16,
        "__nv_bfloat16" | "__nv_bfloat162" | "nv_bfloat16" | "nv_bfloat162" => ElementType::Bf16,
        words if integer(words).is_some() => return integer(words),
        vector => {
            return match vector.strip_suffix(['1', '2', '3', '4'])? {
                "char" => Some(ElementType::I8),
                "uchar" => Some(ElementType::U8),
                "short" => Some(ElementType::I16),
                "ushort" => Some(ElementType::U16),
                "int" => Some(ElementType::I32),
                "uint" => Some(ElementType::U32),
                "long" | "longlong" => Some(ElementType::I64),
                "ulong" | "ulonglong" => Some(ElementType::U64),
                "float" => Some(ElementType::F32),
                "double" => Some(ElementType::F64),
                _ => None,
            };
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ElementType::{Bf16, Complex64, Complex128, F16, F32, F64, I16, I32, I64, U8, U16, U32};

    fn cast(expected: &Expected, given: ElementType) -> Option<Option<ElementType>> {
        match expected.compare(given) {
            Fit::Differs { cast_to, .. } => Some(cast_to),
            _ => None,
        }
    }

    #[test]
    fn the_type_of_a_parameter_decides() {
        let floats = Expected::new(Some("float const* restrict"), None);
        for fits in [F32, Complex64, U8] {
            assert_eq!(floats.compare(fits), Fit::Fits, "{fits}");
        }
        assert_eq!([F64, I32, F16].map(|given| cast(&floats, given)), [Some(Some(F32)); 3]);
        assert_eq!(cast(&floats, Complex128), Some(Some(Complex64)));
        let halves = Expected::new(Some("__nv_bfloat16*"), None);
        assert_eq!([Bf16, U16].map(|given| halves.compare(given)), [Fit::Fits, Fit::Fits]);
        assert_eq!(cast(&halves, F16), Some(Some(Bf16)));
        assert_eq!(Expected::new(Some("int*"), None).compare(U32), Fit::Fits, "a sign makes no difference");
        let packed = Expected::new(Some("unsigned int const*"), None).compare(F16);
        assert!(matches!(packed, Fit::Doubtful(_)), "two halves in a word");
        assert_eq!(Expected::new(Some("char*"), None).compare(F64), Fit::Fits, "bytes may be anything");
        for (vector, element) in
            [("float4*", F32), ("__half2 const*", F16), ("__nv_bfloat162*", Bf16), ("uint2*", U32)]
        {
            assert_eq!(Expected::new(Some(vector), None).declared, Some(element), "{vector}");
        }
        assert!(Expected::new(Some("float**"), None).declared.is_none());
        assert!(Expected::new(Some("Particle*"), None).declared.is_none());
        for (words, element) in [
            ("unsigned*", U32),
            ("long unsigned int*", ElementType::U64),
            ("int8_t*", ElementType::I8),
            ("std::size_t*", ElementType::U64),
        ] {
            assert_eq!(Expected::new(Some(words), None).declared, Some(element), "{words}");
        }
    }

    #[test]
    fn accesses_decide_where_there_is_no_type() {
        let accessed = |types: &[ScalarType]| Expected {
            declared: None,
            is_other: false,
            accessed: Some(types.iter().copied().collect()),
        };
        let floats = accessed(&[ScalarType::F32]);
        assert_eq!([F64, I32, F16].map(|given| cast(&floats, given)), [Some(Some(F32)); 3]);
        assert_eq!(
            [F32, Complex64, U8].map(|given| floats.compare(given)),
            [Fit::Fits, Fit::Fits, Fit::Fits]
        );
        let words = accessed(&[ScalarType::U32]);
        assert_eq!(cast(&words, I64), Some(Some(I32)));
        assert!(matches!(words.compare(F64), Fit::Doubtful(_)), "a double may be moved as two words");
        assert_eq!(cast(&accessed(&[ScalarType::B32]), F64), Some(Some(F32)));
        let structs = Expected { is_other: true, ..floats.clone() };
        assert!(matches!(structs.compare(F64), Fit::Doubtful(_)), "a struct may have any elements");
        assert_eq!([F32, I32, U32].map(|given| words.compare(given)), [Fit::Fits, Fit::Fits, Fit::Fits]);
        assert!(matches!(words.compare(I16), Fit::Doubtful(_)), "two at a time");
        assert_eq!(
            accessed(&[ScalarType::U8, ScalarType::U32]).compare(F64),
            Fit::Fits,
            "bytes may be anything"
        );
        assert_eq!(cast(&accessed(&[ScalarType::U16, ScalarType::U32]), I64), Some(None), "which one?");
        let packed = accessed(&[ScalarType::F16x2, ScalarType::B32]);
        assert_eq!([F16, U16].map(|given| packed.compare(given)), [Fit::Fits, Fit::Fits]);
        assert_eq!([F32, Bf16, I32].map(|given| cast(&packed, given)), [Some(Some(F16)); 3]);
        assert_eq!(accessed(&[ScalarType::Bf16x2]).compare(Bf16), Fit::Fits);
        assert_eq!(accessed(&[]).compare(F64), Fit::Fits, "nothing is accessed");
        assert!(matches!(Expected::default().compare(F64), Fit::Doubtful(_)));
    }
}
