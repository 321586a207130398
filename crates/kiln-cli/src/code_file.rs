//! A file with code to run: kernels or a program.

use crate::failure::Failure;
use crate::program_file::ProgramFile;
use crate::source_file::{SourceFile, SourceFlags};

/// What a file holds, told by the extension of its name.
#[derive(Clone, Debug)]
pub(crate) enum CodeFile {
    /// CUDA C or PTX.
    Kernels(SourceFile),
    /// A program.
    Program(ProgramFile),
}

impl CodeFile {
    /// Reads the file.
    pub(crate) fn read(flags: &SourceFlags) -> Result<Self, Failure> {
        match flags.file.extension().and_then(|end| end.to_str()) {
            Some("kir") => match &flags.arch {
                None => ProgramFile::read(&flags.file).map(Self::Program),
                Some(architecture) => {
                    let message = format!("--arch {architecture} is for CUDA C, and the file is a program");
                    Err(Failure::usage(message)
                        .next("leave it out; `kiln emit` writes PTX for an architecture"))
                }
            },
            _ => SourceFile::read(flags).map(Self::Kernels),
        }
    }
}
