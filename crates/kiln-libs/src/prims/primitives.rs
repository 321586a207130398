//! The primitives of a device.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use kiln_driver::DeviceKind;
use kiln_runtime::{DeviceRuntime, Element, GpuRef, Kernel};

use super::element::{Comparable, Numeric};
use super::embedded_ptx::{CAPABILITY, SHIPPED, ShippedKernels};
use super::histogram::Histogram;
use super::primitive_call::PrimitiveCall;
use super::reduce::{ArgReduce, Extreme, Reduce, ReduceOperator};
use super::scan::{Scan, ScanOperator};
use super::segments::{Offset, SegmentedReduce};
use super::select::{Kept, Predicate, Select, SelectFlagged};
use super::sort::{Sort, SortByKey};
use super::top_k::Top;
use super::unique::Unique;
use crate::Result;
use crate::error::{LibraryError, UNNAMED};
use crate::program_kernel::program_kernel;

type KernelName = (&'static str, &'static str, &'static str);

/// Reductions, scans, sorts and what is built of them, on one device. It holds kernels, which are loaded when they are first used, and nothing else.
///
/// ```
/// use kiln::DeviceRuntime;
/// use kiln_libs::prims::{Primitives, ReduceOperator};
///
/// let gpu = DeviceRuntime::simulated(1)?;
/// let prims = Primitives::new(&gpu);
/// let (values, sum) = (gpu.upload(&[3_u32, 1, 2])?, gpu.allocate(1)?);
/// prims.reduce(&values, ReduceOperator::Sum, &sum).submit()?;
/// prims.sort(&values, &values).submit()?;
/// assert_eq!(sum.download()?, [6]);
/// assert_eq!(values.download()?, [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Primitives {
    gpu: DeviceRuntime,
    shipped: &'static [ShippedKernels],
    kernels: Mutex<HashMap<KernelName, Kernel>>,
    /// Kernels that are made of programs, by their names.
    programs: Mutex<HashMap<Box<str>, Kernel>>,
    /// Whether operations launch assertions about their inputs first: on simulated devices, so that no GPU spends time on them.
    pub(crate) has_assertions: bool,
}

impl Primitives {
    /// The primitives of a device. Nothing is loaded yet.
    pub fn new(gpu: &DeviceRuntime) -> Self {
        Self::of(gpu, SHIPPED)
    }

    /// Other kernels of this crate beside those of the primitives, loaded and launched the same way.
    pub(crate) fn of(gpu: &DeviceRuntime, shipped: &'static [ShippedKernels]) -> Self {
        let has_assertions = gpu.info().kind == DeviceKind::Simulated;
        let (kernels, programs) = (Mutex::default(), Mutex::default());
        Self { gpu: gpu.clone(), shipped, kernels, programs, has_assertions }
    }

