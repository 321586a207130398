//! `kiln emit`: a program as PTX.

use std::path::PathBuf;

use clap::Args;
use kiln_ir::Target;

use crate::console::{Console, complain};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::program_file::ProgramFile;

/// The flags of `kiln emit`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The program (.kir).
    file: PathBuf,
    /// The architecture to emit for.
    #[arg(long, default_value = "sm_90", value_name = "sm_NN")]
    arch: String,
}

const EXAMPLES: &str = "Examples:
  kiln emit saxpy.kir > saxpy.ptx
  kiln emit saxpy.kir --arch sm_70

The text asks for the lowest version of PTX that does the job, so that old drivers take it too.";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Exit {
    match emit(arguments) {
        Ok(text) => {
            console.line(text.trim_end());
            Exit::Done
        }
        Err(failure) => {
            complain(format_args!("kiln emit: {}", failure.text));
            failure.exit
        }
    }
}

fn emit(arguments: &Arguments) -> Result<String, Failure> {
    let target = target(&arguments.arch)?;
    Ok(ProgramFile::read(&arguments.file)?.program.emit(target).text)
}

fn target(name: &str) -> Result<Target, Failure> {
    let known = name.strip_prefix("sm_").and_then(|number| number.parse().ok()).and_then(Target::new);
    known.ok_or_else(|| {
        let all: Vec<String> = Target::all().map(|target| format!("sm_{}", target.number())).collect();
        Failure::usage(format!("there is no architecture `{name}`; take one of {}", all.join(", ")))
    })
}
