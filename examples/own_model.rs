//! A custom model that repeats the input.
//!
//! Run it with `cargo run -p helve --all-features --example own_model`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use helve::model::{ModelError, model_fn};
use helve::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> helve::Result<()> {
    let echo = model_fn("echo", |request| async move {
        let said = request.last_user_text().ok_or(ModelError::Refused("nothing was said".into()))?;
        Ok::<_, ModelError>(format!("You said: {said}"))
    });
    println!("{}", Agent::new(echo).run("Good morning").await?);
    Ok(())
}