    /// Combines all elements into the one element of `output`. The same input gives the same bits on every device and in every run.
    ///
    /// Integers wrap. Minimum and maximum leave NaN out, and are NaN if all elements are. No elements give 0, 1, the greatest value or the least one
    /// (infinity for floats).
    pub fn reduce<T: Numeric>(
        &self,
        input: &GpuRef<T>,
        operator: ReduceOperator,
        output: &GpuRef<T>,
    ) -> PrimitiveCall<'_, Reduce<T>> {
        PrimitiveCall::new(self, Reduce { input: input.clone(), operator, output: output.clone() })
    }

    /// Writes the index of the least element, the first of equal ones, to the one element of `output`. Floats are ordered as by [`f32::total_cmp`]: NaN is
    /// greater than infinity, and negative NaN is less than all other numbers, whereas [`reduce`](Self::reduce) leaves NaN out.
    pub fn arg_min<T: Numeric>(
        &self,
        input: &GpuRef<T>,
        output: &GpuRef<u64>,
    ) -> PrimitiveCall<'_, ArgReduce<T>> {
        let (input, output) = (input.clone(), output.clone());
        PrimitiveCall::new(self, ArgReduce { input, extreme: Extreme::Min, output })
    }

    /// As [`arg_min`](Self::arg_min), for the greatest element.
    pub fn arg_max<T: Numeric>(
        &self,
        input: &GpuRef<T>,
        output: &GpuRef<u64>,
    ) -> PrimitiveCall<'_, ArgReduce<T>> {
        let (input, output) = (input.clone(), output.clone());
        PrimitiveCall::new(self, ArgReduce { input, extreme: Extreme::Max, output })
    }

    /// Combines the elements of each segment into one element of `output`: segment `s` is the elements from `offsets[s]` up to `offsets[s + 1]`.
    ///
    /// NaN and segments without elements are treated as by [`reduce`](Self::reduce). There is one more offset than segments. Offsets behind the end of the input count as its end, and a segment that ends before it begins has no
    /// elements.
    pub fn reduce_segments<T: Numeric, O: Offset>(
        &self,
        input: &GpuRef<T>,
        offsets: &GpuRef<O>,
        operator: ReduceOperator,
        output: &GpuRef<T>,
    ) -> PrimitiveCall<'_, SegmentedReduce<T, O>> {
        let (input, offsets, output) = (input.clone(), offsets.clone(), output.clone());
        PrimitiveCall::new(self, SegmentedReduce { input, offsets, operator, output })
    }

    /// Element `i` becomes elements 0 to `i` combined, its own included. `output` may be `input`.
    ///
    /// The same input gives the same bits on every device and in every run, floats included.
    pub fn scan_inclusive<T: Numeric>(
        &self,
        input: &GpuRef<T>,
        operator: ScanOperator,
        output: &GpuRef<T>,
    ) -> PrimitiveCall<'_, Scan<T>> {
        PrimitiveCall::new(self, Scan::new(input.clone(), operator, output.clone()))
    }

    /// Element `i` becomes `first` and elements 0 to `i - 1` combined; otherwise as [`scan_inclusive`](Self::scan_inclusive).
    pub fn scan_exclusive<T: Numeric>(
        &self,
        input: &GpuRef<T>,
        operator: ScanOperator,
        first: T,
        output: &GpuRef<T>,
    ) -> PrimitiveCall<'_, Scan<T>> {
        PrimitiveCall::new(self, Scan::new(input.clone(), operator, output.clone()).exclusive(first))
    }

    /// Sorts in ascending order; see [`PrimitiveCall::descending`] and [`PrimitiveCall::bits`]. Equal keys keep their order. `output` may be `input`, which is otherwise not changed.
    ///
    /// Floats are ordered as by [`f32::total_cmp`]: NaN with a sign, negative infinity, …, -0, 0, …, infinity, NaN.
    pub fn sort<K: Numeric>(&self, input: &GpuRef<K>, output: &GpuRef<K>) -> PrimitiveCall<'_, Sort<K>> {
        PrimitiveCall::new(self, Sort::new(input.clone(), output.clone()))
    }

    /// As [`sort`](Self::sort); values of four or eight bytes move with their keys.
    pub fn sort_by_key<K: Numeric, V: Element>(
        &self,
        keys: &GpuRef<K>,
        values: &GpuRef<V>,
        sorted_keys: &GpuRef<K>,
        sorted_values: &GpuRef<V>,
    ) -> PrimitiveCall<'_, SortByKey<K, V>> {
        let keys = Sort::new(keys.clone(), sorted_keys.clone());
        PrimitiveCall::new(
            self,
            SortByKey { keys, values: values.clone(), sorted_values: sorted_values.clone() },
        )
    }

    /// Writes the elements that a predicate keeps to `output`, in their order, and their number to the one element of `count`. There must be room for all
    /// elements. [`PrimitiveCall::indices`] writes their indices, too.
    pub fn select<T: Comparable>(
        &self,
        input: &GpuRef<T>,
        predicate: Predicate<T>,
        output: &GpuRef<T>,
        count: &GpuRef<u64>,
    ) -> PrimitiveCall<'_, Select<T>> {
        let kept = Kept { elements: Some(output.clone()), indices: None, count: Some(count.clone()) };
        PrimitiveCall::new(self, Select { input: input.clone(), predicate, kept })
    }

    /// As [`select`](Self::select), but keeps the elements whose flag is not 0. Elements have 1, 2, 4 or 8 bytes.
    pub fn select_flagged<T: Element>(
        &self,
        input: &GpuRef<T>,
        flags: &GpuRef<u8>,
        output: &GpuRef<T>,
        count: &GpuRef<u64>,
    ) -> PrimitiveCall<'_, SelectFlagged<T>> {
        let kept = Kept { elements: Some(output.clone()), indices: None, count: Some(count.clone()) };
        PrimitiveCall::new(self, SelectFlagged { input: input.clone(), flags: flags.clone(), kept })
    }

    /// Writes the first element of each run of equal ones to `output`, and the number of runs to the one element of `count`. There must be room for all
    /// elements. [`PrimitiveCall::lengths`] writes the lengths of the runs, too.
    ///
    /// Elements have 1, 2, 4 or 8 bytes, and are equal if their bits are: -0 is not 0, and a NaN equals itself.
    pub fn unique<T: Element>(
        &self,
        input: &GpuRef<T>,
        output: &GpuRef<T>,
        count: &GpuRef<u64>,
    ) -> PrimitiveCall<'_, Unique<T>> {
        let (input, output, count) = (input.clone(), output.clone(), count.clone());
        PrimitiveCall::new(self, Unique::new(input, output, count))
    }

    /// Counts the elements in each of as many equally wide bins as `output` has elements, from `values.start` up to `values.end`. Elements outside are not
    /// counted, nor are NaN.
    ///
    /// The bin of an integer is exact: `(value - start) * bins / (end - start)`. That of a float is `(value - start) * (bins / (end - start))` in `f64`,
    /// rounded down.
    pub fn histogram<T: Comparable>(
        &self,
        input: &GpuRef<T>,
        values: Range<T>,
        output: &GpuRef<u64>,
    ) -> PrimitiveCall<'_, Histogram<T>> {
        PrimitiveCall::new(self, Histogram { input: input.clone(), values, output: output.clone() })
    }

    /// Writes the largest elements to `output`, the largest first, as many as it has room for; see [`PrimitiveCall::smallest`] and [`PrimitiveCall::indices`]. Of equal elements
    /// those with smaller indices come first. Floats are ordered as by [`f32::total_cmp`], so NaN without a sign are the largest.
    pub fn top<T: Numeric>(&self, input: &GpuRef<T>, output: &GpuRef<T>) -> PrimitiveCall<'_, Top<T>> {
        let (input, output) = (input.clone(), output.clone());
        PrimitiveCall::new(self, Top { input, output, indices: None, is_smallest: false })
    }

    pub(crate) fn gpu(&self) -> &DeviceRuntime {
        &self.gpu
    }

    /// A kernel of an operation for a type.
    pub(super) fn kernel(
        &self,
        family: &'static str,
        of: &'static str,
        entry: &'static str,
    ) -> Result<Kernel> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = kernels.get(&(family, of, entry)) {
            return Ok(kernel.clone());
        }
        let capability = self.gpu.info().capability;
        if capability.major * 10 + capability.minor < CAPABILITY {
            let what = format!("the device has compute capability {capability}");
            return Err(LibraryError::argument(
                UNNAMED,
                what,
                "use a device of compute capability 7.5 or newer",
            ));
        }
        let mut known = self.shipped.iter().chain(SHIPPED);
        let shipped =
            known.find(|shipped| shipped.family == family && shipped.of == of).ok_or_else(|| {
                let what = format!("no kernels of {family} for {of}");
                LibraryError::argument(UNNAMED, what, "use a type that the page of the operation lists")
            })?;
        let kernel = self.gpu.kernel(shipped.ptx, entry)?;
        kernels.insert((family, of, entry), kernel.clone());
        Ok(kernel)
    }
}

impl Primitives {
    /// A kernel that is made of a program (`.kir`), which gives the same bits on every device. A name stands for one text.
    pub(super) fn program_kernel(&self, name: &str, text: impl FnOnce() -> String) -> Result<Kernel> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = programs.get(name) {
            return Ok(kernel.clone());
        }
        let kernel = program_kernel(&self.gpu, UNNAMED, (name, &text()))?;
        programs.insert(name.into(), kernel.clone());
        Ok(kernel)
    }
}

impl std::fmt::Debug for Primitives {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "primitives on {:?}", self.gpu)
    }
}
