//! One suite for all engines: whatever keeps the store, the same things hold.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that goes wrong should stop, one that is skipped should say so"
)]

mod approvals;
mod cut;
mod processes;
mod runs;
mod scene;
mod secrets;
mod server;
mod tasks;

use std::sync::Arc;

use helve_core::Store;
use helve_core::store::{MemoryStore, SealedStore};
use helve_store::SqliteStore;

/// A store, and what must live as long as it.
struct Scene {
    store: Arc<dyn Store>,
    _folder: Option<tempfile::TempDir>,
    _schema: Option<server::Schema>,
}

async fn memory(_: &str) -> Option<Scene> {
    Some(Scene { store: Arc::new(MemoryStore::default()), _folder: None, _schema: None })
}

/// What stands between every engine and its users.
async fn sealed(test: &str) -> Option<Scene> {
    memory(test).await.map(|scene| Scene { store: Arc::new(SealedStore::new(scene.store)), ..scene })
}

async fn sqlite(_: &str) -> Option<Scene> {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(folder.path().join("store.db")).expect("a store");
    Some(Scene { store: Arc::new(store), _folder: Some(folder), _schema: None })
}

async fn postgres(test: &str) -> Option<Scene> {
    let schema = server::Schema::new(test).await?;
    Some(Scene { store: Arc::new(schema.open().await), _folder: None, _schema: Some(schema) })
}

macro_rules! tests {
    ($engine:ident: $($part:ident { $($case:ident)+ })+) => {
        mod $engine {
            $($(
                #[tokio::test]
                async fn $case() {
                    let Some(scene) = super::$engine(concat!(stringify!($engine), "::", stringify!($case))).await else { return };
                    crate::$part::$case(&*scene.store).await;
                }
            )+)+

            #[tokio::test]
            async fn a_secret_is_never_stored_and_comes_back() {
                let Some(scene) = super::$engine(concat!(stringify!($engine), "::sealed")).await else { return };
                crate::secrets::a_secret_is_never_stored_and_comes_back(scene.store.clone()).await;
            }

            #[tokio::test]
            async fn a_secret_is_stored_where_that_is_wanted() {
                let Some(scene) = super::$engine(concat!(stringify!($engine), "::kept")).await else { return };
                crate::secrets::a_secret_is_stored_where_that_is_wanted(scene.store.clone()).await;
            }
        }
    };
}

macro_rules! conformance {
    ($($engine:ident)+) => {
        $(tests! {
            $engine:
            tasks {
                a_task_is_accepted_once_and_told_to_its_run
                a_list_of_tasks_is_a_page_unless_told_otherwise
                the_queue_goes_by_priority_and_age
                a_worker_gets_only_what_it_can_run
                two_workers_never_get_the_same_task
                a_result_counts_once_and_only_from_who_has_the_task
                a_failure_that_may_pass_is_tried_again_and_then_dead
                what_must_not_run_twice_is_not_tried_again
                a_delayed_task_waits
                a_task_can_be_cancelled_before_and_while_it_runs
                a_task_that_ended_badly_is_tried_again_as_another
                progress_is_seen_while_it_runs
                tasks_of_a_worker_that_is_gone_go_on_or_end
                a_process_that_slept_does_not_break_its_own_calls_off
                a_task_that_was_not_begun_goes_back_unharmed
                a_task_keeps_the_consent_under_which_it_was_accepted
                whoever_tries_a_task_again_consents_to_it
            }
            approvals {
                exactly_one_answer_wins
                an_answer_lets_its_run_go_on
                an_approved_call_without_a_run_goes_into_the_queue
                an_approved_call_goes_to_the_process_that_waits_for_it
                an_approved_call_in_the_background_is_anybodys
                an_approved_call_carries_the_consent_to_what_was_approved
                nobody_makes_a_call_that_nobody_waits_for
                a_denied_call_never_runs
                questions_expire
                always_holds_for_the_conversation
                questions_of_a_run_that_ends_are_over
            }
            runs {
                a_run_is_recorded_step_by_step
                a_run_that_another_started_says_so_wherever_it_is_seen
                events_are_numbered_without_gaps_whoever_adds_them
                only_one_process_drives_a_run
                a_run_is_given_back_by_whoever_holds_it
                a_run_of_a_process_that_is_gone_can_be_taken
                a_conversation_cannot_be_split
                results_are_heard_once
                a_run_can_be_told_to_stop
                old_records_are_forgotten
                large_bodies_are_kept_by_their_digest
                large_rows_come_back_whole
                changes_are_told
            }
        })+
    };
}

conformance! { memory sealed sqlite postgres }
