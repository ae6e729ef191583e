//! Tools that write down that they ran before they do anything.

use std::sync::Arc;
use std::time::Duration;

use helve_core::{Digest, ListSource, Output, Rules, ToolSpec};
use helve_testkit::{fake, spec};
use helve_tools::Catalogue;

use crate::log::{Log, Paths};

/// Duration of a slow call: long enough to freeze its process.
const SLOW: Duration = Duration::from_millis(300);

/// Each tool, and whether it may run twice.
const TOOLS: [(&str, bool); 5] = [("once", false), ("again", true), ("poison", true), ("slow-once", false), ("slow-again", true)];

/// A tool that calls are for.
#[derive(Clone)]
pub(super) struct Kind {
    pub(super) spec: Arc<ToolSpec>,
    pub(super) definition: Digest,
    pub(super) idempotent: bool,
}

/// All tools. Some take long, and one takes its process down.
pub(super) fn tools(paths: &Paths) -> Catalogue {
    let (ran, begun) = (Arc::new(Log::open(&paths.ran())), Arc::new(Log::open(&paths.begun())));
    let tool = |(name, idempotent): (&str, bool)| {
        let (ran, begun) = (ran.clone(), begun.clone());
        fake(spec(name).with_rules(Rules::default().idempotent(idempotent)), move |call, _| {
            let (ran, begun) = (ran.clone(), begun.clone());
            Box::pin(async move {
                ran.add(&call.id);
                let time = match &*call.tool {
                    "poison" => std::process::abort(),
                    "once" | "again" => Duration::from_micros(fastrand::u64(..4000)),
                    _ => {
                        begun.add(&(std::process::id(), call.id));
                        SLOW
                    }
                };
                tokio::time::sleep(time).await;
                // Each run has a result of its own, so that one cannot pass for another.
                Ok(Output::text(format!("{:08x}", fastrand::u32(..))))
            })
        })
    };
    let catalogue = Catalogue::new();
    catalogue.add_source(Arc::new(ListSource::new("torture", TOOLS.map(tool))));
    catalogue
}

/// One of them.
pub(super) fn kind(catalogue: &Catalogue, name: &str) -> Kind {
    let entry = catalogue.get(name).expect("a tool");
    Kind { spec: entry.spec().clone(), definition: entry.digest(), idempotent: entry.spec().rules().idempotent }
}
