//! One launch made both ways: with rows, patterns, words and vector instructions, and lane by lane.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    Checks, DeviceHeap, Entry, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory,
    StatisticsReport, UndefinedStore,
};

const STRICT: Checks = Checks { strict: true, ..Checks::ALL };

/// Everything that can be seen of a launch.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    /// Findings, notes, text, counts.
    outcome: ExecOutcome,
    memory: Vec<Vec<u8>>,
    /// The undefined values in memory, by address.
    undefined: Vec<Vec<(u64, UndefinedStore)>>,
    statistics: Option<StatisticsReport>,
}

/// One launch of an entry over buffers of these contents, the last of them never written.
fn launch(
    (program, entry): (&ExecProgram, &Entry),
    shape: &LaunchShape,
    inputs: &Inputs<'_>,
    options: &Options<'_>,
    counts: bool,
) -> Seen {
    let mut memory = SimpleMemory::new();
    let globals: Vec<u64> = program.variables().iter().map(|v| memory.allocate(v.bytes)).collect();
    for (at, address) in globals.iter().enumerate() {
        assert!(memory.write(*address, &program.contents(at, &globals)));
    }
    let mut buffers: Vec<(u64, u64)> =
        inputs.contents.iter().map(|bytes| (memory.allocate_with(bytes), bytes.len() as u64)).collect();
    if inputs.bare_bytes != 0 {
        buffers.push((memory.allocate_uninitialised(inputs.bare_bytes), inputs.bare_bytes));
    }
    let addresses: Vec<u64> = buffers.iter().map(|(address, _)| *address).collect();
    let statistics = counts.then(|| entry.statistics());
    let heap = DeviceHeap::default();
    let options =
        Options { statistics: statistics.as_ref(), heap: Some(&heap), step_limit: 1 << 22, ..*options };
    let outcome = entry.launch(shape, &(inputs.pack)(&addresses), &globals, &memory, &options).unwrap();
    let stores = |(address, _): &(u64, u64)| memory.undefined_stores(*address);
    Seen {
        outcome,
        memory: buffers.iter().map(|(address, bytes)| memory.read(*address, *bytes).unwrap()).collect(),
        undefined: buffers.iter().map(stores).collect(),
        statistics: statistics.map(|statistics| entry.statistics_report(&statistics)),
    }
}

pub(crate) struct Inputs<'a> {
    pub(crate) contents: Vec<Vec<u8>>,
    /// Bytes of a buffer behind the others that was never written.
    pub(crate) bare_bytes: u64,
    pub(crate) pack: &'a dyn Fn(&[u64]) -> Vec<u8>,
}

/// Makes a launch both ways, with several checks; what differs.
pub(crate) fn compare(
    ptx: &str,
    entry: &str,
    shape: &LaunchShape,
    inputs: &Inputs<'_>,
    seed: u64,
) -> Result<(), String> {
    let program = ExecProgram::new(PtxModule::parse(ptx).unwrap_or_else(|error| panic!("{error}\n{ptx}")));
    let found = program.entry(entry).unwrap();
    assert!(found.unsupported().is_empty(), "{:?}", found.unsupported());
    for (checks, order, counts) in [
        (Checks::NONE, 0, false),
        (Checks::default(), 0, false),
        (Checks::ALL, 0, false),
        (STRICT, seed, false),
        (Checks::ALL, 0, true),
    ] {
        let [fast, portable] = [false, true].map(|portable| {
            let options = Options { checks, seed: order, portable, ..Options::default() };
            launch((&program, &found), shape, inputs, &options, counts)
        });
        if fast != portable {
            let what = match () {
                () if fast.outcome != portable.outcome => {
                    format!("outcomes: {:?}\nlane by lane: {:?}", fast.outcome, portable.outcome)
                }
                () if fast.memory != portable.memory => "memory".to_owned(),
                () if fast.undefined != portable.undefined => {
                    format!("undefined stores: {:?}\nlane by lane: {:?}", fast.undefined, portable.undefined)
                }
                () => format!("statistics: {:?}\nlane by lane: {:?}", fast.statistics, portable.statistics),
            };
            return Err(format!("{entry}, seed {seed}, {checks:?}, order {order}: differ in {what}\n{ptx}"));
        }
    }
    Ok(())
}
