//! The result of a call: the tool's [`Output`], and the [`Outcome`] that callers get.

use std::sync::Arc;
use std::time::Duration;

use serde::de::{DeserializeOwned, Error as _, IntoDeserializer};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::error::{ErrorKind, ToolError};
use crate::ids::{ApprovalId, CallId};

/// The output of a tool: text for the model, data for programs.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// Text for the model.
    pub text: String,
    /// Data for programs; null if the text is the whole result.
    pub data: Value,
    /// Metadata of the call, such as `cached`.
    pub metadata: Map<String, Value>,
}

impl Output {
    /// Creates an output with text only.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Creates an output from data. The model reads the data as JSON; a string becomes plain text.
    #[must_use]
    pub fn data(data: Value) -> Self {
        match data {
            Value::String(text) => Self::text(text),
            Value::Null => Self::default(),
            data => Self { text: data.to_string(), data, ..Self::default() },
        }
    }

    /// Creates an output from any value that can be serialised.
    ///
    /// # Errors
    /// `failed` if the value cannot be serialised as JSON.
    pub fn of(value: &impl Serialize) -> Result<Self, ToolError> {
        serde_json::to_value(value).map(Self::data).map_err(not_json)
    }

    /// Sets the text for the model.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// Sets the data for programs.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = data;
        self
    }

    /// Adds one field to the metadata.
    #[must_use]
    pub fn with_metadata(mut self, key: &str, value: Value) -> Self {
        self.metadata.insert(key.to_owned(), value);
        self
    }
}

/// The status of a call.
#[derive(Debug, Clone)]
pub enum Status {
    /// The call succeeded or failed.
    Done(Result<Output, ToolError>),
    /// The call runs in the background. The task has the id of the call.
    Accepted,
    /// The call waits for a decision on this approval request.
    Waiting(ApprovalId),
}

/// The outcome of a call. Its JSON form is part of the stable interface of the CLI and the HTTP API.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The id of the call.
    pub call_id: CallId,
    /// The tool's name in the catalogue.
    pub tool: Arc<str>,
    /// The status of the call.
    pub status: Status,
    /// How long the call has taken so far.
    pub duration: Duration,
}

impl Outcome {
    /// Creates the outcome of a call that failed before it started.
    #[must_use]
    pub fn failed(call_id: CallId, tool: Arc<str>, error: ToolError) -> Self {
        Self { call_id, tool, status: Status::Done(Err(error)), duration: Duration::ZERO }
    }

    /// Returns whether the call succeeded.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self.status, Status::Done(Ok(_)))
    }

    /// Returns the output, if the call succeeded.
    #[must_use]
    pub fn output(&self) -> Option<&Output> {
        if let Status::Done(Ok(output)) = &self.status { Some(output) } else { None }
    }

    /// Returns the error, if the call failed.
    #[must_use]
    pub fn error(&self) -> Option<&ToolError> {
        if let Status::Done(Err(error)) = &self.status { Some(error) } else { None }
    }

    /// Returns the text for the model: the output, the error, or the status.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match &self.status {
            Status::Done(Ok(output)) => output.text.as_str().into(),
            Status::Done(Err(error)) => error.for_model().into(),
            Status::Accepted => format!("accepted: the call runs in the background as task {}", self.call_id).into(),
            Status::Waiting(_) => "waiting: a person must approve this call first".into(),
        }
    }

    /// Returns the output of the call, or its error.
    ///
    /// # Errors
    /// The error of the call; `failed` if it waits or runs in the background.
    pub fn into_result(self) -> Result<Output, ToolError> {
        match self.status {
            Status::Done(result) => result,
            Status::Accepted | Status::Waiting(_) => Err(ToolError::failed(self.text())),
        }
    }

    /// Deserialises the data of the result. If there is no data, the text is deserialised as a string.
    ///
    /// # Errors
    /// The error of the call; `failed` if the call waits or runs in the background, `invalid_output` if the data does not match the type.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        let Some(output) = self.output() else {
            return Err(self.error().cloned().unwrap_or_else(|| ToolError::failed(self.text())));
        };
        let data = match &output.data {
            Value::Null if !output.text.is_empty() => T::deserialize(output.text.as_str().into_deserializer()),
            data => T::deserialize(data),
        };
        let unfit = |error: serde_json::Error| ToolError::new(ErrorKind::InvalidOutput, format!("the result has the wrong type: {error}"));
        data.map_err(unfit)
    }

    /// Returns the text for the model, without a copy if possible.
    #[must_use]
    pub fn into_text(self) -> String {
        match self.status {
            Status::Done(Ok(output)) => output.text,
            _ => self.text().into_owned(),
        }
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut json = serializer.serialize_struct("Outcome", 9)?;
        json.serialize_field("call_id", &self.call_id)?;
        json.serialize_field("tool", &self.tool)?;
        match &self.status {
            Status::Done(result) => {
                let no_metadata = Map::new();
                let output = result.as_ref().ok();
                json.serialize_field("status", "done")?;
                json.serialize_field("success", &result.is_ok())?;
                json.serialize_field("text", &self.text())?;
                json.serialize_field("data", output.map_or(&Value::Null, |output| &output.data))?;
                json.serialize_field("error", &result.as_ref().err())?;
                json.serialize_field("metadata", output.map_or(&no_metadata, |output| &output.metadata))?;
                json.serialize_field("duration_ms", &milliseconds(self.duration))?;
            }
            Status::Accepted => {
                json.serialize_field("status", "accepted")?;
                json.serialize_field("accepted", &true)?;
                json.serialize_field("task_id", &self.call_id)?;
            }
            Status::Waiting(approval) => {
                json.serialize_field("status", "waiting")?;
                json.serialize_field("approval_id", approval)?;
            }
        }
        json.end()
    }
}

