//! The kernels as they are shipped: PTX that was compiled from the sources in `kernels`.
//!
//! One file holds the kernels of one operation for one type, so that a program loads what it uses. `cargo xtask kernels` compiles them again, and
//! a test compares.

/// The header of all sources.
pub const HEADER: (&str, &str) = ("tile.cuh", include_str!("kernels/tile.cuh"));

/// The oldest compute capability whose PTX the compiler still writes, times ten. Newer devices run it, too.
pub const CAPABILITY: u32 = 75;

/// A file of PTX and what it was compiled from.
#[derive(Clone, Copy, Debug)]
pub struct ShippedKernels {
    /// The operation.
    pub family: &'static str,
    /// The type it is for.
    pub of: &'static str,
    /// The source's name.
    pub source_name: &'static str,
    /// The source.
    pub source: &'static str,
    /// Macros that make it one for the type.
    pub macros: &'static [(&'static str, &'static str)],
    /// The PTX.
    pub ptx: &'static str,
}

macro_rules! shipped {
    ($($family:literal $of:literal $source:literal [$($name:literal = $value:literal),*];)*) => {
        &[$(ShippedKernels {
            family: $family,
            of: $of,
            source_name: $source,
            source: include_str!(concat!("kernels/", $source)),
            macros: &[$(($name, $value)),*],
            ptx: include_str!(concat!("ptx/", $family, "_", $of, ".ptx")),
        }),*]
    };
}
pub(crate) use shipped;

/// Elements of a thread, as the kernels of this operation were compiled for a type; 1 where the source has no such macro.
pub(super) fn items_of(family: &str, of: &str) -> u64 {
    let file = SHIPPED.iter().find(|file| (file.family, file.of) == (family, of));
    let value = file.and_then(|file| file.macros.iter().find(|(name, _)| *name == "ITEMS"));
    value.and_then(|(_, value)| value.parse().ok()).unwrap_or(1)
}

