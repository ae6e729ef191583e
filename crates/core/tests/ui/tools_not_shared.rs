use helve_core::tools;

struct Local(std::cell::Cell<u64>);

#[tools(crate = helve_core)]
impl Local {
    /// Counts.
    #[tool]
    async fn count(&self) -> u64 {
        self.0.get()
    }
}

fn main() {}
