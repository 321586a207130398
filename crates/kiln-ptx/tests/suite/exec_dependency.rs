//! `griddepcontrol` on its own: where it exists, and which words it takes. What it orders is tested where there are streams.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecProgram, LaunchShape, Options, SimpleMemory};

/// What is found in a kernel of one warp with this body, or why it is not read.
fn found(header: &str, body: &str) -> Result<Vec<String>, String> {
    let text = format!("{header}\n.address_size 64\n.visible .entry k()\n{{\n{body}\nret;\n}}\n");
    let program = ExecProgram::new(PtxModule::parse(&text).map_err(|error| error.to_string())?);
    let (memory, shape) = (SimpleMemory::new(), LaunchShape::linear(2, 32));
    let options = Options { checks: Checks::ALL, ..Options::default() };
    let outcome = program.entry("k").unwrap().launch(&shape, &[], &[], &memory, &options).unwrap();
    Ok(outcome.findings.iter().map(ToString::to_string).collect())
}

#[test]
fn both_forms_run_from_sm_90_on_and_are_refused_below() {
    let body = "griddepcontrol.wait;\ngriddepcontrol.launch_dependents;";
    assert_eq!(found(".version 7.8\n.target sm_90", body), Ok(Vec::new()));
    assert_eq!(found(".version 9.0\n.target sm_120", body), Ok(Vec::new()));
    for header in [".version 8.0\n.target sm_80", ".version 8.0\n.target sm_89"] {
        let text = found(header, body).unwrap().join("\n");
        assert!(text.contains("requires PTX 7.8 and sm_90 or newer") && text.contains("line 6"), "{text}");
    }
}

#[test]
fn other_words_are_told() {
    for (body, words) in [
        ("griddepcontrol;", "`.wait` or `.launch_dependents`"),
        ("griddepcontrol.launch;", "`.wait` or `.launch_dependents`"),
        ("griddepcontrol.wait.sync;", "has `.sync`, which it does not take"),
        ("griddepcontrol.wait 1;", "takes 0 operands, not 1"),
    ] {
        let text = found(".version 8.0\n.target sm_90", body).unwrap_err();
        assert!(text.contains(words), "{body}: {text}");
    }
}
