//! Convolutions of images and their gradients: products are added in `f64`, in the order of their places.

use kiln_operation::{Convolution, ConvolutionPass, ElementType, TensorLayout};

use super::arguments::{OperationArguments, Run};
use crate::code::kernel::KernelFault;

type Work = Result<u64, KernelFault>;

/// Where the elements of a tensor lie.
#[derive(Clone, Copy)]
pub(super) struct TensorPlaces {
    dimensions: [u64; 4],
    strides: [u64; 4],
}

impl TensorPlaces {
    /// A tensor without gaps.
    pub(super) fn new(layout: TensorLayout, dimensions: [u64; 4]) -> Self {
        let [_, channels, height, width] = dimensions;
        let strides = match layout {
            TensorLayout::Nchw => [channels * height * width, height * width, width, 1],
            TensorLayout::Nhwc => [height * width * channels, 1, width * channels, channels],
        };
        Self { dimensions, strides }
    }

    /// How many elements it has.
    pub(super) fn len(&self) -> u64 {
        self.dimensions.iter().product()
    }

    /// The place of an element.
    pub(super) fn at(&self, image: u64, channel: u64, row: u64, column: u64) -> usize {
        let [n, c, h, w] = self.strides;
        (image * n + channel * c + row * h + column * w) as usize
    }

    /// All elements, in the order they lie in.
    pub(super) fn read(
        &self,
        arguments: &OperationArguments<'_>,
        index: usize,
        element: ElementType,
    ) -> Result<Vec<f64>, KernelFault> {
        arguments.read(index, element, Run::dense(0, self.len()))
    }

    /// The elements in these rows and columns; zeros for the others, which are not read.
    pub(super) fn read_used(
        &self,
        arguments: &OperationArguments<'_>,
        index: usize,
        element: ElementType,
        (rows, columns): (&[bool], &[bool]),
    ) -> Result<Vec<f64>, KernelFault> {
        if rows.iter().chain(columns).all(|is_used| *is_used) {
            return self.read(arguments, index, element);
        }
        let [images, channels, ..] = self.dimensions;
        let mut values = vec![0.0; self.len() as usize];
        for image in 0..images {
            for (row, _) in (0..).zip(rows).filter(|(_, is_used)| **is_used) {
                for (column, _) in (0..).zip(columns).filter(|(_, is_used)| **is_used) {
                    let start = self.at(image, 0, row, column) as u64;
                    let run = Run { start, len: channels, step: self.strides[1] };
                    let read = arguments.read(index, element, run)?;
                    for (channel, value) in (0..).zip(read) {
                        values[self.at(image, channel, row, column)] = value;
                    }
                }
            }
        }
        Ok(values)
    }
}

/// Along one dimension: which pixel a position of the window sees, for each element of the window.
pub(super) struct WindowPlaces {
    pub(super) padding: u64,
    pub(super) stride: u64,
    pub(super) dilation: u64,
    pub(super) size: u64,
}

impl WindowPlaces {
    /// The pixel, or none where the element is outside of the image.
    pub(super) fn pixel(&self, position: u64, element: u64) -> Option<u64> {
        let place = (position * self.stride + element * self.dilation).checked_sub(self.padding)?;
        (place < self.size).then_some(place)
    }

    /// Which pixels any position sees.
    pub(super) fn used(&self, positions: u64, window: u64) -> Vec<bool> {
        let mut used = vec![false; self.size as usize];
        for position in 0..positions {
            for place in (0..window).filter_map(|element| self.pixel(position, element)) {
                used[place as usize] = true;
            }
        }
        used
    }
}

pub(super) fn run(arguments: &OperationArguments<'_>, operation: &Convolution) -> Work {
    let Some(dimensions) = operation.dimensions() else { return Ok(0) };
    let [x, w, y] = dimensions.map(|dimensions| TensorPlaces::new(operation.layout, dimensions));
    let element = operation.element;
    let zeros = |places: &TensorPlaces| vec![0.0; places.len() as usize];
    let image = || {
        let (rows, columns) = windows(operation);
        let [_, _, height, width] = dimensions[2];
        let rows = rows.used(height, operation.filter.height);
        let columns = columns.used(width, operation.filter.width);
        x.read_used(arguments, 0, element, (&rows, &columns))
    };
    match operation.pass {
        ConvolutionPass::Forward => {
            let (x_values, w_values, mut sums) = (image()?, w.read(arguments, 1, element)?, zeros(&y));
            each_product(operation, [&x, &w, &y], |x, w, y| sums[y] += x_values[x] * w_values[w]);
            arguments.write(2, element, Run::dense(0, y.len()), &sums)?;
        }
        ConvolutionPass::BackwardData => {
            let (w_values, dy) = (w.read(arguments, 1, element)?, y.read(arguments, 2, element)?);
            let mut sums = zeros(&x);
            each_product(operation, [&x, &w, &y], |x, w, y| sums[x] += dy[y] * w_values[w]);
            arguments.write(0, element, Run::dense(0, x.len()), &sums)?;
        }
        ConvolutionPass::BackwardFilter => {
            let (x_values, dy, mut sums) = (image()?, y.read(arguments, 2, element)?, zeros(&w));
            each_product(operation, [&x, &w, &y], |x, w, y| sums[w] += x_values[x] * dy[y]);
            arguments.write(1, element, Run::dense(0, w.len()), &sums)?;
        }
    }
    Ok(y.len().saturating_mul(dimensions[1][1]).saturating_mul(operation.filter.area()))
}

/// The positions of the filter in rows and in columns.
fn windows(operation: &Convolution) -> (WindowPlaces, WindowPlaces) {
    let Convolution { image, padding, stride, dilation, .. } = *operation;
    let along = |size, padding, stride, dilation| WindowPlaces { padding, stride, dilation, size };
    (
        along(image.height, padding.height, stride.height, dilation.height),
        along(image.width, padding.width, stride.width, dilation.width),
    )
}

/// Calls a function with the places in `x`, `w` and `y` of each product, in a fixed order.
fn each_product(
    operation: &Convolution,
    [x, w, y]: [&TensorPlaces; 3],
    mut product: impl FnMut(usize, usize, usize),
) {
    let (rows, columns) = windows(operation);
    let [_, in_group, filter_height, filter_width] = w.dimensions;
    let [images, filters, height, width] = y.dimensions;
    let filters_in_group = filters / operation.groups;
    for image in 0..images {
        for filter in 0..filters {
            let first_channel = filter / filters_in_group * in_group;
            for channel in 0..in_group {
                for row in 0..filter_height {
                    for column in 0..filter_width {
                        let weight = w.at(filter, channel, row, column);
                        for p in 0..height {
                            let Some(pixel_row) = rows.pixel(p, row) else { continue };
                            for q in 0..width {
                                let Some(pixel_column) = columns.pixel(q, column) else { continue };
                                let pixel = x.at(image, first_channel + channel, pixel_row, pixel_column);
                                product(pixel, weight, y.at(image, filter, p, q));
                            }
                        }
                    }
                }
            }
        }
    }
}
