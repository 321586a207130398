//! Mistakes of programs on the simulated device are told with the line of Rust that made them.

use std::sync::Arc;

use kiln::checking::Findings;
use kiln::{
    DeviceRuntime, RuntimeConfig,
    program::{Backend, Bindings, DispatchConfig, Program},
};
use kiln_ir::Axis;
use kiln_ptx::exec::{Checks, ExecFindingKind};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

#[test]
fn a_race_names_both_lines_of_the_closure() {
    let engine = PtxEngine::with_checks(Checks::ALL);
    let machine = Machine::new(MachineConfig::seeded(1).engine(Arc::new(engine)));
    let config = RuntimeConfig { findings: Findings::Report, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
    let (mut stored, mut loaded) = (0, 0);
    let program = Program::build("reversed", |k| {
        let (x, y) = (k.input::<u32>("x").count(64), k.output::<u32>("y").count(64));
        let tile = k.shared::<u32>("tile", 64);
        k.block([64, 1, 1]);
        let thread = k.thread(Axis::X);
        stored = line!() + 1;
        tile.store(thread, x.load(thread));
        loaded = line!() + 1;
        y.store(thread, tile.load(thread * 63 % 64));
    })
    .unwrap();
    let pipeline = Backend::over(gpu).compile(&program).unwrap();
    let config = DispatchConfig { grid: Some(1.into()), ..DispatchConfig::default() };
    let bindings = Bindings::new().input("x", &[7_u32; 64]);
    pipeline.dispatch_with(bindings, &config).unwrap();
    let findings = machine.findings();
    let race = findings
        .iter()
        .filter_map(|finding| finding.code.as_deref())
        .find(|finding| matches!(finding.kind, ExecFindingKind::Race { .. }))
        .unwrap_or_else(|| panic!("no race in {findings:?}"));
    let ExecFindingKind::Race { earlier_site, .. } = &race.kind else { panic!("{race}") };
    let mut lines = [&race.site, earlier_site].map(|site| site.source.clone().unwrap());
    lines.sort();
    assert_eq!(lines, [(file!().to_owned(), stored), (file!().to_owned(), loaded)]);
}
