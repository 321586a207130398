//! Functions the device provides: `vprintf`, `__assertfail`, `malloc`, `free`.

use super::access::Access;
use super::frame::FrameId;
use super::lane_group::LaneGroup;
use super::{Done, Flow, Trouble, Warp};
use crate::exec::block::Cta;
use crate::exec::check::{RaceRule, ValueRule};
use crate::exec::code_location::CodeSite;
use crate::exec::finding::{AccessKind, ExecFindingKind};
use crate::exec::lowered_code::{Actual, Builtin, BuiltinCall, Reg, Strength};
use crate::exec::memory::generic_address::Place;
use crate::exec::printf::{Arguments, format};
use crate::exec::warp_register::{Column, LANES, each};

/// The longest string a kernel may print or assert with.
const MAX_STRING_BYTES: usize = 1 << 20;

impl Warp {
    pub(super) fn builtin(&mut self, cta: &mut Cta<'_>, at: usize, call: &BuiltinCall) -> Done<Flow> {
        let LaneGroup { mask, frame, .. } = self.lane_groups[at];
        let arguments: Vec<Column> =
            call.arguments.iter().map(|actual| self.argument(cta, *actual, frame, mask)).collect();
        self.use_arguments(cta, at, &call.arguments);
        let argument = |at: usize, lane: usize| arguments.get(at).map_or(0, |column| column[lane]);
        let mut result = [0; LANES];
        let mut failed = None;
        each(mask, |lane| {
            if failed.is_some() {
                return;
            }
            if call.which == Builtin::Free {
                self.watch_free(cta, at, lane, argument(0, lane));
            }
            let done = match call.which {
                Builtin::Printf => self.print(cta, at, lane, [0, 1].map(|at| argument(at, lane))),
                Builtin::AssertFail => {
                    Err(self.assertion(cta, lane, [0, 1, 2, 3].map(|at| argument(at, lane))))
                }
                Builtin::Malloc => Ok(self.malloc(cta, at, lane, argument(0, lane))),
                Builtin::Free => match argument(0, lane) {
                    0 => Ok(0),
                    _ if !cta.launch.rules.has(ValueRule::HeapFree) => Ok(0),
                    address if cta.launch.heap.free(address) => Ok(0),
                    _ if !cta.launch.rules.has(ValueRule::HeapDoubleFree) => Ok(0),
                    address => Err(Trouble::new(lane, ExecFindingKind::BadFree(address))),
                },
            };
            match done {
                Ok(value) => result[lane] = value,
                Err(trouble) => failed = Some(trouble),
            }
        });
        if let Some(trouble) = failed {
            return Err(trouble);
        }
        match call.returns.first() {
            Some(Actual::Memory { offset, bytes }) => self.write_frame(frame, *offset, *bytes, &result, mask),
            Some(Actual::Value(to)) => self.frames[frame].write(Reg(to.0), &result, mask),
            _ => {}
        }
        Ok(Flow::Next)
    }

    fn argument(&self, cta: &Cta<'_>, actual: Actual, frame: FrameId, lanes: u32) -> Column {
        match actual {
            Actual::Memory { offset, bytes } => self.read_frame(frame, offset, bytes, lanes),
            Actual::Value(source) => *self.frames[frame].column(source, &cta.launch.constants),
            _ => [0; LANES],
        }
    }

    /// Reports arguments on the stack that are undefined.
    fn use_arguments(&self, cta: &Cta<'_>, at: usize, arguments: &[Actual]) {
        let LaneGroup { mask, pc, frame, .. } = self.lane_groups[at];
        for argument in arguments {
            if let Actual::Memory { offset, bytes } = argument
                && let Some(carried) = self.frame_bits(cta, at, (frame, *offset, *bytes), mask)
            {
                self.report_uses(cta, pc, &carried.origins, carried.lanes());
            }
        }
    }

    fn print(&self, cta: &mut Cta<'_>, at: usize, lane: usize, [text, values]: [u64; 2]) -> Done<u64> {
        let text = self.read_string(cta, lane, text)?;
        let mut out = Vec::new();
        let mut packed = Packed { warp: self, cta, at, lane, next: values, failed: None };
        let used = format(&text, &mut packed, &mut out);
        if let Some(trouble) = packed.failed {
            return Err(trouble);
        }
        cta.launch.log.print(&out);
        Ok(u64::from(used))
    }

