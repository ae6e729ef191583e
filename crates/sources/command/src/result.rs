//! Turns the output and exit status of a program into a result or an error.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use helve_core::json::{self, JsonLimits};
use helve_core::{ErrorKind, Output, Redactor, ToolError};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::definition::OutputFormat;
use crate::process::ProgramOutput;
use helve_process::keep_end;

/// Maximum size of a failed program's output in the error message, in bytes.
const MAX_EXCERPT: usize = 2000;
/// Maximum length of invalid output in the error message, in characters.
const MAX_SHOWN: usize = 200;

/// Converts the output of a program to a result, or to an error if the exit status is not 0 or the output is not valid JSON.
pub(crate) fn read(finished: &ProgramOutput, format: OutputFormat, redactor: &Redactor) -> Result<Output, ToolError> {
    if !finished.status.success() {
        return Err(failure(finished, redactor));
    }
    match format {
        OutputFormat::Text => Ok(text(&finished.stdout)),
        OutputFormat::Auto => Ok(structured(&finished.stdout).map_or_else(|| text(&finished.stdout), Output::data)),
        OutputFormat::Json => json::parse(&finished.stdout, limits(&finished.stdout)).map(Output::data).map_err(|error| {
            let shown = redactor.log_text(String::from_utf8_lossy(&finished.stdout).trim(), MAX_SHOWN);
            let shown = if shown.is_empty() { "it wrote nothing".to_owned() } else { format!("it wrote: {shown}") };
            ToolError::new(ErrorKind::InvalidOutput, format!("the program's output is not valid JSON: {error}; {shown}"))
        }),
    }
}

/// Returns limits for the depth and the number of values. The size was already limited while reading.
fn limits(bytes: &[u8]) -> JsonLimits {
    JsonLimits { bytes: bytes.len(), depth: 100, nodes: 250_000 }
}

