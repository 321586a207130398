//! Parameters of a program as Rust types: what a [`Typed`](crate::Typed) handle is made of.

use std::any::type_name;
use std::marker::PhantomData;

use kiln_ir::{Buffer, Role, ScalarParameter, Type};
use kiln_runtime::Element;

use crate::element_kind::ElementKind;

/// A buffer the program reads. Given as a slice, an array or a vector of the host, or as a [`GpuRef`](kiln_runtime::GpuRef).
pub struct Read<T>(PhantomData<fn() -> T>);

/// A buffer the program writes. Given as a vector of the host, alone or as `(length, &mut vector)`, or as a [`GpuRef`](kiln_runtime::GpuRef).
pub struct Write<T>(PhantomData<fn() -> T>);

/// A buffer the program reads and writes. Given as a vector of the host or as a [`GpuRef`](kiln_runtime::GpuRef).
pub struct ReadWrite<T>(PhantomData<fn() -> T>);

/// A buffer the program keeps between dispatches. Given as a [`GpuRef`](kiln_runtime::GpuRef).
pub struct Kept<T>(PhantomData<fn() -> T>);

/// A scalar.
pub struct ProgramValue<T>(PhantomData<fn() -> T>);

/// What a type says of a parameter.
pub struct Said {
    what: What,
    /// As it stands in the handle's type.
    text: String,
}

enum What {
    Buffer(Role, ElementKind),
    Scalar(Type),
}

impl Said {
    pub(crate) fn is_buffer(&self) -> bool {
        matches!(self.what, What::Buffer(..))
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn fits_buffer(&self, buffer: &Buffer) -> bool {
        matches!(self.what, What::Buffer(role, element) if role == buffer.role && element.fits(buffer.element))
    }

    pub(crate) fn fits_scalar(&self, scalar: &ScalarParameter) -> bool {
        matches!(self.what, What::Scalar(ty) if ty == scalar.ty)
    }

    fn buffer<T: Element>(word: &str, role: Role) -> Self {
        let text = format!("{word}<{}>", type_name::<T>());
        Self { what: What::Buffer(role, ElementKind::of::<T>()), text }
    }
}

/// A parameter of a program: [`Read`], [`Write`], [`ReadWrite`], [`Kept`] or [`ProgramValue`].
pub trait ProgramParameter: sealed::Sealed {
    /// What it says.
    #[doc(hidden)]
    fn said() -> Said;
}

impl<T: Element> ProgramParameter for Read<T> {
    fn said() -> Said {
        Said::buffer::<T>("Read", Role::Input)
    }
}

impl<T: Element> ProgramParameter for Write<T> {
    fn said() -> Said {
        Said::buffer::<T>("Write", Role::Output)
    }
}

impl<T: Element> ProgramParameter for ReadWrite<T> {
    fn said() -> Said {
        Said::buffer::<T>("ReadWrite", Role::InOut)
    }
}

impl<T: Element> ProgramParameter for Kept<T> {
    fn said() -> Said {
        Said::buffer::<T>("Kept", Role::Persistent)
    }
}

impl<T: kiln_ir::KernelElement> ProgramParameter for ProgramValue<T> {
    fn said() -> Said {
        Said { what: What::Scalar(T::TYPE), text: format!("Value<{}>", type_name::<T>()) }
    }
}

mod sealed {
    /// Only this crate says what a parameter can be.
    pub trait Sealed {}

    impl<T> Sealed for super::Read<T> {}
    impl<T> Sealed for super::Write<T> {}
    impl<T> Sealed for super::ReadWrite<T> {}
    impl<T> Sealed for super::Kept<T> {}
    impl<T> Sealed for super::ProgramValue<T> {}
}
