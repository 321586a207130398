//! Tuples as the arguments of a launch.
//!
//! Anything that implements [`Pass`] can be given to a launch in one call: scalars, buffers with their access, and tuples of those.
//! What takes arguments is an [`Accept`]: a launch that is queued, and one that is recorded into a graph.

use kiln_driver::Access;

use super::builder::Launch;
use crate::buffer::{Element, GpuRef};

/// Something that can be given to a launch.
pub trait Pass<'a> {
    /// Gives it.
    fn pass(self, launch: &mut impl Accept<'a>);
}

/// Something that takes arguments, in the order of the parameters.
pub trait Accept<'a> {
    /// Takes a value.
    fn accept_value<T: Element>(&mut self, value: T);

    /// Takes a buffer and what is done to it.
    fn accept_buffer<T: Element>(&mut self, buffer: &'a GpuRef<T>, access: Access);
}

impl<'a, T> Accept<'a> for Launch<'a, T> {
    #[inline]
    fn accept_value<V: Element>(&mut self, value: V) {
        self.value(value);
    }

    #[inline]
    fn accept_buffer<V: Element>(&mut self, buffer: &'a GpuRef<V>, access: Access) {
        self.buffer(buffer, access);
    }
}

/// A buffer that is read.
#[derive(Debug)]
pub struct In<'a, T>(pub &'a GpuRef<T>);
/// A buffer that is overwritten.
#[derive(Debug)]
pub struct Out<'a, T>(pub &'a GpuRef<T>);
/// A buffer that is read and written.
#[derive(Debug)]
pub struct InOut<'a, T>(pub &'a GpuRef<T>);

impl<'a, T: Element> Pass<'a> for In<'a, T> {
    fn pass(self, launch: &mut impl Accept<'a>) {
        launch.accept_buffer(self.0, Access::Read);
    }
}

impl<'a, T: Element> Pass<'a> for Out<'a, T> {
    fn pass(self, launch: &mut impl Accept<'a>) {
        launch.accept_buffer(self.0, Access::Write);
    }
}

impl<'a, T: Element> Pass<'a> for InOut<'a, T> {
    fn pass(self, launch: &mut impl Accept<'a>) {
        launch.accept_buffer(self.0, Access::ReadWrite);
    }
}

/// A value of any [`Element`] type, such as a `repr(C)` struct. Plain numbers need no wrapper.
#[derive(Clone, Copy, Debug)]
pub struct ByValue<T>(pub T);

impl<'a, T: Element> Pass<'a> for ByValue<T> {
    fn pass(self, launch: &mut impl Accept<'a>) {
        launch.accept_value(self.0);
    }
}

macro_rules! scalars {
    ($($type:ty),*) => {$(
        impl<'a> Pass<'a> for $type {
            fn pass(self, launch: &mut impl Accept<'a>) {
                launch.accept_value(self);
            }
        }
    )*};
}

scalars!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<'a, $($name: Pass<'a>),*> Pass<'a> for ($($name,)*) {
            #[allow(non_snake_case, reason = "the type parameters name the parts")]
            fn pass(self, launch: &mut impl Accept<'a>) {
                let ($($name,)*) = self;
                $($name.pass(launch);)*
            }
        }
    };
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
tuples!(A B C D E F G H I);
tuples!(A B C D E F G H I J);
tuples!(A B C D E F G H I J K);
tuples!(A B C D E F G H I J K L);
