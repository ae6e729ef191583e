//! What it costs to open a folder with a thousand tool files.

use std::fmt::Write;
use std::fs;
use std::hint::black_box;
use std::path::Path;

use crate::cpu;
use crate::report::Report;

const FILES: usize = 1_000;

fn write_files(folder: &Path) {
    let (commands, native) = (folder.join("tools/builtin"), folder.join("tools/native"));
    fs::create_dir_all(&commands).expect("a folder");
    fs::create_dir_all(&native).expect("a folder");
    for number in 0..FILES {
        let mut text =
            format!("name: tool_{number}\ndescription: Does thing number {number} and says so.\nidempotent: true\ntimeout: 10s\n");
        text.push_str(
            "parameters:\n  - {name: query, type: string, description: words to look for}\n  - {name: count, type: integer, default: 10}\n",
        );
        if number % 2 == 0 {
            text.push_str("command: [\"python3\", \"tool.py\"]\n");
            fs::write(commands.join(format!("{number}.yaml")), text).expect("a file");
        } else {
            write!(
                text,
                "api_url: https://api.example.com/{number}\nquery: {{q: \"{{{{ query }}}}\", n: \"{{{{ count }}}}\"}}\nresult: /items\n"
            )
            .expect("a text");
            fs::write(native.join(format!("{number}.yaml")), text).expect("a file");
        }
    }
}

/// Measures a project.
pub fn measure(report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder");
    write_files(folder.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _inside = runtime.enter();
    let bare = cpu::least(5, || {
        for kind in ["tools/builtin", "tools/native"] {
            for entry in fs::read_dir(folder.path().join(kind)).expect("a folder") {
                black_box(fs::read_to_string(entry.expect("an entry").path()).expect("a file"));
            }
        }
    });
    let opened = cpu::least(5, || {
        let helve = helve::project::OpenOptions::new().state(None).builtins(true).open(folder.path()).expect("a project");
        assert!(helve.catalogue().list().len() >= FILES);
        assert!(helve.project().expect("a project").diagnostics.is_empty());
    });
    let millis = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    report.row("opening a folder with 1,000 tool files", millis(opened), "ms", ("only reading the files", millis(bare)), Some(150.0));
}
