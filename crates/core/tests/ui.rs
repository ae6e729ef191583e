//! What the compiler says to someone who uses `#[tool]` wrongly.
//!
//! The texts in `ui/*.stderr` are for people, and quote the compiler that `rust-toolchain.toml` pins. After
//! `TRYBUILD=overwrite cargo test -p helve-core --test ui`, read them.

#![allow(clippy::expect_used, reason = "a test that goes wrong should stop")]

const TOOLCHAIN: &str = include_str!("../../../rust-toolchain.toml");

#[test]
fn mistakes_are_explained() {
    let pinned = TOOLCHAIN.lines().find_map(|line| line.strip_prefix("channel = ")).expect("a channel").trim_matches('"');
    let least = env!("CARGO_PKG_RUST_VERSION");
    assert!(
        pinned.starts_with(least),
        "rust-toolchain.toml pins {pinned}, but rust-version in Cargo.toml is {least}; change both together"
    );
    let version = std::process::Command::new("rustc").arg("-V").output().expect("rustc runs").stdout;
    let version = String::from_utf8_lossy(&version);
    assert!(
        version.starts_with(&format!("rustc {pinned} ")),
        "the expected texts quote rustc {pinned}, but this is {}. Run the tests with the pinned toolchain (rustup does that by itself; \
         unset RUSTUP_TOOLCHAIN). To move to another one, change rust-toolchain.toml and rust-version in Cargo.toml, \
         run TRYBUILD=overwrite cargo test -p helve-core --test ui, and read the difference",
        version.trim_end()
    );
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
