//! `kiln scale`: how a program's collectives scale to many ranks.

mod curve;
mod curve_svg;
mod recorded_collectives;
mod trace_file;

use std::path::{Path, PathBuf};

use clap::Args;
use kiln::group::Topology;

use crate::console::Console;
use crate::exit_code::Exit;
use crate::failure::Failure;
use curve::Curve;

/// The most numbers of ranks that are asked for at once.
const MAX_POINTS: usize = 1000;

/// The flags of `kiln scale`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A recording as `kiln trace` makes it; or the collectives as text, as `CollectiveTrace` writes it, or as JSON.
    file: PathBuf,
    /// How devices and hosts are connected. The number of hosts follows from --ranks.
    #[arg(long, value_name = "TEXT", default_value = "8x nvlink(450GB/s) per host, 1 host over 8x 400Gb/s")]
    topology: Topology,
    /// The numbers of ranks, at most a host or a multiple of it.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [8, 16, 32, 64, 128, 256, 512, 1024])]
    ranks: Vec<u32>,
    /// As if no computing waited for a collective before it.
    #[arg(long)]
    overlap: bool,
    /// Draw the efficiency as a picture.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "Examples:
  kiln scale train.collectives
  kiln scale train.collectives --ranks 8,64,512 \\
      --topology '8x nvlink(450GB/s, 1us) per host, 1 host over 8x 400Gb/s, 5us'
  kiln scale train.kiln --ranks 8,64,512
  kiln scale train.collectives --svg scaling.svg --json

A line of the file is a collective, its bytes (of the larger buffer), how often it comes and how \
     long a rank computes before each:

  all_reduce bytes=100MB count=12 compute=4ms

In JSON: [{\"kind\": \"all_reduce\", \"bytes\": 100000000, \"count\": 12, \"compute_ns\": \
     4000000}]. A program records it with CollectiveTrace.

Of a recording (a file that ends with .kiln) the collectives of its lowest rank are taken, and as \
     computing what its device ran between the beginnings of two of them. A collective overlaps if \
     the device ran other work meanwhile.

Buffers keep their size and ranks their computing on every number of ranks, as in data-parallel \
     training. Computing waits for the collective before it, unless that has the word `overlap` at \
     its end (in JSON \"overlap\": true), as gradients that are summed while others are computed; \
     collectives come one after the other. Exposed is communication while nothing is computed. \
     Efficiency is the share of computing. All times are estimates: latency times steps and bytes by \
     bandwidth, with the best of ring, tree and hierarchical.

Exit codes: 0 done, 2 wrong usage or file, 3 a number of ranks that the topology does not have.";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    if arguments.ranks.len() > MAX_POINTS {
        return Err(Failure::usage(format!("--ranks has more than {MAX_POINTS} numbers")));
    }
    let is_input = |path: &PathBuf| {
        let whole = |path: &Path| path.canonicalize().ok();
        whole(path).is_some() && whole(path) == whole(&arguments.file)
    };
    if let Some(path) = arguments.svg.as_ref().filter(|path| is_input(path)) {
        let what = format!("--svg would overwrite {}, which is read", path.display());
        return Err(Failure::usage(what).next("give another file"));
    }
    let trace = match is_recording(&arguments.file) {
        true => recorded_collectives::read(&arguments.file)?,
        false => trace_file::read(&arguments.file)?,
    };
    let trace = if arguments.overlap { trace.overlapped() } else { trace };
    let curve = Curve::of(&trace, arguments.topology, &arguments.ranks)?;
    if let Some(path) = &arguments.svg {
        std::fs::write(path, curve_svg::draw(&curve)).map_err(|error| Failure::file(path, error))?;
    }
    match arguments.json {
        true => console.json(&curve)?,
        false => console.line(curve.render(console.columns())),
    }
    Ok(Exit::Done)
}

/// Whether a file is a recording, by its name.
fn is_recording(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "kiln")
}
