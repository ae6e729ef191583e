//! Questions that wait for a person, in any process.

use helve_core::store::{Answering, Approval, Reply};
use helve_core::{Answered, ApprovalId, Question, Schema, StoreError};
use serde_json::Value;

use super::Helve;

/// So many questions are listed at most.
const LISTED: usize = 1000;

/// Why an answer does not count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// Another answer came first, or the caller no longer waits.
    #[error("the question was answered before, or is over: {}", .0.state.name())]
    TooLate(Box<Approval>),
    /// There is no such question.
    #[error("there is no question {0}")]
    Unknown(ApprovalId),
    /// "Later" and "expired" are no answers.
    #[error("this answers nothing")]
    NoAnswer,
    /// What was written does not fit the tool, or what it wants to know.
    #[error("{0}")]
    Invalid(String),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Helve {
    /// Pending questions, newest first.
    ///
    /// # Errors
    /// Where there is no store, or it cannot be used.
    pub async fn pending(&self) -> Result<Vec<Approval>, StoreError> {
        self.stored()?.approvals(None, true, LISTED).await
    }

    /// Answers a question. Exactly one answer counts. The run that waits for it, if one does, is `approval.question.caller.run`.
    ///
    /// # Errors
    /// Where the answer does not count, or the store cannot be used.
    pub async fn answer(&self, id: ApprovalId, answered: &Answered, by: &str) -> Result<Approval, AnswerError> {
        self.reply(id, Reply::of(answered, by).ok_or(AnswerError::NoAnswer)?).await
    }

    /// Like [`Self::answer`], with all that a reply can say. What a person writes must fit the tool before it counts as an answer.
    ///
    /// # Errors
    /// Where the answer does not count, or the store cannot be used.
    pub async fn reply(&self, id: ApprovalId, reply: Reply) -> Result<Approval, AnswerError> {
        let store = self.stored()?;
        if let (Some(written), Some(asked)) = (&reply.arguments, store.approval(id).await?) {
            self.check(written, &asked.question)?;
        }
        match store.answer(id, reply).await? {
            Answering::Won(approval) => Ok(*approval),
            Answering::TooLate(approval) => Err(AnswerError::TooLate(approval)),
            Answering::Unknown => Err(AnswerError::Unknown(id)),
        }
    }

    /// Whether what a person wrote fits: arguments instead of those that were asked about, or what a tool wants to know.
    fn check(&self, written: &Value, question: &Question) -> Result<(), AnswerError> {
        let problems = if let Some(needed) = &question.input {
            Schema::new(needed.schema()).map_err(|error| AnswerError::Invalid(error.to_string()))?.check(written)
        } else {
            let entry = self.catalogue.get(&question.tool);
            entry.and_then(|entry| entry.spec().input().fit(&mut written.clone()).err()).unwrap_or_default()
        };
        let listed: Vec<_> = problems.iter().map(ToString::to_string).collect();
        if listed.is_empty() { Ok(()) } else { Err(AnswerError::Invalid(listed.join("; "))) }
    }

    fn stored(&self) -> Result<&std::sync::Arc<dyn helve_core::Store>, StoreError> {
        let none = || StoreError::Unavailable("no store is open: name one with `Helve::builder().store(…)` or `open_record`".to_owned());
        self.executor.record().map(helve_tools::Record::store).ok_or_else(none)
    }
}
