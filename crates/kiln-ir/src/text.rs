//! The text form, `.kir`.

mod word;

pub(crate) use word::is_name;
