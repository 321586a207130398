//! A file with a program.

use std::path::{Path, PathBuf};

use kiln_ir::Program;

use crate::failure::Failure;
use crate::text_file::read_text;

/// A program that was read from a file.
#[derive(Clone, Debug)]
pub(crate) struct ProgramFile {
    pub(crate) path: PathBuf,
    pub(crate) program: Program,
}

impl ProgramFile {
    /// Reads the file.
    ///
    /// # Errors
    /// The file is not text, or the text is not a program; with line and column.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let program = Program::parse(&read_text(path)?).map_err(|why| Failure::compile(path, why))?;
        Ok(Self { path: path.to_owned(), program })
    }

    /// The file name that findings give for lines of the program.
    pub(crate) fn name_in_findings(&self) -> String {
        format!("{}.kir", self.program.name)
    }
}
