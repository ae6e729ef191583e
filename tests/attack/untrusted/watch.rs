//! A command under observation: what it writes, starts and connects to as strace sees it, and which variables it reads as its log says.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::folder::has;

/// A command that takes longer hangs.
const LONGEST: Duration = Duration::from_mins(1);

/// The calls of the system that change a file, start a program, or reach another process. Not every machine has all of them.
const CALLS: &str = "trace=?open,openat,?openat2,?creat,?truncate,?rename,?renameat,renameat2,?unlink,unlinkat,?rmdir,?link,linkat,?symlink,\
    symlinkat,?mkdir,mkdirat,?mknod,mknodat,?chmod,fchmod,fchmodat,?chown,?lchown,fchown,fchownat,utimensat,setxattr,lsetxattr,fsetxattr,\
    execve,execveat,connect,bind,sendto,sendmsg,sendmmsg";

/// What a command did.
#[derive(Debug, Default)]
pub struct Deeds {
    pub out: String,
    pub err: String,
    /// Files that it wrote to, made, moved or removed, or tried to.
    pub writes: Vec<PathBuf>,
    pub programs: Vec<String>,
    /// Addresses that it sent something to.
    pub connections: Vec<String>,
    /// Addresses that it listens on.
    pub listens: Vec<String>,
    /// Variables that it read.
    pub variables: Vec<String>,
    /// Whether the system was asked what happened.
    pub is_traced: bool,
}

/// How a command ends that would not end by itself.
pub struct Stop<'a> {
    /// What it says once it is ready.
    pub ready: &'a str,
    /// What is done then, with what it said.
    pub act: &'a dyn Fn(&str),
}

/// Observes commands.
pub struct Watch {
    folder: tempfile::TempDir,
    traces: bool,
}

impl Watch {
    /// An observer that asks the system, if it can.
    pub fn new(test: &str) -> Self {
        let mut watch = Self { folder: tempfile::tempdir().expect("a folder"), traces: has(test, "strace") };
        if watch.traces && !watch.reads_names() {
            watch.traces = false;
            let why = "strace cannot read the names of files that helve opens: only root may read its memory";
            helve_testkit::skip(test, why);
        }
        watch
    }

    /// Whether files have names in a trace. Every command that opens a folder looks for what is trusted.
    fn reads_names(&self) -> bool {
        let mut command = Command::new(env!("CARGO_BIN_EXE_helve"));
        command.env("HELVE_STATE_DIR", self.folder.path()).arg("-C").arg(self.folder.path()).arg("sets");
        self.run(&command, "", None);
        fs::read_to_string(self.folder.path().join("trace")).is_ok_and(|trace| trace.contains("trust.json"))
    }

    /// Runs a command to its end.
    pub fn run(&self, command: &Command, input: &str, stop: Option<&Stop>) -> Deeds {
        let file = |name: &str| self.folder.path().join(name);
        let open = |name: &str| File::create(file(name)).expect("a file");
        fs::write(file("in"), input).expect("a file");
        let mut observed = self.observed(command);
        observed.stdin(File::open(file("in")).expect("a file")).stdout(open("out")).stderr(open("err"));
        let mut child = observed.spawn().expect("helve runs");
        let said = || ["out", "err"].map(|name| String::from_utf8_lossy(&fs::read(file(name)).unwrap_or_default()).into_owned());
        if let Some(stop) = stop {
            wait(&mut child, &|| said().concat().contains(stop.ready), command);
            (stop.act)(&said().concat());
            interrupt(&self.process(&child));
        }
        wait(&mut child, &|| false, command);
        let [out, err] = said();
        let mut deeds = Deeds { variables: variables(&err), out, err, is_traced: self.traces, ..Deeds::default() };
        if self.traces {
            fs::read_to_string(file("trace")).expect("a trace").lines().for_each(|line| deeds.read(line));
        }
        deeds
    }

    fn observed(&self, command: &Command) -> Command {
        let mut observed = if self.traces {
            let mut strace = Command::new("strace");
            strace
                .args(["-f", "--seccomp-bpf", "-qq", "-y", "-e", CALLS, "-o"])
                .arg(self.folder.path().join("trace"))
                .arg("--")
                .arg(command.get_program());
            strace
        } else {
            Command::new(command.get_program())
        };
        observed.args(command.get_args()).env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        observed.env("HELVE_LOG", "helve_core::environment=trace");
        observed
    }