    fn assertion(
        &self,
        cta: &mut Cta<'_>,
        lane: usize,
        [message, file, line, function]: [u64; 4],
    ) -> Box<Trouble> {
        let mut text = |address: u64| {
            let bytes = self.read_string(cta, lane, address).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (message, file, function) = (text(message), text(file), text(function));
        Trouble::new(lane, ExecFindingKind::Assertion { message, file, line: line as u32, function })
    }

    /// A block of the device heap. What was done with its memory before does not race with what comes.
    fn malloc(&self, cta: &Cta<'_>, at: usize, lane: usize, bytes: u64) -> u64 {
        let site = CodeSite::of(cta.launch.code, self.lane_groups[at].pc);
        let site = site.in_thread(cta.index, cta.thread(self.index, lane));
        let start = cta.launch.heap.allocate_at(bytes, site).unwrap_or(0);
        if let Some(races) = cta.launch.races.as_ref().filter(|_| start != 0) {
            races.forget(start, bytes);
        }
        start
    }

    /// Compares a `free` with the accesses to its block, as if it wrote all of it.
    fn watch_free(&self, cta: &mut Cta<'_>, at: usize, lane: usize, address: u64) {
        let Some(bytes) = cta.launch.heap.block_bytes(address) else { return };
        let Some(races) = cta.races.as_mut().filter(|races| races.launch.rules.has(RaceRule::Free)) else {
            return;
        };
        let pc = self.lane_groups[at].pc;
        let found = races.touch_freed(self.index, lane, pc, address, bytes);
        if let Some(conflict) = found {
            let (bytes, strength) = (u32::try_from(bytes).unwrap_or(u32::MAX), Strength::default());
            let (kind, place) = (AccessKind::Write, Place::Global);
            let access =
                Access { kind, place, bytes, part_bytes: bytes, strength, halves: None, block: None };
            let mut bad = access.bad(address, String::new());
            bad.within = "a block of `malloc` that is freed".to_owned();
            cta.report_race(self.index, pc, bad, conflict, false);
        }
    }

    /// The bytes at a generic address up to a zero.
    fn read_string(&self, cta: &mut Cta<'_>, lane: usize, address: u64) -> Done<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < MAX_STRING_BYTES {
            match self.read_generic(cta, lane, address.wrapping_add(bytes.len() as u64), 1)? {
                0 => break,
                byte => bytes.push(byte as u8),
            }
        }
        Ok(bytes)
    }

    /// A value at a generic address, as one lane sees it.
    fn read_generic(&self, cta: &mut Cta<'_>, lane: usize, address: u64, bytes: u32) -> Done<u64> {
        let place = Place::at(address);
        let (within, _) = self.in_own_window(cta, lane, place, address);
        let fits = |end: u64| within.checked_add(u64::from(bytes)).is_some_and(|last| last <= end);
        let found = match place {
            Place::Shared => fits(cta.shared.len()).then(|| cta.shared.load(within, bytes)),
            Place::Local => {
                let mut out = [0; LANES];
                self.local.load(&[within; LANES], 1 << lane, bytes, &mut out);
                Some(out[lane])
            }
            Place::Param => None,
            Place::Global | Place::Generic | Place::Cluster => cta
                .spans
                .find(address)
                .filter(|span| address + u64::from(bytes) <= span.end)
                .map(|span| span.cells.load(address - span.origin, bytes)),
        };
        found.ok_or_else(|| {
            let strength = Strength::default();
            let access = Access {
                kind: AccessKind::Read,
                place,
                bytes,
                part_bytes: bytes,
                strength,
                halves: None,
                block: None,
            };
            let miss = cta.spans.owner(address).miss(address, u64::from(bytes));
            Trouble::new(lane, ExecFindingKind::missed(miss, access.bad(within, String::new())))
        })
    }
}

/// The arguments of `printf`, packed at their alignment behind a pointer.
struct Packed<'a, 'c, 'l> {
    warp: &'a Warp,
    cta: &'c mut Cta<'l>,
    /// The lane group that prints.
    at: usize,
    lane: usize,
    next: u64,
    failed: Option<Box<Trouble>>,
}

impl Arguments for Packed<'_, '_, '_> {
    fn next(&mut self, bytes: u32) -> u64 {
        let address = self.next.next_multiple_of(u64::from(bytes));
        self.next = address + u64::from(bytes);
        if Place::at(address) == Place::Local {
            let (within, _) = self.warp.in_own_window(self.cta, self.lane, Place::Local, address);
            self.warp.use_stack(self.cta, self.at, self.lane, within, bytes);
        }
        match self.warp.read_generic(self.cta, self.lane, address, bytes) {
            Ok(value) => value,
            Err(trouble) => {
                self.failed.get_or_insert(trouble);
                0
            }
        }
    }

    fn string(&mut self, address: u64) -> Vec<u8> {
        match self.warp.read_string(self.cta, self.lane, address) {
            Ok(text) => text,
            Err(trouble) => {
                self.failed.get_or_insert(trouble);
                Vec::new()
            }
        }
    }
}
