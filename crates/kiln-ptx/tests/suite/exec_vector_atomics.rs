//! Atomics on vectors: each element is updated apart, and the vector is aligned as a whole.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory};

const HOPPER: &str = ".version 8.1\n.target sm_90";

/// Runs `body` in so many threads, with 64 bytes of global memory behind `%data` that hold `content` and 32 bytes of shared memory behind `%cell`. Gives the data.
fn run(header: &str, threads: u32, content: &[u8], body: &str) -> (Vec<u8>, ExecOutcome) {
    let text = format!(
        "{header}\n.address_size 64\n.visible .entry k(.param .u64 data)\n{{\n.reg .b64 %data, %cell, %l<4>;\n.reg .b32 %r<16>, %t;\n.reg .f32 %f<8>;\n.reg .b16 %h<16>;\n.shared .align 16 .b8 cell[32];\n\
         ld.param.u64 %data, [data];\nmov.u64 %cell, cell;\ncvta.shared.u64 %cell, %cell;\nmov.u32 %t, %tid.x;\n{body}\nret;\n}}\n"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    let mut memory = SimpleMemory::new();
    let data = memory.allocate_uninitialised(64);
    assert!(memory.write(data, content));
    let options = Options { checks: Checks::ALL, ..Options::default() };
    let shape = LaunchShape::linear(1, threads);
    let entry = program.entry("k").unwrap();
    let outcome = entry.launch(&shape, &data.to_le_bytes(), &[], &memory, &options).unwrap();
    (memory.read(data, 64).unwrap(), outcome)
}

fn clean(threads: u32, content: &[u8], body: &str) -> Vec<u8> {
    let (data, outcome) = run(HOPPER, threads, content, body);
    assert!(outcome.is_clean(), "{body}: {:?}", outcome.findings);
    data
}

fn told(content: &[u8], body: &str, words: &str) {
    let (_, outcome) = run(HOPPER, 1, content, body);
    let found: Vec<String> = outcome.findings.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|text| text.contains(words)), "{body}: `{words}` is not in {found:?}");
}

