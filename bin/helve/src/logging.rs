//! Logs to stderr, including panics, with secrets redacted.

use std::io::{self, Write};

use helve::secret::Redactor;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Starts logging: warnings by default, calls with `-v`, Helve's debug messages with `-vv`. `HELVE_LOG` overrides the level.
pub fn start(verbose: u8, redactor: &Redactor) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "helve=debug,info",
        _ => "helve=trace,debug",
    };
    let wanted = helve::internal::environment::var("HELVE_LOG").filter(|wanted| !wanted.trim().is_empty());
    let filter = EnvFilter::try_new(wanted.as_deref().unwrap_or(level)).unwrap_or_else(|error| {
        crate::terminal::error(&format!("HELVE_LOG is ignored: {error}"), Some("write a level such as `info` or `helve=debug`"));
        EnvFilter::new(level)
    });
    let coloured = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let writer = RedactingWriter(redactor.clone());
    tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_ansi(coloured).with_writer(writer).init();
    let redactor = redactor.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.to_string();
        let clean = redactor.clean(&text).unwrap_or(text);
        tracing::error!(panic = %helve::internal::printable::escape(&clean), "panicked");
    }));
}

/// Writes log lines to stderr without known secrets. Each `write` must be one complete line.
struct RedactingWriter(Redactor);

impl<'a> MakeWriter<'a> for RedactingWriter {
    type Writer = RedactingLine<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        RedactingLine(&self.0)
    }
}

struct RedactingLine<'a>(&'a Redactor);

impl Write for RedactingLine<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        io::stderr().write_all(self.0.clean(&text).unwrap_or_else(|| text.into_owned()).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
