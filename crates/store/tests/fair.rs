//! No task starves: one that waits long enough overtakes later tasks of a higher priority.

use std::collections::BTreeMap;
use std::time::Duration;

use helve_core::store::{AGEING, NewTask, Task};
use helve_core::{CallId, Digest, Timestamp, ToolCall};
use serde_json::json;

fn task(priority: i8, now: Timestamp) -> Task {
    let new = NewTask::new(ToolCall::new("a", json!({})), Digest::of(["a".as_bytes()]));
    Task::new(NewTask { priority, ..new }, now)
}

/// A queue that goes by rank, as those of the engines do, and a time of its own. As much comes in as can be done, all of it of a
/// higher priority than the 10,000 tasks that wait.
#[test]
fn ten_thousand_tasks_of_a_low_priority_are_done_beside_a_stream_of_a_high_one() {
    const LOW: usize = 10_000;
    let (step, mut now) = (Duration::from_millis(10), Timestamp::UNIX_EPOCH);
    let mut queue: BTreeMap<(i64, CallId), i8> = BTreeMap::new();
    for _ in 0..LOW {
        let task = task(-3, now);
        queue.insert((task.rank(), task.id), -3);
    }
    let (mut low, mut steps, mut done_first) = (LOW, 0u32, 0u32);
    while low > 0 {
        let urgent = task(3, now);
        queue.insert((urgent.rank(), urgent.id), 3);
        if let Some((_, priority)) = queue.pop_first() {
            match priority {
                3 if low == LOW => done_first += 1,
                3 => {}
                _ => low -= 1,
            }
        }
        now += step;
        steps += 1;
    }
    // Six steps of priority are worth so long, in which the urgent ones went first. Then one after the other.
    let head_start = u32::try_from(AGEING.as_millis() * 6 / step.as_millis()).unwrap_or(u32::MAX);
    assert!(done_first >= head_start, "priority counts: {done_first}");
    assert!(steps <= head_start + 10_000 + 1, "and ends: {steps}");
}
