//! `kiln emit`: a program as PTX.

use std::path::{Path, PathBuf};

use clap::Args;
use kiln_ir::PtxTarget;

use crate::console::Console;
use crate::exit_code::Exit;
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

The PTX has the lowest version that the program needs, so that old drivers accept it.

Exit codes: 0 done, 2 wrong usage or file, 4 the program has errors.";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let target = target(&arguments.arch)?;
    check_extension(&arguments.file)?;
    let emitted = ProgramFile::read(&arguments.file)?.program.emit(target);
    console.verbatim(emitted.text.trim_end());
    Ok(Exit::Done)
}

/// Refuses a file whose name says that it holds no program.
fn check_extension(path: &Path) -> Result<(), Failure> {
    let (why, next) = match path.extension().and_then(|end| end.to_str()) {
        Some("cu") => {
            ("it is CUDA C, and `kiln emit` takes a program (.kir)", "`kiln inspect` lists its kernels")
        }
        Some("ptx") => ("it is PTX already, and `kiln emit` takes a program (.kir)", "use it as it is"),
        _ => return Ok(()),
    };
    Err(Failure::file(path, why).next(next))
}

fn target(name: &str) -> Result<PtxTarget, Failure> {
    let known = name.strip_prefix("sm_").and_then(|number| number.parse().ok()).and_then(PtxTarget::new);
    known.ok_or_else(|| {
        let all: Vec<String> = PtxTarget::all().map(|target| format!("sm_{}", target.number())).collect();
        Failure::usage(format!("architecture `{name}` is not supported"))
            .next(format!("use one of {}", all.join(", ")))
    })
}
