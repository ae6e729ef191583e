//! Searches a command for the files of the project that it names, and describes what else the command may run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use helve_core::printable;

use super::{CommandLine, shell};
use crate::scripts::{MAX_BYTES, script_digest};

/// Maximum nesting depth of shell commands inside shell commands.
const MAX_DEPTH: usize = 4;

/// Programs that run the program named in their arguments.
const WRAPPERS: [&str; 21] = [
    "busybox",
    "chroot",
    "chrt",
    "doas",
    "env",
    "firejail",
    "flock",
    "ionice",
    "nice",
    "nohup",
    "setpriv",
    "setsid",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "timeout",
    "unshare",
    "xargs",
];

/// Programs that download the code they run.
const DOWNLOADERS: [&str; 7] = ["bunx", "npx", "pipx", "pnpx", "uv", "uvx", "yarn"];

/// Programs that read a file with a fixed name in their working directory, and the possible names of that file.
const RUNNERS: [(&str, &[&str]); 14] = [
    ("ant", &["build.xml"]),
    ("bun", &["package.json"]),
    ("cargo", &["Cargo.toml", "build.rs"]),
    ("docker", &["compose.yaml", "docker-compose.yml", "Dockerfile"]),
    ("docker-compose", &["compose.yaml", "docker-compose.yml"]),
    ("go", &["go.mod"]),
    ("gradle", &["build.gradle", "build.gradle.kts"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("mvn", &["pom.xml"]),
    ("npm", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("rake", &["Rakefile"]),
    ("task", &["Taskfile.yml"]),
];

/// How the command line of an interpreter names the code to run.
struct Interpreter {
    name: &'static str,
    /// Options whose value is code.
    text: &'static [&'static str],
    /// Options whose value is a module name.
    module: &'static [&'static str],
    /// Suffixes that the interpreter appends to the name of a file or folder.
    files: &'static [&'static str],
}

const INTERPRETERS: [Interpreter; 9] = [
    Interpreter { name: "python", text: &["-c"], module: &["-m"], files: &["/__main__.py", "/__init__.py"] },
    Interpreter { name: "pypy", text: &["-c"], module: &["-m"], files: &["/__main__.py", "/__init__.py"] },
    Interpreter { name: "node", text: &["-e", "-p", "--eval", "--print"], module: NODE_MODULE, files: NODE_FILES },
    Interpreter { name: "nodejs", text: &["-e", "-p", "--eval", "--print"], module: NODE_MODULE, files: NODE_FILES },
    Interpreter { name: "deno", text: &["eval"], module: &[], files: &[] },
    Interpreter { name: "perl", text: &["-e", "-E"], module: &["-M", "-m"], files: &[".pm"] },
    Interpreter { name: "ruby", text: &["-e"], module: &["-r"], files: &[".rb"] },
    Interpreter { name: "php", text: &["-r"], module: &[], files: &[] },
    Interpreter { name: "lua", text: &["-e"], module: &["-l"], files: &[".lua"] },
];
const NODE_MODULE: &[&str] = &["-r", "--require", "--import", "--loader", "--experimental-loader"];
const NODE_FILES: &[&str] = &[".js", ".cjs", ".mjs", ".json", "/package.json", "/index.js"];

/// Programs whose arguments may contain commands.
const TEXT_PROGRAMS: [&str; 14] =
    ["awk", "env", "find", "gawk", "git", "mawk", "parallel", "script", "sed", "ssh", "su", "sudo", "tmux", "watch"];

const SHELLS: [&str; 8] = ["ash", "bash", "dash", "fish", "ksh", "mksh", "sh", "zsh"];

/// Programs in shell commands that use the files in their arguments as data. Such files may change while a tool is in use.
const DATA_PROGRAMS: [&str; 36] = [
    "[", "[[", "basename", "cat", "chmod", "cp", "cut", "date", "dirname", "echo", "exit", "export", "false", "grep", "head", "jq", "kill",
    "ls", "mkdir", "mv", "printf", "read", "rm", "rmdir", "set", "sleep", "sort", "sqlite3", "stat", "tail", "tee", "test", "touch", "tr",
    "true", "wc",
];

