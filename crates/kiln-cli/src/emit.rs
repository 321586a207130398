//! `kiln emit`: a program as PTX.

use std::path::PathBuf;

use clap::Args;
use kiln_ir::PtxTarget;

use crate::console::Console;
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

The PTX has the lowest version that the program needs, so that old drivers
accept it.

Exit codes: 0 done, 2 wrong usage or input file, 4 the program has errors.";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let target = target(&arguments.arch)?;
    let emitted = ProgramFile::read(&arguments.file)?.program.emit(target);
    console.verbatim(emitted.text.trim_end());
    Ok(Exit::Done)
}

fn target(name: &str) -> Result<PtxTarget, Failure> {
    let known = name.strip_prefix("sm_").and_then(|number| number.parse().ok()).and_then(PtxTarget::new);
    known.ok_or_else(|| {
        let all: Vec<String> = PtxTarget::all().map(|target| format!("sm_{}", target.number())).collect();
        Failure::usage(format!("`{name}` is not an architecture"))
            .next(format!("use one of {}", all.join(", ")))
    })
}
