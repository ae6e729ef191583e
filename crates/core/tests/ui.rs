//! What the compiler says to someone who uses `#[tool]` wrongly.
//!
//! The texts in `ui/*.stderr` are for people: after `TRYBUILD=overwrite cargo test -p helve-core --test ui`, read them.

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