/// The files that a command names, and what the command may run besides these files.
pub(super) struct Survey<'a> {
    /// Folders in which to look for files: the project folder for programs, the working directory for files that programs open.
    folders: Vec<PathBuf>,
    project: &'a Path,
    files: BTreeSet<PathBuf>,
    gaps: BTreeSet<String>,
}

impl<'a> Survey<'a> {
    pub(super) fn of(line: &CommandLine<'_>, project: &'a Path) -> Self {
        let mut folders = vec![project.to_owned()];
        folders.extend(
            line.folder.into_iter().flat_map(|folder| [folder.to_owned(), with_defaults(folder)]).map(|folder| project.join(folder)),
        );
        let mut survey = Self { folders, project, files: BTreeSet::new(), gaps: BTreeSet::new() };
        survey.line(line.words, line.env);
        // The values of the variables in a definition are unknown until the definition is trusted.
        let open: Vec<_> =
            line.words.iter().chain(line.env).map(String::as_str).chain(line.folder).filter(|word| word.contains("${")).collect();
        if !open.is_empty() {
            let words: Vec<_> = line.words.iter().map(|word| with_defaults(word)).collect();
            let env: Vec<_> = line.env.iter().map(|entry| with_defaults(entry)).collect();
            survey.line(&words, &env);
            survey.gaps.extend(open.into_iter().map(|word| format!("files that the variables in {} name", shown(word))));
        }
        survey
    }

