//! Damaged PTX: whatever happens to a text, reading it ends with a module or an error that points into it.

use kiln_ptx::{PtxFunctionId, PtxModule};
use proptest::prelude::*;

const TEXTS: [&str; 6] = [
    include_str!("../data/grammar.ptx"),
    include_str!("../data/pointers.ptx"),
    include_str!("../data/host_calls.ptx"),
    include_str!("../data/assembly.ptx"),
    include_str!("../data/hopper.ptx"),
    include_str!("../data/pointers-debug.ptx"),
];

/// Reads a text; what was PTX must survive printing and analysis.
fn examine(text: &str) -> Result<(), TestCaseError> {
    match PtxModule::parse(text) {
        Ok(module) => {
            let printed = module.to_string();
            let again = PtxModule::parse(&printed);
            prop_assert!(again.as_ref() == Ok(&module), "{again:?} after\n{printed}");
            for id in 0..module.functions().len() as u32 {
                let _ = module.facts(PtxFunctionId(id));
            }
        }
        Err(error) => {
            let position = error.position();
            prop_assert!(position.line as usize <= text.split('\n').count(), "{error}");
            let line = text.split('\n').nth(position.line as usize - 1).unwrap_or("");
            prop_assert!(position.column as usize <= line.len() + 1, "{error} in {line:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn truncated(which in 0..TEXTS.len(), at in any::<prop::sample::Index>()) {
        let text = TEXTS[which];
        examine(&text[..at.index(text.len())])?;
    }

    #[test]
    fn bytes_replaced(which in 0..TEXTS.len(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = TEXTS[which].as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        examine(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn lines_moved(which in 0..TEXTS.len(), moves in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>()), 1..4)) {
        let mut lines: Vec<&str> = TEXTS[which].lines().collect();
        for (from, to, keep) in moves {
            let from = from.index(lines.len());
            let line = if keep { lines[from] } else { lines.remove(from) };
            let to = to.index(lines.len());
            lines.insert(to, line);
        }
        examine(&lines.join("\n"))?;
    }

    #[test]
    fn tokens_swapped(which in 0..TEXTS.len(), swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4)) {
        let mut words: Vec<&str> = TEXTS[which].split_inclusive([' ', '\n', ',', ';', '[', ']', '{', '}']).collect();
        for (a, b) in swaps {
            let (a, b) = (a.index(words.len()), b.index(words.len()));
            words.swap(a, b);
        }
        examine(&words.concat())?;
    }

    #[test]
    fn anything_at_all(text in "\\PC{0,200}") {
        examine(&text)?;
        examine(&format!(".version 9.0\n.target sm_90\n.address_size 64\n{text}"))?;
        examine(&format!(".version 9.0\n.target sm_90\n.entry k() {{ .reg .b32 %r<4>;\n{text}\n}}"))?;
    }
}

/// A row of an initializer that begins in the middle of a row would end behind the variable.
#[test]
fn an_initializer_ends_with_its_variable() {
    let text = |values: &str| {
        format!(
            ".version 8.4\n.target sm_90\n.address_size 64\n.const .align 16 .v4 .f32 unit[2] = {values};\n"
        )
    };
    for values in ["{1.0, {2.0, 3.0, 4.0}, {5.0, 6.0, 7.0}}", "{{1.0, 2.0}, {3.0, 4.0, 5.0, 6.0}}"] {
        let module = PtxModule::parse(&text(values)).unwrap();
        assert_eq!(PtxModule::parse(&module.to_string()).as_ref(), Ok(&module), "{values}");
    }
    for values in ["{1.0, {2.0, 3.0, 4.0}, {5.0, 6.0, 7.0, 8.0}}", "{{1.0}, {2.0}, {3.0}}"] {
        let error = PtxModule::parse(&text(values)).unwrap_err();
        assert!(error.to_string().contains("no more elements"), "{error}");
    }
}

/// Registers of a header are named by their places, which a declaration and a definition have in common.
#[test]
fn a_function_has_the_same_registers_wherever_it_is_declared() {
    let text = |declared: &str, defined: &str| {
        format!(
            ".version 8.4\n.target sm_90\n.address_size 64\n.func {declared};\n.func {defined} {{ ret; }}\n.func {declared};\n"
        )
    };
    let same = [
        ("(.reg .u32 %out) f(.reg .u32 %in)", "(.reg .u32 %to) f(.reg .u32 %from)"),
        ("(.param .u32 out) f(.reg .u32 %in)", "(.param .u32 out) f(.reg .u32 %in)"),
    ];
    for (declared, defined) in same {
        examine(&text(declared, defined)).unwrap();
        assert!(PtxModule::parse(&text(declared, defined)).is_ok());
    }
    let other = [
        ("(.param .u32 out) f(.reg .u32 %in)", "(.reg .u32 %out) f(.reg .u32 %in)"),
        ("(.reg .u32 %out) f(.reg .u32 %in)", "(.param .u32 out) f(.reg .u32 %in)"),
        ("f(.reg .u32 %a, .reg .u32 %b)", "f(.reg .u32 %a)"),
        ("f(.reg .u32 %a)", "(.reg .u32 %a) f()"),
    ];
    for (declared, defined) in other {
        let error = PtxModule::parse(&text(declared, defined)).unwrap_err();
        assert!(error.to_string().contains("other registers"), "{error}");
    }
}
