//! Answers and decisions of people: to questions, and about definitions that changed since they were accepted.

use gateway::api::{
    QuestionAnswer, Questions, ReviewDecision, ReviewList, ReviewsQuery, answer_question, decide,
    list_questions, list_reviews,
};

use super::answer::Done;
use crate::{
    error::ApiError,
    routes::{Call, Nothing},
};

pub(crate) async fn questions(call: Call<Nothing, Nothing>) -> Result<Questions, ApiError> {
    Ok(list_questions(&call.page.daemon.gateway))
}

pub(crate) async fn answer(call: Call<Nothing, QuestionAnswer>) -> Result<Done, ApiError> {
    // No question has the number 0.
    let id = call.path[0].parse().unwrap_or(0);
    let done = answer_question(&call.page.daemon.gateway, id, call.body)?;
    Ok(Done::new(done))
}

pub(crate) fn reviews(call: &Call<ReviewsQuery, Nothing>) -> Result<ReviewList, ApiError> {
    Ok(list_reviews(&call.page.daemon.gateway, &call.query)?)
}

pub(crate) fn decide_reviews(call: Call<Nothing, ReviewDecision>) -> Result<Done, ApiError> {
    Ok(Done::new(decide(&call.page.daemon.gateway, call.body)?))
}
