//! The Rust blocks of README.md and of the guide, as tests: `cargo test -p helve --all-features --doc`.
//!
//! Every block is a complete program or stands alone, so that a reader can paste it. A block that needs an API key or a project is
//! `no_run`.

/// Defines a type whose documentation contains the blocks of one page.
macro_rules! page {
    ($name:ident, $path:literal) => {
        #[doc = include_str!(concat!("../../../", $path))]
        #[derive(Debug)]
        struct $name;
    };
}

page!(Readme, "README.md");
page!(Agents, "docs/guide/agents.md");
page!(Dialects, "docs/guide/dialects.md");
page!(Functions, "docs/guide/functions.md");
page!(Models, "docs/guide/models.md");
page!(Project, "docs/guide/project.md");
page!(Store, "docs/guide/store.md");
