//! Runs an agent for an answer of a given type.

use helve_core::Schema;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::agent::Agent;
use crate::error::AgentError;
use crate::user_input::UserInput;

/// Starts a run, and parses its answer as a `T`. If the answer does not match the JSON Schema of `T`, the model gets one correction.
pub(crate) async fn run_as<T: DeserializeOwned + JsonSchema>(agent: &mut Agent, input: UserInput) -> Result<T, AgentError> {
    let schema = Schema::of::<T>();
    let form = format!("Give your final answer as one JSON value of this JSON Schema and nothing else:\n{}", schema.text());
    let mut input = input.with_text(&form);
    let mut last = String::new();
    for _ in 0..2 {
        let answer = agent.run(input).await?;
        match read::<T>(&answer.text, &schema) {
            Ok(value) => return Ok(value),
            Err(problem) => {
                input = format!("Your answer does not fit: {problem}. Give only one JSON value of the schema.").as_str().into();
                last = problem;
            }
        }
    }
    Err(AgentError::WrongType(last))
}

fn read<T: DeserializeOwned>(text: &str, schema: &Schema) -> Result<T, String> {
    let value: serde_json::Value = serde_json::from_str(json_in(text)).map_err(|error| format!("it is not JSON: {error}"))?;
    let problems = schema.check(&value);
    if !problems.is_empty() {
        return Err(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Returns the JSON in an answer: the content of the first code fence, or the whole text.
fn json_in(text: &str) -> &str {
    let text = text.trim();
    let Some((_, rest)) = text.split_once("```") else { return text };
    let inside = rest.split_once("```").map_or(rest, |(inside, _)| inside);
    inside.strip_prefix("json").unwrap_or(inside).trim()
}
