//! A file with a program.

use std::path::{Path, PathBuf};

use kiln_ir::Program;

use crate::exit::Exit;
use crate::failure::Failure;

/// A program as it was read.
#[derive(Clone, Debug)]
pub(crate) struct ProgramFile {
    pub(crate) path: PathBuf,
    pub(crate) program: Program,
}

impl ProgramFile {
    /// Reads the file.
    ///
    /// # Errors
    /// A file that is no text; a text that is no program, with its line and column.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = std::fs::read(path).map_err(|error| Failure::file(path, error))?;
        let text = String::from_utf8(bytes).map_err(|_| Failure::file(path, "it is no UTF-8 text"))?;
        let program = Program::parse(&text)
            .map_err(|why| Failure { exit: Exit::Compile, text: format!("{}: {why}", path.display()) })?;
        Ok(Self { path: path.to_owned(), program })
    }

    /// What the lines of its statements are said to be in where it is run.
    pub(crate) fn name_in_findings(&self) -> String {
        format!("{}.kir", self.program.name)
    }
}