/// Converts a duration to milliseconds, with microseconds as a fraction, because most calls take less than a millisecond.
fn milliseconds(duration: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "only durations over 285 years are rounded")]
    let micros = duration.as_micros() as f64;
    micros / 1000.0
}

pub(crate) fn not_json(error: serde_json::Error) -> ToolError {
    ToolError::failed("the tool's result cannot be written as JSON").caused_by(error)
}

#[derive(Deserialize)]
struct Wire {
    call_id: CallId,
    tool: Arc<str>,
    status: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    data: Value,
    error: Option<ToolError>,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(default)]
    duration_ms: f64,
    approval_id: Option<ApprovalId>,
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        let status = match (wire.status.as_str(), wire.error, wire.approval_id) {
            ("done", None, _) => Status::Done(Ok(Output { text: wire.text, data: wire.data, metadata: wire.metadata })),
            ("done", Some(error), _) => Status::Done(Err(error)),
            ("accepted", ..) => Status::Accepted,
            ("waiting", _, Some(approval)) => Status::Waiting(approval),
            (other, ..) => return Err(D::Error::custom(format!("`{other}` is not the status of an outcome"))),
        };
        let duration = Duration::try_from_secs_f64(wire.duration_ms / 1000.0).map_err(D::Error::custom)?;
        Ok(Self { call_id: wire.call_id, tool: wire.tool, status, duration })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(status: Status) -> Outcome {
        Outcome { call_id: CallId::mint(), tool: "add".into(), status, duration: Duration::from_micros(1250) }
    }

    #[test]
    fn each_status_has_the_shape_of_the_contract() {
        let done = outcome(Status::Done(Ok(Output::data(json!({"sum": 3})))));
        assert_eq!(
            json!(done),
            json!({"call_id": done.call_id, "tool": "add", "status": "done", "success": true, "text": "{\"sum\":3}",
                   "data": {"sum": 3}, "error": null, "metadata": {}, "duration_ms": 1.25})
        );
        let failed = outcome(Status::Done(Err(ToolError::failed("no"))));
        assert_eq!(
            json!(failed),
            json!({"call_id": failed.call_id, "tool": "add", "status": "done", "success": false, "text": "failed: no",
                   "data": null, "error": {"kind": "failed", "message": "no", "details": {}}, "metadata": {}, "duration_ms": 1.25})
        );
        let accepted = outcome(Status::Accepted);
        assert_eq!(
            json!(accepted),
            json!({"call_id": accepted.call_id, "tool": "add", "status": "accepted", "accepted": true, "task_id": accepted.call_id})
        );
        let approval = ApprovalId::mint();
        let waiting = outcome(Status::Waiting(approval));
        assert_eq!(json!(waiting), json!({"call_id": waiting.call_id, "tool": "add", "status": "waiting", "approval_id": approval}));
    }

    #[test]
    fn outcomes_come_back_from_the_wire() {
        for status in [
            Status::Done(Ok(Output::text("x").with_metadata("cached", json!(true)))),
            Status::Done(Err(ToolError::failed("no").with("row", json!(3)))),
            Status::Accepted,
            Status::Waiting(ApprovalId::mint()),
        ] {
            let wire = json!(outcome(status));
            let back: Outcome = serde_json::from_value(wire.clone()).expect("readable");
            let again = json!(back);
            assert_eq!(again["status"], wire["status"]);
            assert_eq!(again["error"], wire["error"]);
            assert_eq!(again["metadata"], wire["metadata"]);
        }
    }

    #[test]
    fn an_outcome_becomes_a_result_or_a_value() {
        let done = outcome(Status::Done(Ok(Output::data(json!({"sum": 3})))));
        assert_eq!(done.data::<std::collections::BTreeMap<String, i64>>().expect("a map")["sum"], 3);
        assert_eq!(done.data::<u8>().expect_err("no number").kind(), ErrorKind::InvalidOutput);
        assert_eq!(outcome(Status::Done(Ok(Output::text("hi")))).data::<String>().expect("a text"), "hi");
        assert_eq!(outcome(Status::Done(Ok(Output::data(json!(5))))).data::<u8>().expect("a number"), 5);
        outcome(Status::Done(Ok(Output::default()))).data::<()>().expect("nothing");
        assert!(done.is_success() && done.into_result().is_ok());
        let failed = outcome(Status::Done(Err(ToolError::cancelled())));
        assert_eq!(failed.data::<u8>().expect_err("it failed").kind(), ErrorKind::Cancelled);
        assert_eq!(failed.into_result().expect_err("it failed").kind(), ErrorKind::Cancelled);
        for open in [Status::Accepted, Status::Waiting(ApprovalId::mint())] {
            assert!(outcome(open.clone()).data::<u8>().is_err() && outcome(open).into_result().is_err());
        }
    }

    #[test]
    fn strings_and_nothing_are_plain_text() {
        assert_eq!(Output::data(json!("hi")), Output::text("hi"));
        assert_eq!(Output::data(Value::Null), Output::text(""));
    }
}
