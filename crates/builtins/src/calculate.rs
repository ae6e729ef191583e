//! The tool `calculate`: exact arithmetic with units. Expressions are untrusted, so time, memory and size are limited.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fend_core::{Context, Interrupt};
use helve_core::{CallContext, ErrorKind, Output, ToolError, tool};
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum length of an expression in characters.
const MAX_LENGTH: usize = 500;
/// Maximum nesting depth of brackets, because the evaluator is recursive.
const MAX_DEPTH: usize = 32;
/// Stack size of the evaluator, in bytes. It is enough for every expression that [`check`] accepts, because operators also recurse.
const STACK: usize = 256 << 20;
/// Maximum number of digits of a result.
const MAX_RESULT: usize = 10_000;
/// Maximum duration of a calculation.
const MAX_TIME: Duration = Duration::from_secs(2);
/// Maximum number of digits of a decimal exponent. The evaluator cannot be interrupted while it computes larger exponents.
const MAX_EXPONENT_DIGITS: usize = 4;
/// Maximum number of concurrent calculations, including cancelled ones that have not stopped yet.
const MAX_RUNNING: usize = 4;

/// The value of an expression.
#[derive(Serialize, JsonSchema)]
struct Calculation {
    /// The value with its unit.
    result: String,
    /// Whether the value is exact, not rounded.
    exact: bool,
}

/// Calculates an expression: numbers, + - * / ^ %, brackets, functions such as sqrt, sin, ln, factorials, constants
/// such as pi, and units. Examples: `15 * 23`, `2^64 + 1`, `17% of 300`, `sqrt(2)`, `10 km in miles`.
#[tool(crate = helve_core, idempotent, timeout = "5s")]
fn calculate(
    /// The expression.
    expression: String,
    cx: &CallContext,
) -> Result<Output, ToolError> {
    check(&expression)?;
    let deadline = Deadline { cx, end: Instant::now() + MAX_TIME };
    let value = on_deep_stack(|| evaluate(&expression, &deadline))?;
    let text = if value.exact { value.result.clone() } else { format!("approximately {}", value.result) };
    Output::of(&value).map(|output| output.with_text(text))
}

/// Rejects expressions that the evaluator cannot handle safely: definitions of functions, which may recurse forever, and operations that
/// cannot be interrupted.
fn check(expression: &str) -> Result<(), ToolError> {
    if expression.chars().count() > MAX_LENGTH {
        return Err(ToolError::invalid_parameters(format!("the expression has more than {MAX_LENGTH} characters; calculate it in steps")));
    }
    if let Some(bad) = expression.chars().find(|character| matches!(character, '\\' | ':' | '=' | ';' | '@') || character.is_control()) {
        let bad = bad.escape_default();
        return Err(ToolError::invalid_parameters(format!(
            "`{bad}` is not allowed in an expression; functions and variables cannot be defined"
        )));
    }
    if let Some(bad) = unstoppable(expression) {
        return Err(ToolError::invalid_parameters(format!("{bad} is not supported in an expression")));
    }
    let mut depth = 0usize;
    for character in expression.chars() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(ToolError::invalid_parameters(format!(
                "brackets are nested more than {MAX_DEPTH} levels deep; calculate it in steps"
            )));
        }
    }
    Ok(())
}

/// Returns the first operation that the evaluator cannot interrupt: a shift, dice or a large decimal exponent.
fn unstoppable(expression: &str) -> Option<&'static str> {
    if expression.contains("<<") || expression.contains(">>") {
        return Some("a shift");
    }
    let bytes = expression.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        let letter_before = index > 0 && (bytes[index - 1].is_ascii_alphabetic() || bytes[index - 1] == b'_');
        let rest = &bytes[index + 1..];
        let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'_').count();
        match byte {
            b'd' | b'D' if !letter_before && digits(rest) > 0 => return Some("dice"),
            b'e' | b'E' if !letter_before => {
                let sign = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
                if digits(&rest[sign..]) > MAX_EXPONENT_DIGITS {
                    return Some("a decimal exponent of more than four digits");
                }
            }
            _ => {}
        }
    }
    None
}

