//! Mistakes around calls of all libraries: each operand is looked at as it is of `axpy` alone in the file beside this.

use std::cell::Cell;

use kiln_driver::{
    Command, DeviceMemory, DevicePlace, Driver, DriverExt, Image, LaunchCommand, Pattern, Vouched,
};
use kiln_operation::{ARGUMENT_BYTES, Operation, OperationOperand};
use kiln_sim::FindingKind;

use super::check;
use crate::rig::Rig;

const ONE: u32 = 0x3f80_0000;
/// Two numbers of 16 bits.
const HALVES: u32 = 0x3c00_3c00;

/// A call of a library.
struct Call {
    text: &'static str,
    /// An operand that is read, and one that is written.
    reads: &'static str,
    writes: &'static str,
    /// Words that all operands are filled with, but for those of a sparse matrix.
    word: u32,
}

const CALLS: &[Call] = &[
    Call {
        text: "blas.matmul m=2 n=2 k=2 batch=1 a=f32:n:2:0 b=f32:n:2:0 d=f32:n:2:0 math=ieee epilogue=none scaled=false accumulate=false order=any \
               workspace=0 alignment=16 algorithm=0",
        reads: "b",
        writes: "d",
        word: ONE,
    },
    Call {
        text: "blas.trsm element=f32 m=2 n=2 side=left triangle=lower transposed=false diagonal=stored a_leading=2 b_leading=2",
        reads: "a",
        writes: "b",
        word: ONE,
    },
    Call {
        text: "fft kind=forward element=f32 shape=4 batch=1 in_place=false",
        reads: "input",
        writes: "output",
        word: ONE,
    },
    Call {
        text: "solve.potrs element=f32 n=1 columns=1 triangle=lower a_leading=1 b_leading=1",
        reads: "a",
        writes: "b",
        word: ONE,
    },
    Call {
        text: "sparse.spmv format=csr element=f32 index=i32 rows=1 columns=1 nonzeros=1 transposed=false accumulate=false order=any",
        reads: "indices",
        writes: "y",
        word: ONE,
    },
    Call {
        text: "dnn.convolution pass=forward element=f32 layout=nchw batch=1 channels=1 image=2x2 filters=1 filter=2x2 padding=0x0 stride=1x1 dilation=1x1 \
               groups=1 math=ieee order=any workspace=0",
        reads: "w",
        writes: "y",
        word: ONE,
    },
    Call {
        text: "dnn.attention element=f16 layout=heads_first batch=1 heads=1 key_heads=1 queries=1 keys=1 head=8 mask=none order=any workspace=0",
        reads: "v",
        writes: "o",
        word: HALVES,
    },
];

/// A call with its operands in memory.
struct Prepared<'a> {
    call: &'a Call,
    operation: Operation,
    operands: Vec<OperationOperand>,
    memory: Vec<Option<DeviceMemory>>,
}

impl<'a> Prepared<'a> {
    /// Allocates the operands. One of them may belong to the test, which frees it.
    fn new(rig: &Rig, call: &'a Call, freed: Option<&str>) -> Self {
        let operation: Operation = call.text.parse().unwrap();
        let operands = operation.operands();
        let allocate = |operand: &OperationOperand| {
            let bytes = operand.bytes.next_multiple_of(4);
            match operand.bytes {
                0 => None,
                _ if freed == Some(operand.name) => Some(rig.direct(bytes)),
                _ => Some(rig.block(bytes)),
            }
        };
        let memory = operands.iter().map(allocate).collect();
        Self { call, operation, operands, memory }
    }

    fn named(&self, name: &str) -> DeviceMemory {
        let at = self.operands.iter().position(|operand| operand.name == name);
        self.memory[at.unwrap_or_else(|| panic!("{} has no {name}", self.call.text))].unwrap()
    }

    /// Fills all operands, one of them without its last word.
    fn fill(&self, rig: &Rig, stream: usize, without: Option<&str>) {
        let operands = self.operands.iter().zip(&self.memory);
        for (operand, memory) in operands.filter_map(|(operand, memory)| Some((operand, (*memory)?))) {
            let words = memory.bytes / 4 - u64::from(without == Some(operand.name));
            for at in 0..words {
                let word = match operand.name {
                    // One row, whose element is the first.
                    "offsets" => at as u32,
                    "indices" => 0,
                    _ => self.call.word,
                };
                let to = DevicePlace::from(memory.id).plus(at * 4);
                let fill = Command::Fill { to, pattern: Pattern::U32(word), count: 1 };
                rig.device.submit(rig.streams[stream], &fill).unwrap();
            }
        }
    }