    /// The process of the command itself: strace lets no signal through.
    fn process(&self, child: &Child) -> String {
        if !self.traces {
            return child.id().to_string();
        }
        let trace = fs::read_to_string(self.folder.path().join("trace")).expect("a trace");
        trace.split_whitespace().next().expect("a process").to_owned()
    }
}

/// What Ctrl-C does.
fn interrupt(process: &str) {
    assert!(Command::new("kill").args(["-INT", process]).stdin(Stdio::null()).status().expect("kill").success());
}

/// Waits until a process ends, or something is there.
fn wait(child: &mut Child, is_there: &dyn Fn() -> bool, command: &Command) {
    let begun = Instant::now();
    while child.try_wait().expect("a status").is_none() && !is_there() {
        if begun.elapsed() > LONGEST {
            let _ = child.kill();
            panic!("{command:?} does not end");
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// The variables that a log names. Only the redactor reads all of them without a name, to mask their values.
fn variables(log: &str) -> Vec<String> {
    let name = |line: &str| Some(line.split_once("environment variable read name=\"")?.1.split_once('"')?.0.to_owned());
    log.lines().filter_map(name).collect()
}

impl Deeds {
    /// Reads a line of strace. What another thread interrupted is in two lines, and the first has all that counts.
    fn read(&mut self, line: &str) {
        let line = line.trim_start_matches(|letter: char| letter.is_ascii_digit()).trim_start();
        let Some((call, arguments)) = line.split_once('(') else { return };
        let arguments = [" <unfinished", " <detached"].iter().fold(arguments, |text, end| text.split(*end).next().unwrap_or_default());
        match call {
            "execve" | "execveat" => self.programs.extend(paths(arguments).into_iter().next().map(|path| path.display().to_string())),
            "connect" | "sendto" | "sendmsg" | "sendmmsg" => self.connections.extend(addresses(arguments)),
            "bind" => self.listens.extend(addresses(arguments)),
            "open" | "openat" | "openat2" => {
                let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE"];
                if writes.iter().any(|flag| arguments.contains(flag)) {
                    self.writes.extend(paths(arguments));
                }
            }
            // The other name is only read.
            "link" | "linkat" | "symlink" | "symlinkat" => self.writes.extend(paths(arguments).pop()),
            // The folder is there already.
            "mkdir" | "mkdirat" if line.contains("= -1 EEXIST") => {}
            call if call.starts_with('<') || call.starts_with('+') || call.starts_with('-') => {}
            _ => self.writes.extend(paths(arguments)),
        }
    }
}

/// The files that a call names: by their names from a folder, or else by the open file.
fn paths(arguments: &str) -> Vec<PathBuf> {
    let (mut found, mut folder, mut rest) = (Vec::new(), PathBuf::new(), arguments);
    while let Some(at) = rest.find(['<', '"', '[', '{']) {
        let (opening, behind) = (rest.as_bytes()[at], &rest[at + 1..]);
        let closing = match opening {
            b'<' => '>',
            b'"' => '"',
            // Arguments of a program, or a structure.
            _ => break,
        };
        let Some((text, after)) = behind.split_once(closing) else { break };
        if opening == b'<' {
            folder = PathBuf::from(text);
        } else {
            found.push(folder.join(text));
        }
        rest = after;
    }
    if found.is_empty() && !folder.as_os_str().is_empty() {
        found.push(folder);
    }
    found
}

/// The addresses that a call names. The kernel's own, by which a program asks for the interfaces of the machine, is nobody's.
fn addresses(arguments: &str) -> Option<String> {
    let (_, address) = arguments.split_once("sa_family=")?;
    let between = |before: &str, after: char| Some(address.split_once(before)?.1.split_once(after)?.0.to_owned());
    match address.split([',', '}']).next()? {
        "AF_NETLINK" => None,
        "AF_INET" => Some(format!("{}:{}", between("inet_addr(\"", '"')?, between("htons(", ')')?)),
        "AF_INET6" => Some(format!("[{}]:{}", between("AF_INET6, \"", '"')?, between("htons(", ')')?)),
        _ => Some(address.to_owned()),
    }
}

/// Whether a path lies in a folder.
pub fn is_below(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder) && !path.components().any(|part| part == std::path::Component::ParentDir)
}
