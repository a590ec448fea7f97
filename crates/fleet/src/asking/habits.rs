//! The tools of a server that ask, and those that do not.

use dashmap::DashMap;

use crate::{
    Request,
    limits::{HABITS_MAX, QUIET_CALLS_MIN},
};

/// The requests of a server that led to questions that name no call.
#[derive(Debug, Default)]
pub(crate) struct Habits(DashMap<String, Habit>);

#[derive(Debug, Default)]
struct Habit {
    asks: bool,
    /// Calls that were answered while it asked nothing.
    quiet_calls: u32,
}

/// The requests that are alike: calls of one tool, or all requests of one method.
pub(super) fn describe(request: &Request) -> String {
    let name = request
        .param("name")
        .filter(|_| request.method == "tools/call");
    let name = name.and_then(|name| serde_json::from_str::<String>(name.as_str()).ok());
    [request.method, " ", &name.unwrap_or_default()].concat()
}

impl Habits {
    /// Creates the habits of a server of which it is known which requests ask.
    pub(crate) fn of_asking(calls: &[String]) -> Self {
        let habits = Self::default();
        for what in calls.iter().take(HABITS_MAX) {
            habits.0.entry(what.clone()).or_default().asks = true;
        }
        habits
    }

    /// Lists the requests that ask, in order.
    pub(crate) fn list_asking(&self) -> Vec<String> {
        let asking = self.0.iter().filter(|it| it.asks);
        let mut asking: Vec<String> = asking.map(|it| it.key().clone()).collect();
        asking.sort_unstable();
        asking
    }

    pub(super) fn asks(&self, what: &str) -> bool {
        self.0.get(what).is_some_and(|it| it.asks)
    }

    /// Returns true if such requests were made often enough and never led to a question.
    fn is_quiet(&self, what: &str) -> bool {
        let habit = self.0.get(what);
        habit.is_some_and(|it| !it.asks && it.quiet_calls >= QUIET_CALLS_MIN)
    }

    pub(super) fn note_quiet_call(&self, what: String) {
        if let Some(mut habit) = self.0.get_mut(&what) {
            habit.quiet_calls = habit.quiet_calls.saturating_add(1);
        } else if self.0.len() < HABITS_MAX {
            self.0.entry(what).or_default().quiet_calls += 1;
        }
    }

    /// Notes a question that one of these asked: one that is known to ask, else one of which not
    /// enough is known, else any. Returns true if it was not known.
    pub(super) fn note_question(&self, under_way: &[String]) -> bool {
        if under_way.iter().any(|what| self.asks(what)) {
            return false;
        }
        let all_are_quiet = under_way.iter().all(|what| self.is_quiet(what));
        let suspects = under_way
            .iter()
            .filter(|what| all_are_quiet || !self.is_quiet(what));
        let suspects: Vec<&String> = suspects.collect();
        for what in suspects {
            if self.0.len() < HABITS_MAX || self.0.contains_key(what) {
                self.0.entry(what.clone()).or_default().asks = true;
            }
        }
        !under_way.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(habits: &Habits, what: &str) {
        for _ in 0..QUIET_CALLS_MIN {
            assert!(!habits.is_quiet(what));
            habits.note_quiet_call(what.to_owned());
        }
        assert!(habits.is_quiet(what));
    }

    #[test]
    fn a_tool_is_quiet_after_calls_without_a_question_and_never_after_one() {
        let habits = Habits::default();
        quiet(&habits, "echo");
        quiet(&habits, "often");
        // The one of which nothing is known is the one that asks.
        habits.note_question(&["echo".to_owned(), "ask".to_owned()]);
        for _ in 0..=QUIET_CALLS_MIN {
            habits.note_quiet_call("ask".to_owned());
        }
        assert!(!habits.is_quiet("ask") && habits.is_quiet("echo"));
        // It is known to ask, so the others are not suspected.
        habits.note_question(&["often".to_owned(), "ask".to_owned()]);
        assert!(habits.is_quiet("often"));
        habits.note_question(&["often".to_owned(), "echo".to_owned()]);
        assert!(!habits.is_quiet("often") && !habits.is_quiet("echo"));
    }
}