fn structured(bytes: &[u8]) -> Option<Value> {
    let is_structure = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['));
    if is_structure { json::parse(bytes, limits(bytes)).ok() } else { None }
}

fn text(bytes: &[u8]) -> Output {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_suffix('\n').map_or(&*text, |line| line.strip_suffix('\r').unwrap_or(line));
    Output::text(text)
}

fn failure(finished: &ProgramOutput, redactor: &Redactor) -> ToolError {
    let mut said = finished.stderr.trim().to_owned();
    let mut stream = "stderr";
    if said.is_empty() {
        // Redact before shortening: the redactor would not recognise half a secret.
        let stdout = String::from_utf8_lossy(&finished.stdout);
        redactor.clean(&stdout).as_deref().unwrap_or(&stdout).trim().clone_into(&mut said);
        stream = "stdout";
    }
    let is_cut = said.len() > MAX_EXCERPT;
    keep_end(&mut said, MAX_EXCERPT);
    let said = match (said.is_empty(), is_cut) {
        (true, _) => " and wrote nothing".to_owned(),
        (false, false) => format!(" and wrote to {stream}:\n{said}"),
        (false, true) => format!(" and wrote to {stream} at the end:\n…{said}"),
    };
    let (how, key, value) = ending(finished.status);
    ToolError::failed(format!("the program {how}{said}")).with(key, value)
}

/// Describes an exit status: as text for the message, and as the key and value of an error detail.
fn ending(status: ExitStatus) -> (String, &'static str, Value) {
    match (status.code(), status.signal()) {
        (Some(code), _) => (format!("exited with status {code}"), "exit_status", json!(code)),
        (None, Some(number)) => {
            let known = Signal::from_named_raw(number).map(|signal| format!("{signal:?}").trim_matches('"').replace("Signal::", "SIG"));
            let name = known.unwrap_or_else(|| number.to_string());
            (format!("was killed by signal {name}"), "signal", json!(name))
        }
        (None, None) => (format!("ended: {status}"), "status", json!(status.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(status: i32, stdout: &[u8], stderr: &str, format: OutputFormat) -> Result<Output, ToolError> {
        let redactor = Redactor::default();
        redactor.add(["canary-0123456789".to_owned().into()]);
        let status = ExitStatus::from_raw(status);
        read(&ProgramOutput { status, stdout: stdout.to_vec(), stderr: stderr.to_owned() }, format, &redactor)
    }

    fn good(stdout: &[u8], format: OutputFormat) -> (String, Value) {
        let output = result(0, stdout, "ignored", format).expect("an output");
        (output.text, output.data)
    }

    #[test]
    fn formats_are_kept() {
        use OutputFormat::{Auto, Json, Text};
        for (stdout, format, text, data) in [
            (&b"hi\n"[..], Auto, "hi", json!(null)),
            (b"hi\n\n", Auto, "hi\n", json!(null)),
            (b"hi\r\n", Auto, "hi", json!(null)),
            (b" {\"a\": 1}\n", Auto, "{\"a\":1}", json!({"a": 1})),
            (b"[1, 2]", Auto, "[1,2]", json!([1, 2])),
            (b"{\"error\": \"x\"}", Auto, "{\"error\":\"x\"}", json!({"error": "x"})),
            (b"{not json}", Auto, "{not json}", json!(null)),
            (b"[1] and more", Auto, "[1] and more", json!(null)),
            (b"42", Auto, "42", json!(null)),
            (b"", Auto, "", json!(null)),
            (b"{\"a\": 1}", Text, "{\"a\": 1}", json!(null)),
            (b"42\n", Json, "42", json!(42)),
            (b"\"x\"", Json, "x", json!(null)),
            (b"a\xff\x00b", Auto, "a\u{fffd}\0b", json!(null)),
        ] {
            assert_eq!(good(stdout, format), (text.to_owned(), data), "{stdout:?} {format:?}");
        }
    }

    #[test]
    fn json_that_is_none_is_an_invalid_output() {
        for (stdout, message) in [
            (&b""[..], "it wrote nothing"),
            (b"Hello\n", "it wrote: Hello"),
            (b"\"\xff\"", "not valid JSON"),
            (b"{\"a\":1,\"a\":2}", "appears twice"),
        ] {
            let error = result(0, stdout, "", OutputFormat::Json).expect_err("no JSON");
            assert!(error.kind() == ErrorKind::InvalidOutput && error.message().contains(message), "{error}");
        }
        let secret = "x".repeat(94) + "canary-0123456789" + &"y".repeat(200);
        let error = result(0, secret.as_bytes(), "", OutputFormat::Json).expect_err("no JSON");
        assert!(!error.message().contains("canary"), "{error}");
    }

    #[test]
    fn deep_json_is_text() {
        let deep = "[".repeat(5000) + &"]".repeat(5000);
        assert_eq!(good(deep.as_bytes(), OutputFormat::Auto), (deep, json!(null)));
    }

    #[test]
    fn failures_say_how_and_why() {
        let message = |status, stdout: &[u8], stderr: &str| {
            let error = result(status, stdout, stderr, OutputFormat::Json).expect_err("a failure");
            assert_eq!(error.kind(), ErrorKind::Failed);
            (error.message().to_owned(), Value::Object(error.details().clone()))
        };
        assert_eq!(
            message(3 << 8, b"out", "no such row\n"),
            ("the program exited with status 3 and wrote to stderr:\nno such row".into(), json!({"exit_status": 3}))
        );
        assert_eq!(message(1 << 8, b"out", " \n").0, "the program exited with status 1 and wrote to stdout:\nout");
        assert_eq!(
            message(9, b"", ""),
            ("the program was killed by signal SIGKILL and wrote nothing".into(), json!({"signal": "SIGKILL"}))
        );
        assert_eq!(message(11, b"", "").1, json!({"signal": "SIGSEGV"}));
        let long = "é".repeat(3000) + "the cause";
        let (said, _) = message(1 << 8, b"", &long);
        assert!(said.ends_with("the cause") && said.contains("at the end:\n…é") && said.len() < 2200, "{said}");
        let (said, _) = message(1 << 8, ("canary-0123456789".to_owned() + &"x".repeat(MAX_EXCERPT - 5)).as_bytes(), "");
        assert!(!said.contains("6789") && said.contains("xxx"), "{said}");
    }
}
