//! The traits of Rust values that can be arguments of a typed program.

use kiln_runtime::{Element, GpuRef};

use super::bindings::Bindings;
use super::parameter::{Kept, ProgramParameter, ProgramValue, Read, ReadWrite, Said, Write};

/// Something that can be given for a [`ProgramParameter`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for the parameter `{P}`",
    label = "the program has `{P}` here",
    note = "`Read<T>` takes `&[T]`, `&[T; N]`, `&Vec<T>` or `&GpuRef<T>`; `Write<T>` takes `&mut Vec<T>`, `(usize, &mut Vec<T>)` or `&GpuRef<T>`",
    note = "`ReadWrite<T>` takes `&mut Vec<T>` or `&GpuRef<T>`; `Kept<T>` takes `&GpuRef<T>`; `Value<T>` takes a `T`"
)]
pub trait Argument<'a, P>: Sized {
    /// Binds it to the name the parameter has in the program.
    #[doc(hidden)]
    fn bind(self, name: &str, to: Bindings<'a>) -> Bindings<'a>;
}

impl<'a, T: Element> Argument<'a, Read<T>> for &'a [T] {
    fn bind(self, name: &str, to: Bindings<'a>) -> Bindings<'a> {
        to.input(name, self)
    }
}

impl<'a, T: Element> Argument<'a, Read<T>> for &'a Vec<T> {
    fn bind(self, name: &str, to: Bindings<'a>) -> Bindings<'a> {
        to.input(name, self)
    }
}

impl<'a, T: Element, const N: usize> Argument<'a, Read<T>> for &'a [T; N] {
    fn bind(self, name: &str, to: Bindings<'a>) -> Bindings<'a> {
        to.input(name, self)
    }
}

impl<'a, T: Element> Argument<'a, ReadWrite<T>> for &'a mut Vec<T> {
    fn bind(self, name: &str, to: Bindings<'a>) -> Bindings<'a> {
        to.in_out(name, self)
    }
}

impl<'a, T: Element> Argument<'a, Write<T>> for &'a mut Vec<T> {
    fn bind(self, name: &str, to: Bindings<'a>) -> Bindings<'a> {
        to.output(name, self)
    }
}

impl<'a, T: Element> Argument<'a, Write<T>> for (usize, &'a mut Vec<T>) {
    fn bind(self, name: &str, to: Bindings<'a>) -> Bindings<'a> {
        to.output_of(name, self.0, self.1)
    }
}

impl<'a, T: kiln_ir::KernelElement> Argument<'a, ProgramValue<T>> for T {
    fn bind(self, name: &str, to: Bindings<'a>) -> Bindings<'a> {
        to.scalar(name, self)
    }
}

macro_rules! resident {
    ($($parameter:ident)*) => {$(
        impl<'a, T: Element> Argument<'a, $parameter<T>> for &GpuRef<T> {
            fn bind(self, name: &str, to: Bindings<'a>) -> Bindings<'a> {
                to.resident(name, self)
            }
        }
    )*};
}

resident! { Read Write ReadWrite Kept }

/// The parameters of a program: a tuple of up to twelve [`ProgramParameter`]s. The n-th buffer among them is the n-th buffer the program declares, the
/// n-th scalar is its n-th scalar, and buffers and scalars may be mixed as one likes.
pub trait Parameters {
    /// What it says of each.
    #[doc(hidden)]
    fn said() -> Vec<Said>;
}

/// A tuple that can be given for the [`Parameters`] of a program.
#[diagnostic::on_unimplemented(
    message = "the program takes `{P}`, and this tuple has other elements",
    label = "not as many arguments as the program has parameters, or not of their types"
)]
pub trait Arguments<'a, P> {
    /// Binds each to the name its parameter has in the program.
    #[doc(hidden)]
    fn bind(self, names: &[String]) -> Bindings<'a>;
}

macro_rules! tuples {
    ($(($($parameter:ident $argument:ident $at:tt),+))*) => {$(
        impl<$($parameter: ProgramParameter),+> Parameters for ($($parameter,)+) {
            fn said() -> Vec<Said> {
                vec![$($parameter::said()),+]
            }
        }

        impl<'a, $($parameter, $argument: Argument<'a, $parameter>),+> Arguments<'a, ($($parameter,)+)>
            for ($($argument,)+)
        {
            fn bind(self, names: &[String]) -> Bindings<'a> {
                let name = |at: usize| names.get(at).map_or("", String::as_str);
                let bindings = Bindings::new();
                $(let bindings = self.$at.bind(name($at), bindings);)+
                bindings
            }
        }
    )*};
}

tuples! {
    (P0 A0 0)
    (P0 A0 0, P1 A1 1)
    (P0 A0 0, P1 A1 1, P2 A2 2)
    (P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3)
    (P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4)
    (P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5)
    (P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6)
    (P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7)
    (P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8)
    (P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9)
    (P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10)
    (P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10, P11 A11 11)
}
