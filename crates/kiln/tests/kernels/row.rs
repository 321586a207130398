//! What is said of a case in the table of results.

use std::fmt::Write;

use kiln_kernels::{Case, CaseArguments, Compare};

use crate::stage::{Form, Kind};

/// One case that was judged and found right.
pub(crate) struct Row {
    name: &'static str,
    file: &'static str,
    form: Option<Form>,
    judged: String,
    /// Whether device and simulator gave the same bits wherever both must be close.
    same_bits: Option<bool>,
}

impl Row {
    pub(crate) fn new(case: &Case) -> Self {
        let judged = words(&case.arguments(1));
        Self { name: case.name, file: case.source.file, form: None, judged, same_bits: None }
    }

    /// A case that ran in a separate process.
    pub(crate) fn alone(case: &Case) -> Self {
        let judged = match case.ending {
            kiln_kernels::Ending::Done => "printed text".to_owned(),
            kiln_kernels::Ending::Fault(code) => format!("ends with error {code}"),
        };
        Self { judged, ..Self::new(case) }
    }

    /// Takes over one comparison.
    pub(crate) fn add(&mut self, form: Form, simulated: &CaseArguments, actual: &CaseArguments) {
        self.form = Some(form);
        let mut same = true;
        for (one, other) in simulated.buffers().zip(actual.buffers()) {
            let counts = !matches!(one.compare, Compare::Ignore | Compare::Sorted);
            same &= !counts || one.data.to_bytes() == other.data.to_bytes();
        }
        self.same_bits = Some(self.same_bits.unwrap_or(true) && same);
    }
}

/// How the buffers of a case are judged.
fn words(arguments: &CaseArguments) -> String {
    let mut all: Vec<String> = Vec::new();
    for buffer in arguments.buffers() {
        let word = match buffer.compare {
            Compare::Exact => "bit for bit".to_owned(),
            Compare::Ulps(limit) => format!("{limit} ulp"),
            Compare::Close { relative, absolute } => format!("{relative:e} relative or {absolute:e}"),
            Compare::Sorted => "bit for bit, in any order".to_owned(),
            Compare::Ignore => continue,
        };
        if !all.contains(&word) {
            all.push(word);
        }
    }
    all.join("; ")
}

/// Writes the table to the folder `OUT` names, if it names one.
pub(crate) fn write(kind: Kind, rows: &[Row], wrong: &[String]) {
    let Some(folder) = std::env::var_os("OUT").filter(|folder| !folder.is_empty()) else { return };
    let mut text = String::from(
        "| kernel | source | from | judged | same bits as the simulator |\n|---|---|---|---|---|\n",
    );
    for row in rows {
        let from = match row.form {
            Some(Form::CudaC) => "CUDA C",
            Some(Form::Ptx) => "PTX",
            None => "own process",
        };
        let same = match row.same_bits {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        let _ = writeln!(text, "| {} | {} | {from} | {} | {same} |", row.name, row.file, row.judged);
    }
    let _ = writeln!(text, "\n{} kernels agree, {} do not.", rows.len(), wrong.len());
    for each in wrong {
        let _ = writeln!(text, "\n- {each}");
    }
    let path = std::path::Path::new(&folder).join(format!("kernels-{}.md", kind.name()));
    std::fs::write(path, text).unwrap();
}
