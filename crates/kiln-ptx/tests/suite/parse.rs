//! What a parsed module says, against a module written by hand.

use kiln_ptx::{
    Address, AddressBase, Axis, Callee, Formal, Immediate, Indirect, Linkage, Opcode, PtxFunction, PtxModule,
    PtxOperand, RelocationTarget, ScalarType, Space, SpecialName, SpecialRegister,
};

fn grammar() -> PtxModule {
    load("grammar")
}

fn load(file: &str) -> PtxModule {
    let path = format!("{}/tests/data/{file}.ptx", env!("CARGO_MANIFEST_DIR"));
    PtxModule::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The operands of the `nth` instruction of `entry` whose form is spelled `form`.
fn operands<'m>(module: &'m PtxModule, entry: &'m PtxFunction, form: &str, nth: usize) -> &'m [PtxOperand] {
    let body = entry.body.as_ref().unwrap();
    let mut found = body.instructions().iter().filter(|i| module.form(i.form).unwrap().text() == form);
    body.operands(found.nth(nth).unwrap_or_else(|| panic!("no {form}")))
}

/// The names of registers as the text spells them.
fn name(entry: &PtxFunction, operand: &PtxOperand) -> String {
    match operand {
        PtxOperand::Register(id) | PtxOperand::Not(id) => entry.registers.name(*id).unwrap(),
        other => panic!("{other:?} is no register"),
    }
}

#[test]
fn preamble_files_and_sections() {
    let module = grammar();
    assert_eq!((module.version.major, module.version.minor), (8, 4));
    assert_eq!((&*module.target.architecture, module.target.sm()), ("sm_90a", Some(90)));
    assert_eq!(module.target.options.iter().map(|o| &**o).collect::<Vec<_>>(), ["debug"]);
    assert_eq!(module.address_bits, 64);
    assert_eq!(module.files[0].stamp, Some((1_700_000_000, 4096)));
    assert_eq!(module.source_path(1), Some("grammar.cu"));
    assert_eq!(&*module.sections[0].name, ".debug_str");
    assert!(module.sections[0].content.contains("116,119,105,99,101,0"));
}

#[test]
fn variables_with_initializers() {
    let module = grammar();
    let variable = |name: &str| module.variables().iter().find(|v| &*v.name == name).unwrap();

    let unit = variable("unit");
    assert_eq!((unit.space, unit.linkage), (Space::Const, Some(Linkage::Visible)));
    assert_eq!((unit.shape.size_bytes(), unit.shape.align_bytes(), unit.shape.vector), (32, 16, 4));
    let floats: Vec<f32> = unit.initializer.as_ref().unwrap().bytes.chunks(4).map(read_f32).collect();
    assert_eq!(floats, [1.0, 2.0, 3.0, -4.5, 0.5, 0.0, 0.0, 0.0]);

    let shorts = variable("shorts");
    assert_eq!(shorts.shape.dimensions, [5], "the length comes from the initializer");
    let bytes = &shorts.initializer.as_ref().unwrap().bytes;
    let values: Vec<i16> = bytes.chunks(2).map(|b| i16::from_le_bytes([b[0], b[1]])).collect();
    assert_eq!(values, [-1, 0x7fff, 0o77, 0b1010, 5]);

    let names = &variable("names").initializer.as_ref().unwrap().relocations;
    assert_eq!(
        names.iter().map(|r| (r.offset, r.mask, r.generic)).collect::<Vec<_>>(),
        [(0, Some(0xff), false), (1, Some(0xff00), false), (2, Some(0xff_0000), true)]
    );
    assert_eq!(names[1].value(0x1234_5678), 0x56);
    assert_eq!(names[2].value(0x1234_5678), 0x34, "four is added before the bits are taken");

    let pointers = variable("pointers").initializer.as_ref().unwrap();
    assert_eq!(pointers.bytes.len(), 32);
    assert_eq!(
        pointers.relocations.iter().map(|r| (r.offset, r.addend)).collect::<Vec<_>>(),
        [(0, 0), (8, 4), (16, 0)]
    );
    assert!(pointers.relocations.iter().all(|r| matches!(r.target, RelocationTarget::Variable(_))));

    let number = |name: &str| {
        let bytes = &variable(name).initializer.as_ref().unwrap().bytes;
        i64::from_le_bytes(bytes[..].try_into().unwrap())
    };
    assert_eq!(number("sizes"), ((4 + 3) * 2 - 1) << 3 | 0x10);
    assert_eq!(number("choice"), -16);
    assert_eq!(&*variable("shared_by_all").attributes[0], ".managed,.unified(19,95)");
    assert!(variable("pool").shape.is_open());
    assert_eq!(variable("picture").shape.ty, ScalarType::TexRef);
}

fn read_f32(bytes: &[u8]) -> f32 {
    f32::from_le_bytes(bytes.try_into().unwrap())
}

#[test]
fn headers() {
    let module = grammar();
    let entry = module.entry("grammar").unwrap();
    assert_eq!(entry.bounds.max_threads, Some([16, 16, 1]));
    assert_eq!(entry.bounds.max_threads_per_block(), Some(256));
    assert_eq!(entry.bounds.min_blocks_per_multiprocessor, Some(2));
    assert_eq!(entry.bounds.max_registers, Some(64));
    let data = module.formal_variable(entry.parameters[0]).unwrap();
    let mark = data.pointer.unwrap();
    assert_eq!((mark.space, mark.align), (Some(Space::Global), Some(16)));

    let stop = &module.functions()[module.find_function("stop").unwrap().index()];
    assert!(stop.noreturn && stop.body.is_none());
    let twice = &module.functions()[module.find_function("twice").unwrap().index()];
    assert!(matches!((twice.returns[0], twice.parameters[0]), (Formal::Register(_), Formal::Register(_))));
    assert!(twice.body.is_some(), "declared first, defined later: one function");
    let pair = &module.functions()[module.find_function("pair").unwrap().index()];
    assert_eq!(pair.linkage, Some(Linkage::Weak));
    assert_eq!(module.formal_variable(pair.returns[0]).unwrap().shape.size_bytes(), 16);
}

#[test]
fn registers_are_dense_and_inner_blocks_hide_outer_ones() {
    let module = grammar();
    let entry = module.entry("grammar").unwrap();
    let registers = &entry.registers;
    // 4 + 1 predicates, one vector, 20 + 20 + 9 of ranges, then %r3 and t<3> of the inner block.
    assert_eq!(registers.count(), 5 + 1 + 49 + 4);
    let types: Vec<_> = registers.groups().iter().map(|g| (&*g.name, g.ty, g.len())).collect();
    assert_eq!(types[0], ("%p", ScalarType::Pred, 4));
    assert_eq!(types[2].0, "%v");
    assert_eq!(registers.groups()[2].vector, 4);

    // `mov.u32 %r3, %tid.x` names the outer register, `mov.u32 %r3, 5` the inner one.
    let outer = operands(&module, entry, "mov.u32", 0);
    assert_eq!(outer[1], PtxOperand::Special(SpecialRegister::Named(SpecialName::Tid, Some(Axis::X))));
    let inner = operands(&module, entry, "mov.u32", 1);
    assert_eq!(inner[1], PtxOperand::Immediate(Immediate::Signed(5)));
    assert_eq!((name(entry, &outer[0]), name(entry, &inner[0])), ("%r3".into(), "%r3".into()));
    assert_ne!(outer[0], inner[0]);
    let sum = operands(&module, entry, "add.s32", 0);
    assert_eq!(sum[2], PtxOperand::Immediate(Immediate::Signed(20)), "constants are computed");
    let PtxOperand::Register(id) = sum[0] else { panic!() };
    assert_eq!(registers.ty(id), Some(ScalarType::B32));
}

#[test]
fn operands_of_every_kind() {
    let module = grammar();
    let entry = module.entry("grammar").unwrap();
    let body = entry.body.as_ref().unwrap();

    let load = operands(&module, entry, "ld.global.v4.f32", 0);
    assert!(matches!(load[1], PtxOperand::Address(Address { base: AddressBase::Register(_), offset: -16 })));
    assert!(matches!(operands(&module, entry, "mov.f32", 0)[1], PtxOperand::Element(_, Axis::X)));
    let PtxOperand::Vector(halves) = operands(&module, entry, "mov.b64", 0)[0] else { panic!() };
    assert_eq!(body.elements(halves).iter().map(|e| name(entry, e)).collect::<Vec<_>>(), ["%r7", "%r8"]);
    let PtxOperand::Vector(four) = operands(&module, entry, "mov.v4.u32", 0)[0] else { panic!() };
    assert_eq!(body.elements(four)[3], PtxOperand::Sink);

    let compare = operands(&module, entry, "setp.lt.and.s32", 0);
    assert!(matches!(compare[0], PtxOperand::Pair(Some(_), Some(_))));
    assert!(matches!(compare[3], PtxOperand::Not(_)));
    assert!(matches!(operands(&module, entry, "shfl.sync.up.b32", 0)[0], PtxOperand::Pair(Some(_), None)));
    assert_eq!(operands(&module, entry, "st.shared.u32", 0)[1], PtxOperand::Immediate(Immediate::Signed(32)));
    assert!(matches!(operands(&module, entry, "mov.u64", 1)[1], PtxOperand::Function(_)));

    let PtxOperand::Bracket(texture) = operands(&module, entry, "tex.2d.v4.f32.f32", 0)[1] else { panic!() };
    assert!(matches!(body.elements(texture), [PtxOperand::Variable(_, 0), PtxOperand::Vector(_)]));
    let spaced = operands(&module, entry, "ld.global.u32", 0);
    assert_eq!(name(entry, &spaced[0]), "%r12", "modifiers may stand apart from the opcode");
}

#[test]
fn branches_tables_and_guards() {
    let module = grammar();
    let entry = module.entry("grammar").unwrap();
    let body = entry.body.as_ref().unwrap();
    let opcode_at = |index: usize| module.form(body.instructions()[index].form).unwrap().opcode();

    let guarded = body.instructions().iter().find(|i| i.guard.is_some()).unwrap();
    let guard = guarded.guard.unwrap();
    assert!(guard.negated);
    assert_eq!(entry.registers.name(guard.register).unwrap(), "%p1");
    let [PtxOperand::Label(end)] = *body.operands(guarded) else { panic!() };
    assert_eq!(opcode_at(body.target(end)), Opcode::Ret);

    let [_, PtxOperand::Table(table)] = *operands(&module, entry, "brx.idx.uni", 0) else { panic!() };
    let targets: Vec<_> =
        body.table(table).unwrap().targets.iter().map(|l| opcode_at(body.target(*l))).collect();
    assert_eq!(targets, [Opcode::Tex, Opcode::Mma, Opcode::Ret]);
}

#[test]
fn calls_name_their_parts() {
    let module = grammar();
    let entry = module.entry("grammar").unwrap();
    let body = entry.body.as_ref().unwrap();
    let call = |form: &str, nth: usize| {
        let [PtxOperand::Call(id)] = *operands(&module, entry, form, nth) else { panic!() };
        body.call(id).unwrap()
    };
    let pair = module.find_function("pair").unwrap();

    let direct = call("call.uni", 0);
    assert_eq!(direct.callee, Callee::Function(pair));
    let names: Vec<_> = direct
        .arguments
        .iter()
        .map(|argument| match argument {
            PtxOperand::Variable(id, 0) => &*module.variable(*id).unwrap().name,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["p0", "p1"]);
    assert!(matches!(call("call", 0).arguments[..], [PtxOperand::Register(_)]));

    let Some(Indirect::Prototype(shape)) = call("call", 1).indirect else { panic!() };
    let prototype = body.prototype(shape).unwrap();
    assert_eq!((prototype.returns.len(), prototype.parameters.len()), (1, 2));
    assert_eq!(prototype.returns[0].shape.size_bytes(), 16);
    let Some(Indirect::Targets(which)) = call("call", 2).indirect else { panic!() };
    assert_eq!(body.call_targets(which).unwrap().functions, [pair]);
}

#[test]
fn labels_of_inner_blocks_are_their_own() {
    let text = ".version 9.0 .target sm_90 .address_size 64 .entry k() {
        L: nanosleep.u32 1;
        { bra L; L: nanosleep.u32 2; }
        { bra L; }
        bra L; }";
    let module = PtxModule::parse(text).unwrap();
    let body = module.entry("k").unwrap().body.as_ref().unwrap();
    let targets: Vec<_> = body
        .instructions()
        .iter()
        .filter_map(|i| match *body.operands(i) {
            [PtxOperand::Label(label)] => Some(body.target(label)),
            _ => None,
        })
        .collect();
    assert_eq!(targets, [2, 0, 0]);
}

#[test]
fn source_lines_and_places() {
    let module = grammar();
    let entry = module.entry("grammar").unwrap();
    let body = entry.body.as_ref().unwrap();
    assert_eq!(body.source_line(0).unwrap().place.line, 7);
    let inlined = body.source_line(2).unwrap();
    assert_eq!((inlined.place.line, inlined.place.column), (8, 5));
    let outer = inlined.inlined.as_ref().unwrap();
    assert_eq!((&*outer.function, outer.at.line), ("$L__info_string0", 7));
    let origin = body.instructions()[0].origin.position();
    let source = include_str!("../data/grammar.ptx").lines().nth(origin.line as usize - 1).unwrap();
    assert!(source[origin.column as usize - 1..].starts_with("ld.param.u64"), "{source}");

    let compiled = load("shared-lineinfo");
    let kernel = compiled.entry("block_sum").unwrap().body.as_ref().unwrap();
    let lines: Vec<_> = kernel.lines().iter().map(|l| l.line.place.line).collect();
    assert!(lines.contains(&4), "{lines:?}");
    assert!(compiled.source_path(1).unwrap().ends_with("shared.cu"));
}

#[test]
fn instructions_of_newer_versions_keep_their_text() {
    let text = ".version 9.9 .target sm_90 .address_size 64 .entry k() {
        .reg .b32 %r<2>;
        quux.sync.b99 %r1, [%r0], some_word, {%r0, 5}; }";
    let module = PtxModule::parse(text).unwrap();
    let form = &module.forms()[0];
    assert_eq!((form.opcode(), form.text()), (Opcode::Unknown, "quux.sync.b99"));
    let body = module.entry("k").unwrap().body.as_ref().unwrap();
    let PtxOperand::Word(word) = body.operands(&body.instructions()[0])[2] else { panic!() };
    assert_eq!(body.word(word), "some_word");
    assert_eq!(PtxModule::parse(&module.to_string()).unwrap(), module);
}

