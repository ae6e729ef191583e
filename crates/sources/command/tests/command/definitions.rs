//! Mistakes in definitions by field, and the tools of valid ones.

use helve_core::{Permission, ToolKind};
use serde_json::{Value, json};

use crate::support::{Project, read};

#[test]
fn mistakes_are_found_where_they_are() {
    let project = Project::new();
    std::fs::write(project.path().join("file"), "x").expect("a file");
    std::os::unix::fs::symlink("/tmp", project.path().join("outside")).expect("a link");
    let parameters = json!([{"name": "city"}, {"name": "place", "type": "object"}]);
    for (fields, path, message) in [
        (json!({"command": []}), "/command", "the command is empty"),
        (json!({"command": [" "]}), "/command/0", "the program name is empty"),
        (json!({"command": ["{{ city }}"]}), "/command/0", "the program name cannot contain a template"),
        (json!({"command": ["a", "b", "{{ cty }}"]}), "/command/2", "the tool has no parameter `cty` (did you mean `city`?)"),
        (json!({"command": ["a", "x{{ city }"]}), "/command/1", "`{{ city }` is not closed"),
        (json!({"command": ["a", "{{ }}"]}), "/command/1", "`` is not a valid parameter name"),
        (json!({"command": ["a", "{{ city.name }}"]}), "/command/1", "`city` has no field `name`"),
        (json!({"command": ["a", "x\0"]}), "/command/1", "a command cannot contain a NUL character"),
        (json!({"env": ["OK", "9X"]}), "/env/1", "`9X` is not a valid variable name"),
        (json!({"env": ["=x"]}), "/env/0", "`` is not a valid variable name"),
        (json!({"env": ["A B=x"]}), "/env/0", "`A B` is not a valid variable name"),
        (json!({"env": ["A", "A=1"]}), "/env/1", "duplicate variable `A`"),
        (json!({"env": ["A=\0"]}), "/env/0", "the value of `A` contains a NUL character"),
        (json!({"env": ["HELVE_CALL_ID=x"]}), "/env/0", "`HELVE_CALL_ID` is set by Helve"),
        (json!({"working_folder": "missing"}), "/working_folder", "cannot open the folder `missing`"),
        (json!({"working_folder": ".."}), "/working_folder", "the folder `..` is outside the project"),
        (json!({"working_folder": "/tmp"}), "/working_folder", "the folder `/tmp` is outside the project"),
        (json!({"working_folder": "outside"}), "/working_folder", "the folder `outside` is outside the project"),
        (json!({"working_folder": "file"}), "/working_folder", "`file` is not a folder"),
        (json!({"max_bytes": 0}), "/max_bytes", "must be between 1 and 67108864, got 0"),
        (json!({"max_bytes": 67_108_865}), "/max_bytes", "must be between 1 and 67108864, got 67108865"),
        (json!({"output": {"type": "objekt"}}), "/output", "at /type"),
        (json!({"parameters": [{"name": "a", "type": "strin"}]}), "/parameters/0/type", "there is no type `strin`"),
        (json!({"parameters": {"type": "string"}}), "/parameters", "the input schema of `test` must describe an object"),
        (json!({"name": "a b"}), "/name", "`a b` is not a valid tool name"),
        (json!({"description": "x".repeat(70_000)}), "/description", "the description of `test` is longer"),
    ] {
        let mut definition = json!({"command": ["true"], "parameters": parameters});
        for (name, value) in fields.as_object().expect("fields") {
            definition[name] = value.clone();
        }
        let mistake = project.try_tool(definition).err().unwrap_or_else(|| panic!("{fields} is accepted"));
        let told = mistake.hint.map_or(mistake.message.clone(), |hint| format!("{} ({hint})", mistake.message));
        assert!(mistake.path == path && told.starts_with(message), "{fields}: {} {told}", mistake.path);
    }
    let gone = read(json!({"command": ["true"]})).tool(&project.path().join("gone"), "x", &project.redactor);
    assert!(gone.err().is_some_and(|mistake| mistake.message.starts_with("cannot open the project's folder")));
}

#[test]
fn a_definition_becomes_a_spec() {
    let project = Project::new();
    let tool = project.tool(json!({"name": "hello", "title": "Hello", "command": ["true"], "output": {"type": "string"}, "timeout": "5s"}));
    let spec = tool.spec();
    assert_eq!((&**spec.name(), spec.title(), &**spec.description()), ("hello", Some("Hello"), "A test."));
    assert_eq!(spec.rules().permission, Permission::Auto);
    assert_eq!(spec.rules().attempt_timeout().as_secs(), 5);
    assert_eq!((spec.origin().kind, spec.origin().location.as_deref()), (ToolKind::Command, Some("tools/builtin/test.yaml")));
    assert!(spec.output().is_some_and(|output| output.is_valid(&json!("x"))));
    assert!(spec.input().problems(&json!({"x": 1})).len() == 1, "no parameters means none");
    let careful = project.tool(json!({"command": ["true"], "permission": "confirm"}));
    assert_eq!(careful.spec().rules().permission, Permission::Confirm);
}

/// An approval holds only for the command that was approved.
#[test]
fn another_command_is_another_implementation() {
    let project = Project::new();
    std::fs::create_dir(project.path().join("inner")).expect("a folder");
    let of = |fields: Value| project.tool(fields).spec().implementation().expect("a hash");
    let one = of(json!({"command": ["cat", "a"]}));
    assert_eq!(one, of(json!({"command": ["cat", "a"], "format": "text"})));
    for other in [
        json!({"command": ["cat", "b"]}),
        json!({"command": ["cat a"]}),
        json!({"command": ["cat", "a"], "env": ["LD_PRELOAD=./x.so"]}),
        json!({"command": ["cat", "a"], "working_folder": "inner"}),
        json!({"command": ["cat", "a"], "stdin": "none"}),
    ] {
        assert_ne!(one, of(other.clone()), "{other}");
    }
}

#[test]
fn people_see_what_runs() {
    let runs = |definition: Value| read(definition).line().shown();
    assert_eq!(runs(json!({"command": ["python3", "scripts/hello.py", "--n={{n}}"]})), "python3 scripts/hello.py --n={{n}}");
    assert_eq!(runs(json!({"command": ["sh", "-c", "echo 'a b' | wc", ""]})), r"sh -c 'echo '\''a b'\'' | wc' ''");
    assert_eq!(runs(json!({"command": ["a", "x\n\u{1b}[2K\u{202e}y"]})), r"a 'x\n\u{1b}[2K\u{202e}y'");
    assert_eq!(
        runs(json!({"command": ["./x"], "env": ["HOME", "LD_PRELOAD=./a b.so"], "working_folder": "scripts"})),
        "HOME=$HOME LD_PRELOAD='./a b.so' ./x (in scripts)"
    );
    assert_eq!(
        runs(json!({"command": ["./x"], "env": ["GIT_KEY=./evil.sh", "STRIPE_KEY"]})),
        "GIT_KEY=./evil.sh STRIPE_KEY=$STRIPE_KEY ./x",
        "what stands in the file is shown, whatever its name"
    );
}
