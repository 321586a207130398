//! Source lines: `.file` and `.loc`.

use crate::name::Name;

/// `.file 1 "kernel.cu"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The number `.loc` uses.
    pub number: u32,
    /// Path as the compiler saw it.
    pub path: Name,
    /// Modification time and size, when written.
    pub stamp: Option<(u64, u64)>,
}

/// A place in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourcePlace {
    /// Number of the file, see [`Module::source_path`](crate::PtxModule::source_path).
    pub file: u32,
    /// Line, from 1; 0 where the compiler names none.
    pub line: u32,
    /// Column; 0 where the compiler names none.
    pub column: u32,
}

/// `.loc`: the source of the instructions that follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The place itself.
    pub place: SourcePlace,
    /// For code inlined from another function: which, and the place of the call.
    pub inlined: Option<Inlined>,
}

/// `function_name LABEL+offset, inlined_at FILE LINE COLUMN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// Label of the function's name in the debug strings.
    pub function: Name,
    /// Bytes behind the label.
    pub function_offset: u64,
    /// The place the code was inlined at.
    pub at: SourcePlace,
}
