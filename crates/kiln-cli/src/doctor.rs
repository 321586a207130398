//! `kiln doctor`: what this machine has, and what to do about what it lacks.

mod check;
mod examination;
mod isolation;
mod text;

use clap::Args;
use kiln::Policy;

use crate::console::{Console, complain};
use crate::exit::Exit;

use examination::Examination;

/// The flags of `kiln doctor`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// What has to be there; by default what KILN_POLICY says, or else `auto`.
    #[arg(long, value_name = "off|auto|required|simulate")]
    policy: Option<Policy>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Exit {
    let policy = match arguments.policy.map_or_else(kiln::probe::policy, Ok) {
        Ok(policy) => policy,
        Err(error) => {
            complain(format_args!("kiln doctor: {error}"));
            return Exit::from(&error);
        }
    };
    let examination = Examination::of_this_machine(policy);
    if arguments.json {
        match serde_json::to_string_pretty(&examination) {
            Ok(json) => console.line(json),
            Err(error) => {
                complain(format_args!("kiln doctor: {error}"));
                return Exit::Fault;
            }
        }
    } else {
        console.line(text::render(&examination, console.colours()));
    }
    examination.exit()
}