/// All files.
pub const SHIPPED: &[ShippedKernels] = shipped! {
    "reduce" "u32" "reduce.cu" ["TYPE" = "u32"];
    "reduce" "i32" "reduce.cu" ["TYPE" = "i32"];
    "reduce" "u64" "reduce.cu" ["TYPE" = "u64"];
    "reduce" "i64" "reduce.cu" ["TYPE" = "i64"];
    "reduce" "f32" "reduce.cu" ["TYPE" = "f32"];
    "reduce" "f64" "reduce.cu" ["TYPE" = "f64"];
    "scan_sum" "u32" "scan.cu" ["TYPE" = "u32", "OPERATOR" = "Sum"];
    "scan_sum" "i32" "scan.cu" ["TYPE" = "i32", "OPERATOR" = "Sum"];
    "scan_sum" "u64" "scan.cu" ["TYPE" = "u64", "OPERATOR" = "Sum"];
    "scan_sum" "i64" "scan.cu" ["TYPE" = "i64", "OPERATOR" = "Sum"];
    "scan_sum" "f32" "scan.cu" ["TYPE" = "f32", "OPERATOR" = "Sum"];
    "scan_sum" "f64" "scan.cu" ["TYPE" = "f64", "OPERATOR" = "Sum"];
    "scan_min" "u32" "scan.cu" ["TYPE" = "u32", "OPERATOR" = "Min"];
    "scan_min" "i32" "scan.cu" ["TYPE" = "i32", "OPERATOR" = "Min"];
    "scan_min" "u64" "scan.cu" ["TYPE" = "u64", "OPERATOR" = "Min"];
    "scan_min" "i64" "scan.cu" ["TYPE" = "i64", "OPERATOR" = "Min"];
    "scan_min" "f32" "scan.cu" ["TYPE" = "f32", "OPERATOR" = "Min"];
    "scan_min" "f64" "scan.cu" ["TYPE" = "f64", "OPERATOR" = "Min"];
    "scan_max" "u32" "scan.cu" ["TYPE" = "u32", "OPERATOR" = "Max"];
    "scan_max" "i32" "scan.cu" ["TYPE" = "i32", "OPERATOR" = "Max"];
    "scan_max" "u64" "scan.cu" ["TYPE" = "u64", "OPERATOR" = "Max"];
    "scan_max" "i64" "scan.cu" ["TYPE" = "i64", "OPERATOR" = "Max"];
    "scan_max" "f32" "scan.cu" ["TYPE" = "f32", "OPERATOR" = "Max"];
    "scan_max" "f64" "scan.cu" ["TYPE" = "f64", "OPERATOR" = "Max"];
    "segments" "u32" "segments.cu" ["TYPE" = "u32"];
    "segments" "i32" "segments.cu" ["TYPE" = "i32"];
    "segments" "u64" "segments.cu" ["TYPE" = "u64"];
    "segments" "i64" "segments.cu" ["TYPE" = "i64"];
    "segments" "f32" "segments.cu" ["TYPE" = "f32"];
    "segments" "f64" "segments.cu" ["TYPE" = "f64"];
    "sort" "key_u32" "sort.cu" ["KEY" = "u32", "ITEMS" = "22", "BLOCKS" = "3"];
    "sort" "key_u32_value_u32" "sort.cu" ["KEY" = "u32", "VALUE" = "u32", "ITEMS" = "22", "BLOCKS" = "2"];
    "sort" "key_u32_value_u64" "sort.cu" ["KEY" = "u32", "VALUE" = "u64", "ITEMS" = "14", "BLOCKS" = "2"];
    "sort" "key_u64" "sort.cu" ["KEY" = "u64", "ITEMS" = "14", "BLOCKS" = "3"];
    "sort" "key_u64_value_u32" "sort.cu" ["KEY" = "u64", "VALUE" = "u32", "ITEMS" = "14", "BLOCKS" = "2"];
    "sort" "key_u64_value_u64" "sort.cu" ["KEY" = "u64", "VALUE" = "u64", "ITEMS" = "14", "BLOCKS" = "2"];
    "select_flags" "u8" "compact.cu" ["TYPE" = "u8", "RULE" = "FLAGS"];
    "select_flags" "u16" "compact.cu" ["TYPE" = "u16", "RULE" = "FLAGS"];
    "select_flags" "u32" "compact.cu" ["TYPE" = "u32", "RULE" = "FLAGS"];
    "select_flags" "u64" "compact.cu" ["TYPE" = "u64", "RULE" = "FLAGS"];
    "select_changes" "u8" "compact.cu" ["TYPE" = "u8", "RULE" = "CHANGES"];
    "select_changes" "u16" "compact.cu" ["TYPE" = "u16", "RULE" = "CHANGES"];
    "select_changes" "u32" "compact.cu" ["TYPE" = "u32", "RULE" = "CHANGES"];
    "select_changes" "u64" "compact.cu" ["TYPE" = "u64", "RULE" = "CHANGES"];
    "select_compare" "u8" "compact.cu" ["TYPE" = "u8", "RULE" = "COMPARE"];
    "select_compare" "u32" "compact.cu" ["TYPE" = "u32", "RULE" = "COMPARE"];
    "select_compare" "i32" "compact.cu" ["TYPE" = "i32", "RULE" = "COMPARE"];
    "select_compare" "u64" "compact.cu" ["TYPE" = "u64", "RULE" = "COMPARE"];
    "select_compare" "i64" "compact.cu" ["TYPE" = "i64", "RULE" = "COMPARE"];
    "select_compare" "f32" "compact.cu" ["TYPE" = "f32", "RULE" = "COMPARE"];
    "select_compare" "f64" "compact.cu" ["TYPE" = "f64", "RULE" = "COMPARE"];
    "select_order" "u32" "compact.cu" ["TYPE" = "u32", "RULE" = "ORDER"];
    "select_order" "u64" "compact.cu" ["TYPE" = "u64", "RULE" = "ORDER"];
    "histogram" "u8" "histogram.cu" ["TYPE" = "u8", "IS_FLOAT" = "0"];
    "histogram" "u32" "histogram.cu" ["TYPE" = "u32", "IS_FLOAT" = "0"];
    "histogram" "i32" "histogram.cu" ["TYPE" = "i32", "IS_FLOAT" = "0"];
    "histogram" "u64" "histogram.cu" ["TYPE" = "u64", "IS_FLOAT" = "0"];
    "histogram" "i64" "histogram.cu" ["TYPE" = "i64", "IS_FLOAT" = "0"];
    "histogram" "f32" "histogram.cu" ["TYPE" = "f32", "IS_FLOAT" = "1"];
    "histogram" "f64" "histogram.cu" ["TYPE" = "f64", "IS_FLOAT" = "1"];
    "top" "u32" "top.cu" ["KEY" = "u32"];
    "top" "u64" "top.cu" ["KEY" = "u64"];
};
