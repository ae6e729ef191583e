//! The command line of a tool: checks its templates when the tool is loaded, and fills in the values of each call.
//!
//! No shell is used, so a value is only dangerous if the program could take it for an option. Such values are rejected.

use helve_core::authored::FieldError;
use helve_core::{Schema, ToolError, suggest};
use serde_json::Value;

use crate::template::{HINT, Template};

/// The command line of a tool: the program, and templates for its arguments.
#[derive(Debug)]
pub(crate) struct Argv {
    program: String,
    arguments: Vec<Template>,
    /// Number of arguments up to and including the literal `--`; `usize::MAX` if there is none.
    options_end: usize,
}

impl Argv {
    /// Parses the field `command`, and checks that templates refer to existing parameters.
    pub(crate) fn read(command: &[String], parameters: &Schema) -> Result<Self, FieldError> {
        let example = "write the program and its arguments as a list, such as `[python3, scripts/hello.py]`";
        let Some((program, rest)) = command.split_first() else {
            return Err(FieldError::new("/command", "the command is empty").hint(example));
        };
        if program.trim().is_empty() {
            return Err(FieldError::new("/command/0", "the program name is empty").hint(example));
        }
        let mut templates = Vec::with_capacity(command.len());
        for (index, word) in command.iter().enumerate() {
            let wrong = |message: String| FieldError::new(format!("/command/{index}"), message);
            if word.contains('\0') {
                return Err(wrong("a command cannot contain a NUL character".to_owned()));
            }
            let template = Template::parse(word).map_err(|message| wrong(message).hint(HINT))?;
            for path in template.paths() {
                if index == 0 {
                    return Err(wrong("the program name cannot contain a template".to_owned()).hint("write one tool per program"));
                }
                check_path(parameters.value(), path).map_err(|(message, hint)| {
                    let error = wrong(message);
                    if let Some(hint) = hint { error.hint(hint) } else { error }
                })?;
            }
            templates.push(template);
        }
        check_options(rest, &templates[1..], parameters)?;
        let program = templates.remove(0).fill(&Value::Null).unwrap_or_default();
        let options_end = rest.iter().position(|word| word == "--").map_or(usize::MAX, |index| index + 1);
        Ok(Self { program, arguments: templates, options_end })
    }

    /// Returns the program as written in the file.
    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    /// Returns whether any argument contains a template.
    pub(crate) fn has_templates(&self) -> bool {
        self.arguments.iter().any(|argument| argument.paths().next().is_some())
    }

    /// Returns the arguments of one call. Leaves out an argument if the call gives no value for its template.
    pub(crate) fn fill(&self, values: &Value) -> Result<Vec<String>, ToolError> {
        let mut filled = Vec::with_capacity(self.arguments.len());
        for (index, template) in self.arguments.iter().enumerate() {
            let Some(argument) = template.fill(values) else { continue };
            let refuse = |why: &str| {
                let names: Vec<_> = template.paths().map(|path| format!("`{}`", path.join("."))).collect();
                Err(ToolError::invalid_parameters(format!("{} {why}", names.join(" with "))))
            };
            if argument.contains('\0') {
                return refuse("contains a NUL character, which cannot be passed to a program");
            }
            if argument.starts_with('-') && template.begins_with_value() && index < self.options_end {
                return refuse(
                    "starts with `-`, so the program could take it for an option. To allow such values, the author \
                     of this tool must put `--` before it in `command`, or join it to its option as in `--name={{ name }}`",
                );
            }
            filled.push(argument);
        }
        Ok(filled)
    }
}

/// Rejects a template with an optional parameter after an option: without a value, the option would take the next argument as its value.
fn check_options(words: &[String], templates: &[Template], parameters: &Schema) -> Result<(), FieldError> {
    let schema = parameters.value();
    let is_given = |name: &str| {
        let required = schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|required| required == name));
        required || schema.pointer(&format!("/properties/{name}/default")).is_some()
    };
    for (index, template) in templates.iter().enumerate().skip(1) {
        let option = &words[index - 1];
        let behind_option = option.starts_with('-') && !words[..index].iter().any(|word| word == "--") && !option.contains("{{");
        let Some(path) = template.paths().next().filter(|path| behind_option && template.begins_with_value() && !is_given(&path[0])) else {
            continue;
        };
        let message = format!("`{}` is optional; if omitted, `{option}` would take the next argument as its value", path.join("."));
        let hint = format!("write `{option}={{{{ {} }}}}`, put `--` between them, or make the parameter required", path.join("."));
        return Err(FieldError::new(format!("/command/{}", index + 1), message).hint(hint));
    }
    Ok(())
}

/// Checks that the schema has a field at this path. Accepts the path if the schema allows fields that it does not list.
fn check_path(schema: &Value, path: &[String]) -> Result<(), (String, Option<String>)> {
    let mut schema = schema;
    for (depth, name) in path.iter().enumerate() {
        let what = if depth == 0 { "the tool".to_owned() } else { format!("`{}`", path[..depth].join(".")) };
        let fields = schema.get("properties").and_then(Value::as_object);
        match fields.and_then(|fields| fields.get(name)) {
            Some(field) => schema = field,
            None if is_open(schema, depth) => return Ok(()),
            None => {
                let noun = if depth == 0 { "parameter" } else { "field" };
                let near = suggest::nearest(name, fields.into_iter().flatten().map(|(name, _)| name.as_str()));
                return Err((format!("{what} has no {noun} `{name}`"), near.map(|near| format!("did you mean `{near}`?"))));
            }
        }
    }
    Ok(())
}

