//! Errors of tools: what keeps its kind.

use helve_core::{ErrorKind, ToolError, tool};
use serde_json::json;

use crate::run;

#[tokio::test]
async fn errors_keep_their_kind() {
    /// Fails in a way of its own.
    #[tool(crate = helve_core)]
    async fn known(kind: String) -> Result<String, ToolError> {
        if kind == "none" { Ok(kind) } else { Err(ToolError::new(ErrorKind::RateLimited, "slow down")) }
    }

    /// Fails with another's error.
    #[tool(crate = helve_core)]
    fn foreign(number: String) -> Result<i64, std::num::ParseIntError> {
        number.parse()
    }

    /// Fails with an alias of `Result`.
    #[tool(crate = helve_core)]
    async fn alias() -> std::io::Result<()> {
        Err(std::io::Error::other("no disk"))
    }

    assert_eq!(run(&known::tool(), json!({"kind": "none"})).await.expect("a text").text, "none");
    assert_eq!(run(&known::tool(), json!({"kind": "x"})).await.expect_err("slow").kind(), ErrorKind::RateLimited);
    assert_eq!(run(&foreign::tool(), json!({"number": "7"})).await.expect("a number").data, json!(7));
    let error = run(&foreign::tool(), json!({"number": "x"})).await.expect_err("no number");
    assert_eq!((error.kind(), error.message()), (ErrorKind::Failed, "invalid digit found in string"));
    assert_eq!(run(&alias::tool(), json!({})).await.expect_err("no disk").message(), "no disk");
}

type Fallible<T> = Result<T, String>;

#[tokio::test]
async fn an_alias_of_result_is_a_result() {
    /// Fails with an error that could be written as JSON.
    #[tool(crate = helve_core)]
    async fn aliased(n: i64) -> Fallible<i64> {
        if n == 0 { Ok(7) } else { Err(format!("{n} is wrong")) }
    }

    /// Promises what the alias holds.
    #[tool(output, crate = helve_core)]
    fn promised(n: i64) -> Fallible<i64> {
        aliased_sync(n)
    }

    fn aliased_sync(n: i64) -> Fallible<i64> {
        n.checked_sub(1).filter(|n| *n >= 0).ok_or_else(|| "too small".into())
    }

    assert_eq!(run(&aliased::tool(), json!({"n": 0})).await.expect("a number").data, json!(7));
    let error = run(&aliased::tool(), json!({"n": 9})).await.expect_err("an error is no result");
    assert_eq!((error.kind(), error.message()), (ErrorKind::Failed, "9 is wrong"));
    assert_eq!(promised::tool().spec().output().expect("a promise").value()["type"], "integer");
    assert_eq!(run(&promised::tool(), json!({"n": 0})).await.expect_err("too small").message(), "too small");
}

#[derive(Debug)]
struct Wrapped(ToolError);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no table")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Gives a view of its error and hides it when it is boxed, as `anyhow::Error` does.
#[derive(Debug)]
struct Report(Box<dyn std::error::Error + Send + Sync>);

impl From<Report> for Box<dyn std::error::Error + Send + Sync> {
    fn from(report: Report) -> Self {
        format!("{report:?}").into()
    }
}

impl AsRef<dyn std::error::Error + Send + Sync> for Report {
    fn as_ref(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.0
    }
}

#[tokio::test]
async fn an_error_inside_another_keeps_its_kind() {
    fn busy() -> Result<i64, ToolError> {
        Err(ToolError::new(ErrorKind::RateLimited, "too many"))
    }

    /// Boxes its error.
    #[tool(crate = helve_core)]
    async fn boxed() -> Result<i64, Box<dyn std::error::Error + Send + Sync>> {
        Ok(busy()?)
    }

    /// Boxes its error for this thread.
    #[tool(crate = helve_core)]
    async fn boxed_here() -> Result<i64, Box<dyn std::error::Error>> {
        Ok(busy()?)
    }

    /// Wraps its error.
    #[tool(crate = helve_core)]
    fn wrapped() -> Result<i64, Wrapped> {
        busy().map_err(Wrapped)
    }

    /// Reports its error.
    #[tool(crate = helve_core)]
    async fn reported() -> Result<i64, Report> {
        busy().map_err(|error| Report(error.into()))
    }

    /// Takes any error.
    #[tool(output, crate = helve_core)]
    async fn any(text: String) -> helve_core::Result<i64> {
        let number: i64 = text.parse()?;
        let number = (number > 0).then_some(number).ok_or("not above zero")?;
        if number > 100 { Ok(busy()?) } else { Ok(number) }
    }

    for (tool, message) in [
        (boxed::tool(), "too many"),
        (boxed_here::tool(), "too many"),
        (wrapped::tool(), "no table: too many"),
        (reported::tool(), "too many"),
    ] {
        let error = run(&tool, json!({})).await.expect_err("busy");
        assert_eq!((error.kind(), error.message()), (ErrorKind::RateLimited, message), "{}", tool.spec().name());
    }
    let any = any::tool();
    assert_eq!(any.spec().output().expect("a promise").value()["type"], "integer");
    assert_eq!(run(&any, json!({"text": "7"})).await.expect("a number").data, json!(7));
    for (text, kind, message) in [
        ("x", ErrorKind::Failed, "invalid digit found in string"),
        ("-1", ErrorKind::Failed, "not above zero"),
        ("101", ErrorKind::RateLimited, "too many"),
    ] {
        let error = run(&any, json!({"text": text})).await.expect_err("an error");
        assert_eq!((error.kind(), error.message()), (kind, message));
    }
}