#[test]
fn aliases_stand_for_their_functions() {
    let text = ".version 9.0 .target sm_90 .address_size 64 .func f() { ret; } .func g(); .alias g, f;";
    let module = PtxModule::parse(text).unwrap();
    let (f, g) = (module.find_function("f").unwrap(), module.find_function("g").unwrap());
    assert_eq!((module.resolve_alias(g), module.resolve_alias(f)), (f, f));
}

#[test]
fn a_text_ends_at_its_nul() {
    let module = PtxModule::parse(".version 9.0 .target sm_90 .address_size 64\n\0garbage").unwrap();
    assert!(module.functions().is_empty());
}

#[test]
fn code_inlined_from_headers_names_the_line_of_the_program() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {
        .loc 1 7 5
        .loc 2 69 9, function_name $L__s, inlined_at 1 7 5
        .loc 3 292 5, function_name $L__s, inlined_at 2 69 9
        bar.sync 0;
        .loc 1 9 5
        bar.sync 1;
        .loc 1 2 5, function_name $L__s, inlined_at 1 9 5
        bar.sync 2;
        .loc 3 292 5, function_name $L__s, inlined_at 2 69 9
        bar.sync 3;
        ret;
        }
        .file 1 \"k.cu\"\n.file 2 \"a.h\"\n.file 3 \"b.h\"
        .section .debug_str {\n$L__s:\n.b8 0\n}";
    let module = PtxModule::parse(text).unwrap();
    let body = module.entry("k").unwrap().body.as_ref().unwrap();
    let lines = [0, 1, 2, 3].map(|at| body.inlined_at(at).map(|place| (place.file, place.line)));
    assert_eq!(lines, [Some((1, 7)), None, Some((1, 9)), Some((1, 7))]);
}

#[test]
fn instructions_of_inline_assembly_are_told_from_others_and_stay_so_when_printed() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {
        bar.sync 0;
        // begin inline asm
        { .reg .b32 %a;
        mov.u32 %a, 1;
        bar.sync 1; }
        // end inline asm
        // a comment about begin inline asm
        bar.sync 2;
        //begin inline asm
        bar.sync 3;
        //end inline asm
        }";
    let flags = |module: &PtxModule| -> Vec<bool> {
        let body = module.entry("k").unwrap().body.as_ref().unwrap();
        body.instructions().iter().map(|instruction| instruction.is_inline_assembly).collect()
    };
    let module = PtxModule::parse(text).unwrap();
    assert_eq!(flags(&module), [false, true, true, false, true]);
    let printed = PtxModule::parse(&module.to_string()).unwrap();
    assert!(printed == module, "{module}");
}
