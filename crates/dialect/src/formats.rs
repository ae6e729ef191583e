//! All formats, in the order in which `auto` prefers them if the text is ambiguous.

mod called;
mod objects;
mod tagged;

use crate::format::{Format, Keys, Marks, Shape};

/// A format without special features.
const PLAIN: Format = Format {
    name: "",
    who: "",
    section: Marks::NONE,
    call: Marks::NONE,
    shape: Shape::Object(Keys::new("name", "arguments")),
    list: false,
    bare: false,
    weak: false,
    noise: &[],
    thinks: &[],
    markup: &[],
};

/// Number of rows.
pub(crate) const COUNT: usize = objects::ROWS.len() + tagged::ROWS.len() + called::ROWS.len();

/// All rows. A format with two spellings has two rows of the same name.
pub(crate) fn all() -> impl Iterator<Item = &'static Format> + Clone {
    objects::ROWS.iter().chain(&tagged::ROWS).chain(&called::ROWS)
}
