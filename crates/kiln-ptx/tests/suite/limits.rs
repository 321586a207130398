//! Hostile texts end in an error or a module, soon, whatever they contain.

use kiln_ptx::PtxModule;

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

fn is_limit(text: &str) -> bool {
    PtxModule::parse(text).is_err_and(|e| e.is_limit())
}

#[test]
fn nesting_is_limited_everywhere() {
    let deep = 100_000;
    assert!(is_limit(&format!("{HEAD}.entry k() {{ {}", "{".repeat(deep))));
    assert!(is_limit(&format!("{HEAD}.global .u32 x = {}1;", "(".repeat(deep))));
    assert!(is_limit(&format!("{HEAD}.global .u32 x = {}1;", "-".repeat(deep))));
    assert!(is_limit(&format!("{HEAD}.global .u32 x = {}1;", "1?".repeat(deep))));
    assert!(is_limit(&format!("{HEAD}.entry k() {{ mov.u32 {}", "{".repeat(deep))));
    assert!(is_limit(&format!("{HEAD}.entry k() {{ ld.u32 {}", "[".repeat(deep))));
    assert!(is_limit(&format!("{HEAD}.global .u32 x{};", "[1]".repeat(deep))));
    assert!(PtxModule::parse(&format!("{HEAD}.global .u32 x[1] = {};", "{".repeat(deep))).is_err());
}

#[test]
fn small_texts_cannot_ask_for_large_memory() {
    assert!(is_limit(&format!("{HEAD}.entry k() {{ .reg .b32 %r<4294967295>; }}")));
    assert!(is_limit(&format!("{HEAD}.global .b64 x[9223372036854775807];")));
    assert!(is_limit(&format!("{HEAD}.global .b64 x[4294967296][4294967296];")));
    assert!(is_limit(&format!("{HEAD}.global .b8 x[2][1000000000] = {{{{1}},{{2}}}};")));
    // A large variable and many registers cost nothing until they are allocated.
    let large = format!("{HEAD}.global .b8 x[1000000000000]; .entry k() {{ .reg .b32 %r<16000000>; ret; }}");
    let module = PtxModule::parse(&large).unwrap();
    assert_eq!(module.variables()[0].shape.size_bytes(), 1_000_000_000_000);
    assert_eq!(module.entry("k").unwrap().registers.count(), 16_000_000);
    assert!(module.facts(module.find_function("k").unwrap()).is_some());
}

/// A block of 300,000 instructions that assign and read one register; the time that is quadratic in them would be hours.
#[test]
fn long_code_without_branches_is_read_in_linear_time() {
    for lines in ["mov.u32 a, 1;\n", "add.u32 a, a, 1;\n", "@p mov.u32 a, 1;\n"] {
        let body = lines.repeat(300_000);
        let text =
            format!("{HEAD}.visible .entry k() {{ .reg .u32 a; .reg .pred p;\nmov.pred p, 1;\n{body}ret; }}");
        let module = PtxModule::parse(&text).unwrap();
        let facts = module.facts(module.find_function("k").unwrap());
        assert!(facts.is_some(), "{lines}");
    }
}

#[test]
fn many_names_labels_and_forms_stay_cheap() {
    let mut body = String::new();
    for i in 0..50_000 {
        body.push_str(&format!("L{i}: {{ .reg .b32 a{i}; made_up_{i}.u32 a{i}, {i}; bra M; M: }}\n"));
    }
    // A version that may have instructions of any name.
    let head = HEAD.replace(".version 9.0", ".version 9.9");
    let module = PtxModule::parse(&format!("{head}.entry k() {{\n{body}bra L49999;\n}}")).unwrap();
    let kernel = module.entry("k").unwrap();
    assert_eq!(module.forms().len(), 50_001);
    assert_eq!(kernel.registers.count(), 50_000);
    assert_eq!(kernel.body.as_ref().unwrap().labels().len(), 100_000);
    assert_eq!(PtxModule::parse(&module.to_string()).unwrap(), module);
}

#[test]
fn long_chains_of_copies_are_analysed_in_any_order() {
    // Each register is copied from the next one, so that every pass over the text moves the pointer by one step only.
    let count = 20_000;
    let copies: String = (1..count).map(|i| format!("mov.u64 %rd{i}, %rd{};\n", i + 1)).collect();
    let text = format!(
        "{HEAD}.entry k(.param .u64 p) {{ .reg .b64 %rd<{}>;\nst.global.u8 [%rd1], 1;\n{copies}ld.param.u64 %rd{count}, [p];\n}}",
        count + 1
    );
    let module = PtxModule::parse(&text).unwrap();
    let effects = module.effects(module.find_function("k").unwrap()).unwrap();
    assert_eq!(effects.pointers[0].effect.access(), kiln_ptx::PointerAccess::Writes);
}

#[test]
fn an_analysis_that_would_take_too_long_gives_up_honestly() {
    // The same chain through local memory, which the analysis follows one round per step.
    let count = 5_000;
    let mut body = String::new();
    for i in 1..count {
        body.push_str(&format!(
            "ld.local.u64 %rd{i}, [m+{}];\nst.local.u64 [m+{}], %rd{i};\n",
            i * 8 + 8,
            i * 8
        ));
    }
    let text = format!(
        "{HEAD}.entry k(.param .u64 p) {{ .reg .b64 %rd<{}>; .local .align 8 .b8 m[{}];\nst.global.u8 [%rd1], 1;\n{body}\
         ld.param.u64 %rd{count}, [p];\nst.local.u64 [m+{}], %rd{count};\n}}",
        count + 1,
        count * 8 + 8,
        count * 8
    );
    let module = PtxModule::parse(&text).unwrap();
    let effects = module.effects(module.find_function("k").unwrap()).unwrap();
    assert!(effects.pointers[0].effect.writes.is_possible());
}
