use std::fs;

use tempfile::TempDir;

use super::*;

fn project(files: &[&str]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, file).expect("a file");
    }
    folder
}

/// What is found in a project: files, and what is not covered.
fn survey(project: &TempDir, words: &[&str], env: &[&str], folder: Option<&str>) -> (Vec<String>, Vec<String>) {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (words, env) = (owned(words), owned(env));
    let line = CommandLine { words: &words, env: &env, folder };
    let name = |path: PathBuf| path.strip_prefix(project.path()).expect("inside").to_string_lossy().into_owned();
    (line.scripts(project.path()).into_iter().map(name).collect(), line.uncovered(project.path()))
}

#[test]
fn files_are_found_wherever_a_command_names_them() {
    let all = ["a.sh", "b.sh", "lib/x.js", "pkg/__init__.py", "pkg/mod.py", "app/__main__.py", "inner/a.sh", "Makefile", "package.json"];
    let project = project(&all);
    let absolute = project.path().join("a.sh");
    let absolute = absolute.to_str().expect("UTF-8");
    let cases: [(&[&str], &[&str]); 17] = [
        (&["sh", "a.sh"], &["a.sh"]),
        (&["sh", absolute], &["a.sh"]),
        (&["./a.sh", "--config=b.sh"], &["./a.sh", "b.sh"]),
        (&["curl", "-d", "@a.sh", "--data=@b.sh"], &["a.sh", "b.sh"]),
        (&["awk", "-fa.sh"], &["a.sh"]),
        (&["sh", "-c", ". ./a.sh; [ -f b.sh ] && sh 'b.sh'"], &["./a.sh", "b.sh"]),
        (&["timeout", "5", "bash", "-ec", "source a.sh"], &["a.sh"]),
        (&["sh", "-c", "bash -c 'sh a.sh'"], &["a.sh"]),
        (&["sh", "-c", "cat a.sh | sh"], &["a.sh"]),
        (&["sh", "-c", "[ -e a.sh ] && sort b.sh > a.sh"], &[]),
        (&["python3", "-m", "pkg.mod"], &["pkg/__init__.py", "pkg/mod.py"]),
        (&["python3.12", "-mpkg"], &["pkg/__init__.py"]),
        (&["python3", "-I", "app"], &["app/__main__.py"]),
        (&["node", "-r", "./lib/x", "lib/x"], &["lib/x.js"]),
        (&["make", "all"], &["Makefile"]),
        (&["npm", "start"], &["package.json"]),
        (&["sh", "{{ file }}", "nowhere.sh", ""], &[]),
    ];
    for (words, files) in cases {
        let files: Vec<_> = files.iter().map(|file| (*file).to_owned()).collect();
        let found: Vec<_> = survey(&project, words, &[], None).0;
        let plain = |files: &[String]| files.iter().map(|file| file.trim_start_matches("./").to_owned()).collect::<Vec<_>>();
        assert_eq!(plain(&found), plain(&files), "{words:?}");
    }
    assert_eq!(survey(&project, &["sh", "a.sh"], &[], Some("inner")).0, ["a.sh", "inner/a.sh"]);
    let env = ["BASH_ENV=./a.sh", "NODE_OPTIONS=--require ./lib/x.js", "PASSED"];
    assert_eq!(survey(&project, &["x"], &env, None).0.len(), 2);
}

#[test]
fn what_is_not_covered_is_said() {
    let project = project(&["a.sh", "lib/x.js", "app/__main__.py"]);
    let cases: [(&[&str], &str); 15] = [
        (&["python3", "-m", "http.server"], "the module `http.server` of `python3 -m`, which is not in this folder"),
        (&["python3", "app"], "the files in the folder `app`"),
        (&["python3", "-c", "import x"], "files that the text after `python3 -c` reads"),
        (&["perl", "-ne", "print"], "files that the text after `perl -ne` reads"),
        (&["sh", "-c", ". ./later.sh"], "files that the text after `sh -c` reads or runs"),
        (&["sh", "-c", "./later.sh"], "files that the text after `sh -c` reads or runs"),
        (&["sh", "-c", "cd lib; sh x"], "files that the text after `sh -c` reads or runs"),
        (&["sh", "-c", "$TOOL x"], "files that the text after `sh -c` reads or runs"),
        (&["sh", "-c", "X=1 eval \"$1\""], "files that the text after `sh -c` reads or runs"),
        (&["bash", "-il", "a.sh"], "the start-up files of `bash`"),
        (&["node", "--require", "tap", "a.js"], "the module `tap` of `node --require`, which is not in this folder"),
        (&["make"], "other files that `make` reads or runs"),
        (&["npx", "-y", "some-server"], "code that `npx` downloads"),
        (&["env", "A=1", "uvx", "x"], "code that `uvx` downloads"),
        (&["pnpm", "dlx", "x"], "code that `pnpm` downloads"),
    ];
    for (words, gap) in cases {
        let gaps = survey(&project, words, &[], None).1;
        assert!(gaps.iter().any(|said| said == gap), "{words:?}: {gaps:?}");
    }
    for words in [&["sh", "a.sh"][..], &["sh", "-c", ". ./a.sh; date | wc -l > out"], &["cat"], &["git", "commit", "-m", "x"]] {
        assert_eq!(survey(&project, words, &[], None).1, Vec::<String>::new(), "{words:?}");
    }
    assert_eq!(survey(&project, &["x"], &["PYTHONPATH=lib"], None).1, ["the files in the folder `lib`"]);
}

/// The file is sparse, so it takes no disk space.
#[test]
fn a_very_large_file_counts_by_its_name() {
    let project = project(&["big"]);
    let file = fs::File::options().write(true).open(project.path().join("big")).expect("a file");
    file.set_len(crate::scripts::MAX_BYTES + 1).expect("a size");
    assert_eq!(survey(&project, &["./big"], &[], None).1, ["`big`, which is larger than 256 MiB"]);
    assert_eq!(crate::script_digest(&project.path().join("big")), None);
    file.set_len(17 << 20).expect("a size");
    assert!(crate::script_digest(&project.path().join("big")).is_some());
}

/// Paths that hide the name of a file: covered, or reported.
#[test]
fn what_cannot_be_told_is_said() {
    let project = project(&["run.sh", "sub/prog"]);
    let absolute = project.path().join("sub/../run.sh").display().to_string();
    for words in [&["sh", "${NOPE:-run.sh}"][..], &["${NOPE:-sub/prog}"]] {
        let (files, gaps) = survey(&project, words, &[], None);
        assert_eq!((files.len(), gaps.len()), (1, 1), "{words:?}: {files:?} {gaps:?}");
    }
    assert_eq!(survey(&project, &["sh", &absolute], &[], None).0.len(), 1);
    for words in [
        &["sh", "/proc/self/cwd/run.sh"][..],
        &["sh", "-c", "x=run; sh $x.sh"],
        &["sh", "-c", "sh ru*.sh"],
        &["sh", "-c", "sh run.{sh,x}"],
        &["sh", "-c", "sh ~+/run.sh"],
        &["env", "-S", "sh run.sh"],
        &["env", "PATH=sub:/bin", "prog"],
        &["su", "-c", "sh run.sh"],
        &["git", "-c", "alias.x=!sh run.sh", "x"],
        &["awk", "BEGIN { system(\"sh run.sh\") }"],
    ] {
        assert!(!survey(&project, words, &[], None).1.is_empty(), "{words:?}");
    }
    assert!(!survey(&project, &["bash", "x"], &["BASH_ENV=$PWD/run.sh"], None).1.is_empty());
}
