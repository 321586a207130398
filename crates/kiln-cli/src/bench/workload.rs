//! The workloads, and how a command line names them: `m3`, or `m1..m7` for a range. Those of memory come before calls of libraries.

use std::ffi::OsStr;
use std::ops::RangeInclusive;

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, ValueEnum};

/// A workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub(crate) enum Workload {
    /// 64 KiB allocated and freed, warm.
    M1,
    /// Random sizes and lives: time.
    M2,
    /// M1 on several threads.
    M3,
    /// Random sizes and lives: space.
    M4,
    /// Nine tenths of a limit in use: refusals.
    M5,
    /// Kernels on several streams that allocate; measured by `kiln-bench` on a GPU.
    M6,
    /// Driver calls of a warm pair.
    M7,
    /// A product of matrices of f32.
    L1,
    /// A product of matrices of bf16.
    L2,
    /// A Fourier transform.
    L3,
    /// A sort.
    L4,
    /// A scan.
    L5,
    /// Random numbers.
    L6,
    /// A sparse matrix times a vector.
    L7,
    /// A factorisation.
    L8,
    /// Attention.
    L9,
}

impl Workload {
    /// Whether it is a call of a library.
    pub(super) fn is_library_call(self) -> bool {
        self >= Self::L1
    }

    /// How a command line names it.
    pub(super) fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Parses a workload, or a range of them.
#[derive(Clone)]
pub(super) struct RowParser;

impl TypedValueParser for RowParser {
    type Value = RangeInclusive<Workload>;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<RangeInclusive<Workload>, clap::Error> {
        let parse = |word: &OsStr| EnumValueParser::<Workload>::new().parse_ref(command, arg, word);
        let Some((first, last)) = value.to_str().and_then(|text| text.split_once("..")) else {
            return parse(value).map(|workload| workload..=workload);
        };
        let (first, last) = (parse(OsStr::new(first))?, parse(OsStr::new(last))?);
        if first > last {
            let text = "the first workload of a range comes before the last, as in `m1..m7`\n";
            return Err(clap::Error::raw(ErrorKind::InvalidValue, text).with_cmd(command));
        }
        Ok(first..=last)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = Workload::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        Some(Box::new(values))
    }
}
