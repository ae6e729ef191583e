//! Arithmetic, exact where it can be, with units. The expression is a stranger's, so it is bounded on every side.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fend_core::{Context, Interrupt};
use helve_core::{CallContext, ErrorKind, Output, ToolError, tool};
use schemars::JsonSchema;
use serde::Serialize;

/// Longer expressions are programs.
const MAX_LENGTH: usize = 500;
/// Brackets inside each other; the evaluator recurses.
const MAX_DEPTH: usize = 32;
/// The evaluator recurses for operators too; every chain that [`check`] lets through fits this stack.
const STACK: usize = 256 << 20;
/// Digits a model could still use.
const MAX_RESULT: usize = 10_000;
const MAX_TIME: Duration = Duration::from_secs(2);
/// Digits of a decimal exponent: larger ones are worked out before the clock is looked at.
const MAX_EXPONENT_DIGITS: usize = 4;
/// Calculations at once, those included that were given up and have not noticed yet.
const MAX_RUNNING: usize = 4;

/// What an expression comes to.
#[derive(Serialize, JsonSchema)]
struct Answer {
    /// The value, with its unit.
    result: String,
    /// Whether no digit was rounded away.
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
    let stop = Stop { cx, end: Instant::now() + MAX_TIME };
    let answer = on_deep_stack(|| evaluate(&expression, &stop))?;
    let text = if answer.exact { answer.result.clone() } else { format!("approximately {}", answer.result) };
    Output::of(&answer).map(|output| output.with_text(text))
}

/// Refuses what the evaluator could not survive. It can define functions, and a function can call itself forever.
fn check(expression: &str) -> Result<(), ToolError> {
    if expression.chars().count() > MAX_LENGTH {
        return Err(ToolError::invalid_parameters(format!("an expression has at most {MAX_LENGTH} characters; calculate it in steps")));
    }
    if let Some(bad) = expression.chars().find(|character| matches!(character, '\\' | ':' | '=' | ';' | '@') || character.is_control()) {
        let bad = bad.escape_default();
        return Err(ToolError::invalid_parameters(format!(
            "`{bad}` has no place in an expression; functions and variables cannot be defined"
        )));
    }
    if let Some(bad) = unstoppable(expression) {
        return Err(ToolError::invalid_parameters(format!("{bad} cannot be calculated here")));
    }
    let mut depth = 0usize;
    for character in expression.chars() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(ToolError::invalid_parameters(format!("more than {MAX_DEPTH} brackets inside each other; calculate it in steps")));
        }
    }
    Ok(())
}

/// What the evaluator works out without looking at the clock: shifts, dice and large decimal exponents.
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

fn evaluate(expression: &str, stop: &Stop<'_>) -> Result<Answer, ToolError> {
    let mut context = Context::new();
    context.disable_rng();
    let result = fend_core::evaluate_with_interrupt(expression, &mut context, stop);
    if stop.should_interrupt() {
        return Err(ToolError::failed("the calculation takes too long; ask for smaller numbers"));
    }
    let result = result.map_err(|error| ToolError::failed(format!("cannot calculate this: {error}")))?;
    let text = result.get_main_result();
    let (exact, value) = text.strip_prefix("approx. ").map_or((true, text), |rounded| (false, rounded));
    if value.is_empty() {
        return Err(ToolError::invalid_parameters("the expression is empty"));
    }
    if value.len() > MAX_RESULT {
        let digits = value.len();
        return Err(ToolError::failed(format!("the result has {digits} digits, more than the {MAX_RESULT} that are given back")));
    }
    Ok(Answer { result: value.to_owned(), exact })
}

/// Runs work on a thread whose stack is only as real as it is used.
fn on_deep_stack<T: Send>(work: impl FnOnce() -> Result<T, ToolError> + Send) -> Result<T, ToolError> {
    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    struct Place;
    impl Drop for Place {
        fn drop(&mut self) {
            RUNNING.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let place = Place;
    if RUNNING.fetch_add(1, Ordering::Relaxed) >= MAX_RUNNING {
        return Err(ToolError::new(ErrorKind::RateLimited, "too many calculations are running").retry_after(MAX_TIME));
    }
    let work = move || {
        let _place = place;
        work()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("calculate".into()).stack_size(STACK).spawn_scoped(scope, work);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(ToolError::failed("there is no thread to calculate on").caused_by(error)),
        }
    })
}

struct Stop<'a> {
    cx: &'a CallContext,
    end: Instant,
}

impl Interrupt for Stop<'_> {
    fn should_interrupt(&self) -> bool {
        self.cx.is_cancelled() || Instant::now() >= self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests share the places of this process, so they wait for one.
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

    /// Each of these would end the process, or never end, if it were not bounded.
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
        // The longest chains that pass the check must fit the stack of a worker thread.
        for unit in ["-", "+", "2^", "1+", "sqrt ", "not ", "1 m ", "!", "(1)", "1-", "2**", "sin "] {
            let chain = unit.repeat(490 / unit.len()) + "1";
            let _ = answer(&chain);
        }
    }
}