/// Returns whether the schema allows fields that it does not list.
fn is_open(schema: &Value, depth: usize) -> bool {
    let has = |keyword: &str| schema.get(keyword).is_some();
    if ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"].into_iter().any(has) {
        return true;
    }
    let objects =
        schema.get("type").is_none_or(|kind| kind == "object" || kind.as_array().is_some_and(|kinds| kinds.contains(&"object".into())));
    let extra = schema.get("additionalProperties").is_some_and(|extra| *extra != Value::Bool(false));
    // The top level allows only listed fields by default. A nested object without `properties` allows all fields.
    objects && (extra || (depth > 0 && !has("properties")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn argv(command: &[&str]) -> Argv {
        let parameters = Schema::new(json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}, "n": {"type": "integer"}}}));
        let command: Vec<_> = command.iter().map(|&word| word.to_owned()).collect();
        Argv::read(&command, &parameters.expect("a schema")).expect("a command")
    }

    fn fill(command: &[&str], values: &Value) -> Result<Vec<String>, String> {
        argv(command).fill(values).map_err(|error| error.to_string())
    }

    #[test]
    fn an_option_must_not_take_the_next_word() {
        let read = |command: &[&str], parameters: &Value| {
            let command: Vec<_> = command.iter().map(ToString::to_string).collect();
            let schema = Schema::new(parameters.clone()).expect("a schema");
            Argv::read(&command, &schema).map(|_| ()).map_err(|error| error.path)
        };
        let optional = json!({"type": "object", "properties": {"p": {"type": "string"}}});
        let required = json!({"type": "object", "properties": {"p": {"type": "string"}}, "required": ["p"]});
        assert_eq!(read(&["x", "--pass", "{{ p }}", "y"], &optional), Err("/command/2".into()));
        assert_eq!(read(&["x", "--pass", "{{ p }}", "y"], &required), Ok(()));
        assert_eq!(read(&["x", "--pass={{ p }}", "y"], &optional), Ok(()));
        assert_eq!(read(&["x", "-v", "--", "{{ p }}"], &optional), Ok(()));
    }

    #[test]
    fn what_was_left_out_is_left_out() {
        let command = ["ls", "-l", "--", "{{ a }}", "only={{ b }}", "end"];
        assert_eq!(fill(&command, &json!({})), Ok(["-l", "--", "end"].map(String::from).to_vec()));
        assert_eq!(fill(&command, &json!({"a": "", "b": 1})), Ok(["-l", "--", "", "only=1", "end"].map(String::from).to_vec()));
    }

    #[test]
    fn values_are_never_options() {
        for (command, values) in [
            (vec!["rm", "{{ a }}"], json!({"a": "-rf"})),
            (vec!["rm", "{{ a }}.txt"], json!({"a": "-rf "})),
            (vec!["rm", "{{ a }}{{ b }}"], json!({"a": "", "b": "--no-preserve-root"})),
            (vec!["rm", "{{ a }}", "--", "x"], json!({"a": "-"})),
            (vec!["kill", "{{ n }}"], json!({"n": -9})),
        ] {
            let refused = fill(&command, &values).expect_err("an option");
            assert!(refused.starts_with("invalid_parameters: `") && refused.contains("put `--` before it"), "{refused}");
        }
        assert_eq!(fill(&["rm", "--", "{{ a }}"], &json!({"a": "-rf"})), Ok(vec!["--".into(), "-rf".into()]));
        assert_eq!(fill(&["rm", "--x={{ a }}"], &json!({"a": "-rf"})), Ok(vec!["--x=-rf".into()]));
        assert_eq!(fill(&["rm", "{{ b }}"], &json!({"b": [-1]})), Ok(vec!["[-1]".into()]));
    }

    /// Only a literal `--` ends the options, not one that comes from a value.
    #[test]
    fn only_the_author_ends_the_options() {
        let refused = fill(&["rm", "x{{ b }}", "{{ a }}"], &json!({"b": "--", "a": "-rf"}));
        assert!(refused.is_err());
        let refused = fill(&["rm", "{{ b }}", "{{ a }}"], &json!({"b": "--", "a": "-rf"}));
        assert!(refused.expect_err("an option").contains("`b`"));
    }

    #[test]
    fn no_value_holds_nul() {
        assert!(fill(&["echo", "x{{ a }}"], &json!({"a": "a\0b"})).expect_err("NUL").contains("NUL"));
        assert_eq!(fill(&["echo", "{{ b }}"], &json!({"b": ["\0"]})), Ok(vec!["[\"\\u0000\"]".into()]));
    }

    #[test]
    fn paths_are_checked_as_far_as_the_schema_goes() {
        let schema = json!({"type": "object", "properties": {
            "place": {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": false},
            "any": {"type": "object"}, "anything": {}, "text": {"type": "string"}, "other": {"$ref": "#/properties/place"}}});
        let check = |path: &str| check_path(&schema, &path.split('.').map(str::to_owned).collect::<Vec<_>>());
        for good in ["place", "place.city", "any.x.y", "anything.x", "other.city"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        assert_eq!(check("plce"), Err(("the tool has no parameter `plce`".into(), Some("did you mean `place`?".into()))));
        assert_eq!(check("place.cty"), Err(("`place` has no field `cty`".into(), Some("did you mean `city`?".into()))));
        assert_eq!(check("text.length"), Err(("`text` has no field `length`".into(), None)));
        let open = json!({"type": "object", "additionalProperties": true});
        assert_eq!(check_path(&open, &["x".into()]), Ok(()));
        assert!(check_path(&json!({"type": "object"}), &["x".into()]).is_err());
    }
}