    /// Launches the operation.
    fn launch(&self, rig: &Rig, stream: usize) {
        let module = rig.device.load(&Image::Library(self.call.text)).unwrap();
        rig.give_back_later(module);
        let function = rig.device.function(module, self.operation.name()).unwrap();
        let mut words: Vec<u64> = self
            .memory
            .iter()
            .map(|memory| memory.map_or(1.0_f64.to_bits(), |memory| memory.address.0))
            .collect();
        if function.attributes.workspace_bytes > 0 {
            words.push(rig.block(function.attributes.workspace_bytes).address.0);
        }
        let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(packed.len() as u64, words.len() as u64 * u64::from(ARGUMENT_BYTES));
        let command = Command::Launch(LaunchCommand {
            function: function.id,
            grid: 1.into(),
            block: 1.into(),
            cluster: None,
            dynamic_shared_bytes: 0,
            cooperative: false,
            arguments: &packed,
            declared: None,
            // SAFETY: the simulated device checks every access of an operation.
            vouched: unsafe { Vouched::new() },
        });
        rig.device.submit(rig.streams[stream], &command).unwrap();
    }
}

/// Looks for a mistake around each call.
fn each(kind: FindingKind, program: impl Fn(Rig, bool, &Call)) {
    let looked_at = Cell::new(0);
    for call in CALLS {
        check(kind.clone(), |rig, broken| {
            looked_at.set(looked_at.get() + 1);
            program(rig, broken, call);
        });
    }
    assert!(looked_at.get() > CALLS.len());
}

#[test]
fn a_call_reads_what_another_stream_writes() {
    each(FindingKind::ReadAfterWrite, |rig, broken, call| {
        let prepared = Prepared::new(&rig, call, None);
        prepared.fill(&rig, 0, None);
        rig.sync(0);
        // The same contents again, so that the call can do its work.
        let (read, word) = (prepared.named(call.reads), if call.reads == "indices" { 0 } else { call.word });
        let fill = Command::Fill { to: read.id.into(), pattern: Pattern::U32(word), count: read.bytes / 4 };
        rig.device.submit(rig.streams[1], &fill).unwrap();
        if !broken {
            rig.order(1, 0);
        }
        prepared.launch(&rig, 0);
        rig.close();
    });
}

#[test]
fn another_stream_overwrites_what_a_call_reads() {
    each(FindingKind::WriteAfterRead, |rig, broken, call| {
        let prepared = Prepared::new(&rig, call, None);
        prepared.fill(&rig, 0, None);
        rig.sync(0);
        prepared.launch(&rig, 0);
        if !broken {
            rig.order(0, 1);
        }
        let (read, word) = (prepared.named(call.reads), if call.reads == "indices" { 0 } else { call.word });
        let fill = Command::Fill { to: read.id.into(), pattern: Pattern::U32(word), count: read.bytes / 4 };
        rig.device.submit(rig.streams[1], &fill).unwrap();
        rig.close();
    });
}

#[test]
fn another_stream_reads_what_a_call_writes() {
    each(FindingKind::ReadAfterWrite, |rig, broken, call| {
        let prepared = Prepared::new(&rig, call, None);
        prepared.fill(&rig, 0, None);
        rig.sync(0);
        prepared.launch(&rig, 0);
        if !broken {
            rig.order(0, 1);
        }
        rig.read(1, prepared.named(call.writes));
        rig.close();
    });
}

#[test]
fn an_operand_was_not_written_to_its_end() {
    each(FindingKind::Uninitialised, |rig, broken, call| {
        let prepared = Prepared::new(&rig, call, None);
        prepared.fill(&rig, 0, broken.then_some(call.reads));
        prepared.launch(&rig, 0);
        rig.close();
    });
}

/// A buffer that is freed before the call, whether it reads it or writes it.
#[test]
fn an_operand_was_freed() {
    for of in [|call: &Call| call.reads, |call: &Call| call.writes] {
        each(FindingKind::UseAfterFree, |rig, broken, call| {
            let prepared = Prepared::new(&rig, call, Some(of(call)));
            prepared.fill(&rig, 0, None);
            rig.sync(0);
            let freed = prepared.named(of(call)).id;
            if broken {
                rig.device.free(freed, None).unwrap();
                prepared.launch(&rig, 0);
                assert!(rig.device.synchronize(rig.streams[0]).unwrap_err().is_sticky());
                return;
            }
            prepared.launch(&rig, 0);
            rig.sync(0);
            rig.device.free(freed, None).unwrap();
            rig.close();
        });
    }
}

/// What comes after the call on another stream.
#[test]
fn an_operand_is_freed_while_the_call_may_run() {
    each(FindingKind::FreeBeforeDone, |rig, broken, call| {
        let prepared = Prepared::new(&rig, call, Some(call.reads));
        prepared.fill(&rig, 0, None);
        rig.sync(0);
        let before = rig.machine.timeline().len();
        prepared.launch(&rig, 0);
        super::let_run(&rig, before + 1);
        if !broken {
            rig.sync(0);
        }
        rig.device.free(prepared.named(call.reads).id, None).unwrap();
        rig.close();
    });
}