fn singles(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn halves(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

const LOAD: &str = "mov.f32 %f0, 1.0;\nmov.f32 %f1, 2.0;\nmov.f32 %f2, 3.0;\nmov.f32 %f3, 4.0;\n";

#[test]
fn every_element_of_singles_is_added() {
    let start =
        singles(&[10.0, 20.0, 30.0, 40.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let data = clean(64, &start, &format!("{LOAD}red.global.add.v4.f32 [%data], {{%f0, %f1, %f2, %f3}};"));
    assert_eq!(data[..20], singles(&[74.0, 148.0, 222.0, 296.0, 0.5]));
    let data =
        clean(32, &start, &format!("{LOAD}red.relaxed.gpu.global.v2.f32.add [%data+8], {{%f0, %f1}};"));
    assert_eq!(data[..20], singles(&[10.0, 20.0, 62.0, 104.0, 0.5]));
    // The old values, and sources that are results of earlier elements.
    let old =
        "atom.global.add.v2.f32 {%f1, %f0}, [%data], {%f0, %f1};\nst.global.v2.f32 [%data+16], {%f1, %f0};";
    let data = clean(1, &start, &format!("{LOAD}{old}"));
    assert_eq!(data[..24], singles(&[11.0, 22.0, 30.0, 40.0, 10.0, 20.0]));
    let dropped =
        "atom.add.v4.f32 {_, _, %f5, _}, [%data], {%f0, %f1, %f2, %f3};\nst.global.f32 [%data+16], %f5;";
    assert_eq!(clean(1, &start, &format!("{LOAD}{dropped}"))[..20], singles(&[11.0, 22.0, 33.0, 44.0, 30.0]));
}

#[test]
fn halves_are_added_and_compared() {
    // 1, 2, -3, NaN, 0, 0.5, 65504, 4 in f16.
    let start = halves(&[0x3c00, 0x4000, 0xc200, 0x7e00, 0, 0x3800, 0x7bff, 0x4400]);
    let start: Vec<u8> = start.into_iter().chain([0; 48]).collect();
    // 2, 2, 2, 2, -1, 0.5, 65504, NaN.
    let load: String = [0x4000, 0x4000, 0x4000, 0x4000, 0xbc00, 0x3800, 0x7bff, 0x7e00]
        .iter()
        .enumerate()
        .map(|(at, bits)| format!("mov.b16 %h{at}, {bits};\n"))
        .collect();
    let all = "{%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7}";
    let result = |op: &str| {
        clean(1, &start, &format!("{load}red.global.{op}.noftz.v8.f16 [%data], {all};"))[..16].to_vec()
    };
    assert_eq!(result("add"), halves(&[0x4200, 0x4400, 0xbc00, 0x7fff, 0xbc00, 0x3c00, 0x7c00, 0x7fff]));
    assert_eq!(result("min"), halves(&[0x3c00, 0x4000, 0xc200, 0x4000, 0xbc00, 0x3800, 0x7bff, 0x4400]));
    assert_eq!(result("max"), halves(&[0x4000, 0x4000, 0x4000, 0x4000, 0, 0x3800, 0x7bff, 0x4400]));
    // Pairs in words, of bf16: (1, 2) + (0.5, -2).
    let start: Vec<u8> = halves(&[0x3f80, 0x4000, 0x3f80, 0x4000]).into_iter().chain([0; 56]).collect();
    let load = "mov.b32 %r0, 0xc0003f00;\nmov.b32 %r1, 0xc0004080;\n";
    let result = |op: &str| {
        let code = format!(
            "{load}atom.global.{op}.noftz.v2.bf16x2 {{%r2, %r3}}, [%data], {{%r0, %r1}};\nst.global.v2.u32 [%data+8], {{%r2, %r3}};"
        );
        clean(1, &start, &code)[..16].to_vec()
    };
    assert_eq!(result("add"), halves(&[0x3fc0, 0, 0x40a0, 0, 0x3f80, 0x4000, 0x3f80, 0x4000]));
    assert_eq!(result("max"), halves(&[0x3f80, 0x4000, 0x4080, 0x4000, 0x3f80, 0x4000, 0x3f80, 0x4000]));
}

#[test]
fn bounds_alignment_and_contents_are_checked() {
    let content = [0; 64];
    let add = |at: &str| format!("{LOAD}red.global.add.v4.f32 [{at}], {{%f0, %f1, %f2, %f3}};");
    told(&content, &add("%data+8"), "no multiple of 16");
    told(&content, &add("%data+64"), "out of bounds");
    told(&content[..8], &add("%data"), "never written");
    told(
        &content,
        &add("%cell").replace(".global", ""),
        "shared memory, which atomics on vectors do not reach",
    );
    told(&content, &add("%data").replace(".global", ".shared"), "with these operands");
    let race = format!("{}\nst.global.f32 [%data+4], %f0;", add("%data"));
    let (_, outcome) = run(HOPPER, 64, &content, &race);
    assert!(outcome.findings.iter().any(|finding| finding.to_string().contains("race")));
}

#[test]
fn forms_that_there_are_not_are_refused() {
    let content = [0; 64];
    for wrong in [
        "red.global.min.v2.f32 [%data], {%f0, %f1};",
        "red.global.add.v8.f32 [%data], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7};",
        "red.global.add.v2.f16 [%data], {%h0, %h1};",
        "red.global.add.noftz.v8.f16x2 [%data], {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7};",
        "red.global.add.v2.u32 [%data], {%r0, %r1};",
        "red.global.add.v4.f32 [%data], {%f0, %f1};",
    ] {
        told(&content, wrong, "with these operands");
    }
    let (_, outcome) =
        run(".version 8.0\n.target sm_90", 1, &content, "red.global.add.v2.f32 [%data], {%f0, %f1};");
    assert!(outcome.findings[0].to_string().contains("requires PTX 8.1 and sm_90"), "{:?}", outcome.findings);
}
