//! The measurements of `kiln-bench`: the raw driver and cudarc.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::ValueEnum;
use serde::Deserialize;

use super::Workload;
use super::table::{Row, Table};
use crate::console::Console;

#[derive(Deserialize)]
struct Measured {
    rows: Vec<Row>,
}

/// Adds the rows of `kiln-bench`, or a note why there are none.
pub(super) fn measure(workloads: &[Workload], repeats: u32, table: &mut Table, console: &mut Console) {
    match run(workloads, repeats) {
        Ok(rows) => rows.into_iter().for_each(|row| table.add(console, row)),
        Err(why) => table.note(console, &format!("the raw driver, cudarc and m6 are not measured: {why}")),
    }
}

fn run(workloads: &[Workload], repeats: u32) -> Result<Vec<Row>, String> {
    let program = beside()
        .ok_or("there is no kiln-bench in the folder of this program; build it with cargo build --release -p kiln-bench")?;
    let names = workloads.iter().filter_map(|workload| workload.to_possible_value());
    let output = Command::new(&program)
        .args(names.map(|name| name.get_name().to_owned()))
        .args(["--peers-only", "--device", "cuda", "--json", "-", "--repeats"])
        .arg(repeats.to_string())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let measured: Measured = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    Ok(measured.rows)
}

/// The program `kiln-bench` in the folder of this one.
fn beside() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.with_file_name("kiln-bench");
    program.is_file().then_some(program)
}