    fn line(&mut self, words: &[String], env: &[String]) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.command(&words, 0);
        self.texts(&words);
        // Some variables name code to run: BASH_ENV, LD_PRELOAD, NODE_OPTIONS, PYTHONPATH, GIT_SSH_COMMAND.
        for (entry, value) in env.iter().filter_map(|entry| Some((entry, entry.split_once('=')?.1))) {
            value.split([' ', ':', ',', ';']).for_each(|piece| self.word(piece));
            if value.replace("${", "").contains('$') {
                self.gaps.insert(format!("files that {} names", shown(entry)));
            }
        }
    }

    /// Adds the files named in commands inside arguments, and describes paths that hide the name of a file.
    fn texts(&mut self, words: &[&str]) {
        for word in words {
            if word.starts_with("PATH=") {
                self.gaps.insert(format!("programs that {} finds", shown(word)));
            }
            if word.contains("/proc/") {
                self.gaps.insert(format!("the file that {} refers to", shown(word)));
            }
        }
        let Some((program, arguments)) = words.split_first() else { return };
        let is_path = |character: char| character.is_alphanumeric() || "._-/+@".contains(character);
        for text in arguments.iter().filter(|word| word.contains(char::is_whitespace)) {
            if TEXT_PROGRAMS.contains(&base_name(program)) {
                text.split(|character| !is_path(character)).filter(|piece| !piece.is_empty()).for_each(|piece| self.word(piece));
                self.gaps.insert(format!("files that the text {} runs", shown(text)));
            }
        }
    }

    /// Returns the existing files of the project that the command names.
    pub(super) fn files(self) -> Vec<PathBuf> {
        self.files.into_iter().collect()
    }

    /// Describes what the command may run that the digests of its files do not cover.
    pub(super) fn gaps(mut self) -> Vec<String> {
        for file in &self.files {
            let name = shown(&file.strip_prefix(self.project).unwrap_or(file).to_string_lossy());
            if file.metadata().is_ok_and(|metadata| metadata.len() > MAX_BYTES) {
                self.gaps.insert(format!("{name}, which is larger than {} MiB", MAX_BYTES >> 20));
            } else if script_digest(file).is_none() {
                self.gaps.insert(format!("{name}, which cannot be read"));
            }
        }
        self.gaps.into_iter().collect()
    }

    fn command(&mut self, words: &[&str], depth: usize) {
        let Some(first) = words.first() else { return };
        // In a shell, `.` at the start is a command, not a folder.
        words.iter().skip(usize::from(*first == ".")).for_each(|word| self.word(word));
        self.program(words, depth);
        if WRAPPERS.contains(&base_name(first)) {
            (1..words.len()).for_each(|start| self.program(&words[start..], depth));
        }
    }

    /// Adds the files that a word names: as a whole, as the value of an option, or after an `@`.
    fn word(&mut self, word: &str) {
        self.name(word);
        if let Some((_, value)) = word.split_once('=') {
            self.name(value);
            value.strip_prefix('@').into_iter().for_each(|file| self.name(file));
        }
        let attached = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).and_then(|rest| rest.get(1..));
        attached.or_else(|| word.strip_prefix('@')).into_iter().for_each(|file| self.name(file));
    }

    fn name(&mut self, name: &str) {
        self.cover(name);
        if self.paths(name).any(|path| path.is_dir()) {
            self.gaps.insert(format!("the files in the folder {}", shown(name)));
        }
    }

    /// Adds a file if it exists. Returns whether it exists.
    fn cover(&mut self, name: &str) -> bool {
        let found: Vec<_> = self.paths(name).filter(|path| path.is_file()).collect();
        let is_there = !found.is_empty();
        self.files.extend(found);
        is_there
    }

    /// Returns the possible paths of a file or folder. Ignores absolute paths that are not in the project.
    fn paths(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        // An absolute path may also lead into the project through a symbolic link or `..`.
        let leads_in = |path: &Path| path.starts_with(self.project) || path.canonicalize().is_ok_and(|real| real.starts_with(self.project));
        let own = !name.is_empty() && !name.contains('\0') && (Path::new(name).is_relative() || leads_in(Path::new(name)));
        self.folders.iter().filter(move |_| own).map(|folder| folder.join(name)).collect::<Vec<_>>().into_iter()
    }

    /// Adds the files that a program runs, depending on which program it is and on its arguments.
    fn program(&mut self, words: &[&str], depth: usize) {
        let Some((first, arguments)) = words.split_first() else { return };
        let name = base_name(first);
        // Removes a version: `python3.12` becomes `python`.
        let family = name.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.');
        if SHELLS.contains(&name) {
            self.shell(name, arguments, depth);
        } else if let Some(interpreter) = INTERPRETERS.iter().find(|interpreter| interpreter.name == family) {
            self.interpreter(interpreter, name, arguments);
        }
        if let Some((_, files)) = RUNNERS.iter().find(|(runner, _)| *runner == name) {
            for file in *files {
                self.cover(file);
            }
            self.gaps.insert(format!("other files that {} reads or runs", shown(name)));
        }
        if DOWNLOADERS.contains(&name) || matches!(arguments, [word, ..] if matches!(*word, "dlx" | "exec" | "x") && is_packager(name)) {
            self.gaps.insert(format!("code that {} downloads", shown(name)));
        }
    }

    fn shell(&mut self, name: &str, arguments: &[&str], depth: usize) {
        let is_short = |word: &str, letter: char| word.starts_with(['-', '+']) && !word.starts_with("--") && word.contains(letter);
        if arguments.iter().any(|word| is_short(word, 'i') || is_short(word, 'l') || *word == "--login") {
            self.gaps.insert(format!("the start-up files of {}", shown(name)));
        }
        let Some(option) = arguments.iter().position(|word| is_short(word, 'c')) else { return };
        let Some(text) = arguments[option + 1..].iter().find(|word| !word.starts_with(['-', '+'])) else { return };
        let commands = shell::commands(text);
        let runs_data = commands.iter().any(|words| runs_what_it_reads(words));
        let mut is_clear = depth < MAX_DEPTH;
        for command in commands.iter().filter(|_| depth < MAX_DEPTH) {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            if runs_data || !DATA_PROGRAMS.contains(&words[0]) {
                self.command(&words, depth + 1);
            }
            is_clear &= self.is_clear(&words);
        }
        if !is_clear {
            self.gaps.insert(format!("files that the text after {} reads or runs", shown(&format!("{name} -c"))));
        }
    }

    /// Returns whether Helve can tell which project file, if any, a shell command runs.
    fn is_clear(&mut self, words: &[&str]) -> bool {
        let is_assignment =
            |word: &&&str| word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains(['/', '$', ' ']));
        let mut words = words.iter().skip_while(is_assignment);
        match words.next() {
            Some(&("cd" | "pushd" | "eval" | "xargs" | "find")) => false,
            Some(&("." | "source")) => words.next().is_some_and(|file| self.cover(file)),
            Some(program) if program.contains(['$', '*', '?', '{', '~']) || program.contains("/proc/") => false,
            Some(program) if program.contains('/') && Path::new(program).is_relative() => self.cover(program),
            // A pattern or a variable may name any file.
            Some(program) if !DATA_PROGRAMS.contains(program) => !words.any(|word| word.contains(['$', '*', '?', '{', '~'])),
            None | Some(_) => true,
        }
    }

    fn interpreter(&mut self, interpreter: &Interpreter, name: &str, arguments: &[&str]) {
        let mut arguments = arguments.iter().peekable();
        while let Some(word) = arguments.next() {
            let is_text = |option: &&str| option == word || is_short(option) && is_short(word) && word.contains(&option[1..]);
            if interpreter.text.iter().any(is_text) {
                self.gaps.insert(format!("files that the text after {} reads", shown(&format!("{name} {word}"))));
                return;
            }
            let is_named = |option: &&&str| {
                let rest = word.strip_prefix(**option);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('=') || !option.starts_with("--"))
            };
            if let Some(option) = interpreter.module.iter().find(is_named) {
                let value = word[option.len()..].trim_start_matches('=');
                let module = if value.is_empty() { arguments.next().copied().unwrap_or_default() } else { value };
                self.module(interpreter, &format!("{name} {option}"), module);
            } else if !word.starts_with('-') {
                for file in interpreter.files {
                    self.cover(&format!("{word}{file}"));
                }
                return;
            }
        }
    }

    /// Adds the files of a module, and of the Python packages that contain it, because their code also runs.
    fn module(&mut self, interpreter: &Interpreter, option: &str, module: &str) {
        let is_python = interpreter.files.contains(&"/__main__.py");
        let path = if is_python { module.replace('.', "/") } else { module.replace("::", "/") };
        let mut is_there = self.cover(&path);
        for file in interpreter.files.iter().copied().chain(is_python.then_some(".py")) {
            is_there |= self.cover(&format!("{path}{file}"));
        }
        for (end, _) in path.match_indices('/').filter(|_| is_python) {
            self.cover(&format!("{}/__init__.py", &path[..end]));
        }
        if !is_there {
            self.gaps.insert(format!("the module {} of {}, which is not in this folder", shown(module), shown(option)));
        }
    }
}

/// Replaces each variable in a text with its default, or with nothing if it has none.
fn with_defaults(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((reference, tail)) = after.split_once('}') else { return text.to_owned() };
        out.push_str(reference.split_once(":-").map_or("", |(_, default)| default));
        rest = tail;
    }
    out + rest
}

/// Returns whether a word is a group of one-letter options, such as `-c` or `-Ic`.
fn is_short(word: &str) -> bool {
    (2..=5).contains(&word.len())
        && word.strip_prefix('-').is_some_and(|letters| letters.bytes().all(|letter| letter.is_ascii_alphabetic()))
}

/// Returns whether a shell command may run the output of another one, as in `cat x | sh`.
fn runs_what_it_reads(words: &[String]) -> bool {
    words.iter().map(|word| base_name(word)).any(|word| {
        let family = word.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.');
        SHELLS.contains(&word) || INTERPRETERS.iter().any(|interpreter| interpreter.name == family) || matches!(word, "eval" | "xargs")
    })
}

fn is_packager(name: &str) -> bool {
    matches!(name, "npm" | "pnpm" | "bun" | "deno")
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn shown(name: &str) -> String {
    format!("`{}`", printable::escape_line(&printable::shorten(name, 200)))
}