fn evaluate(expression: &str, deadline: &Deadline<'_>) -> Result<Calculation, ToolError> {
    let mut context = Context::new();
    context.disable_rng();
    let result = fend_core::evaluate_with_interrupt(expression, &mut context, deadline);
    if deadline.should_interrupt() {
        return Err(ToolError::failed("the calculation timed out; use smaller numbers"));
    }
    let result = result.map_err(|error| ToolError::failed(format!("cannot calculate the expression: {error}")))?;
    let text = result.get_main_result();
    let (exact, value) = text.strip_prefix("approx. ").map_or((true, text), |rounded| (false, rounded));
    if value.is_empty() {
        return Err(ToolError::invalid_parameters("the expression is empty"));
    }
    if value.len() > MAX_RESULT {
        let digits = value.len();
        return Err(ToolError::failed(format!("the result has {digits} digits; the maximum is {MAX_RESULT}")));
    }
    Ok(Calculation { result: value.to_owned(), exact })
}

/// Runs a closure on a thread with a large stack. The operating system allocates the memory of the stack only when it is used.
fn on_deep_stack<T: Send>(work: impl FnOnce() -> Result<T, ToolError> + Send) -> Result<T, ToolError> {
    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    struct Slot;
    impl Drop for Slot {
        fn drop(&mut self) {
            RUNNING.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let slot = Slot;
    if RUNNING.fetch_add(1, Ordering::Relaxed) >= MAX_RUNNING {
        return Err(ToolError::new(ErrorKind::RateLimited, "too many calculations are running; try again later").retry_after(MAX_TIME));
    }
    let work = move || {
        let _slot = slot;
        work()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("calculate".into()).stack_size(STACK).spawn_scoped(scope, work);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(ToolError::failed("cannot start a thread for the calculation").caused_by(error)),
        }
    })
}

struct Deadline<'a> {
    cx: &'a CallContext,
    end: Instant,
}

impl Interrupt for Deadline<'_> {
    fn should_interrupt(&self) -> bool {
        self.cx.is_cancelled() || Instant::now() >= self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests share the slots of the process, so they wait for a free one.
    fn answer(expression: &str) -> Result<String, String> {
        loop {
            match calculate(expression.to_owned(), &CallContext::default()) {
                Err(error) if error.kind() == ErrorKind::RateLimited => std::thread::yield_now(),
                output => return output.map(|output| output.text).map_err(|error| error.message().to_owned()),
            }
        }
    }

    #[test]
    fn numbers_are_exact_where_they_can_be() {
        for (expression, result) in [
            ("15 * 23", "345"),
            ("2^64 + 1", "18446744073709551617"),
            ("0.1 + 0.2", "0.3"),
            ("17% of 300", "51"),
            ("1/3", "approximately 0.3333333333"),
            ("10 km in m", "10000 m"),
            ("-(-3)", "3"),
            ("1.5e3 + 2E-2", "1500.02"),
            ("5 days in hours", "120 hours"),
        ] {
            assert_eq!(answer(expression).as_deref(), Ok(result), "{expression}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        for expression in ["", "2 +", "hello", "1 / 0", "roll d6", "1 usd in eur", "today"] {
            assert!(answer(expression).is_err(), "{expression}: {:?}", answer(expression));
        }
    }

    /// Without limits, each of these would crash the process or never end.
    #[test]
    fn hostile_expressions_end_in_an_error() {
        let deep = "(".repeat(200) + "1" + &")".repeat(200);
        let omega = r"(\x.x x)(\x.x x)";
        for expression in [
            deep.as_str(),
            omega,
            "f = x: f x; f 1",
            "9^9^9^9",
            "100000!",
            "10^100000",
            "1 << 10000000000",
            "1e-1000000",
            "1000d1000",
            "d10000000",
            "2 D6",
            &"9".repeat(501),
        ] {
            assert!(answer(expression).is_err(), "{expression}");
        }
        // The longest expressions that pass the check must fit the stack.
        for unit in ["-", "+", "2^", "1+", "sqrt ", "not ", "1 m ", "!", "(1)", "1-", "2**", "sin "] {
            let chain = unit.repeat(490 / unit.len()) + "1";
            let _ = answer(&chain);
        }
    }
}
