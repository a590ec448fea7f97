//! Errors of the API: a status, a code, one sentence, and the next step.

use std::borrow::Cow;

use http_core::{BodyError, Refusal};
use hyper::{StatusCode, header::HeaderValue};
use recipes::RequiredValue;
use serde::Serialize;

use crate::{configure::Refused, limits::BODY_BYTES_MAX};

/// The command that opens the page.
pub(crate) const OPEN: &str = "proxy web";

/// An error of the API.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ApiError {
    #[serde(skip)]
    pub(crate) status: StatusCode,
    /// The methods that a path has, for `Allow`.
    #[serde(skip)]
    pub(crate) allow: Option<Box<HeaderValue>>,
    /// A word for programs.
    pub(crate) code: Cow<'static, str>,
    /// One sentence for people.
    pub(crate) message: Box<str>,
    /// A command or a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_step: Option<String>,
    /// The member of the request that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<Box<str>>,
    /// The values that a recipe needs and did not get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub(crate) needs: Vec<RequiredValue>,
}

/// The body of an error.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ErrorBody {
    pub(crate) error: ApiError,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            allow: None,
            code: Cow::Borrowed(code),
            message: message.into().into_boxed_str(),
            next_step: None,
            field: None,
            needs: Vec::new(),
        }
    }

    pub(crate) fn next(mut self, step: impl Into<String>) -> Self {
        self.next_step = Some(step.into());
        self
    }

    pub(crate) fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into().into_boxed_str());
        self
    }

    pub(crate) fn unauthorized(code: &'static str, message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, code, message).next(OPEN)
    }

    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message).next(OPEN)
    }

    /// The path has only these methods.
    pub(crate) fn method_not_allowed(methods: &str) -> Self {
        let why = format!("the path has {methods}");
        let error = Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", why);
        Self {
            allow: HeaderValue::from_str(methods).ok().map(Box::new),
            ..error
        }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "changed", message)
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Host(_) => {
                let why = "the page is served under its own address only";
                Self::forbidden("foreign_host", why)
            }
            Refusal::Origin(_) => {
                let why = "a page of another origin may not use the API";
                Self::forbidden("foreign_origin", why)
            }
            Refusal::Site => {
                Self::forbidden("foreign_site", "only the page itself may use the API")
            }
            Refusal::MediaType => {
                let (code, why) = (
                    "unsupported_media_type",
                    "the body must be `application/json`",
                );
                Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code, why)
            }
        }
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => {
                let why = format!("the body is larger than {BODY_BYTES_MAX} bytes");
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", why)
            }
            BodyError::TooSlow => {
                let why = "the body did not arrive in time";
                Self::new(StatusCode::REQUEST_TIMEOUT, "timeout", why)
            }
            BodyError::Cut(_) => Self::bad("the body was cut off"),
        }
    }
}

impl From<anyhow::Error> for ApiError {
    fn from(error: anyhow::Error) -> Self {
        let message = format!("{error:#}");
        tracing::warn!(error = message, "a request of the page failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }
}

impl From<gateway::api::ApiError> for ApiError {
    fn from(error: gateway::api::ApiError) -> Self {
        let status = match &*error.code {
            "bad_request" => StatusCode::BAD_REQUEST,
            "not_found" | "unknown_tool" | "ambiguous_tool" => StatusCode::NOT_FOUND,
            "denied" => StatusCode::FORBIDDEN,
            "invalid_input" => StatusCode::UNPROCESSABLE_ENTITY,
            "changed" => StatusCode::CONFLICT,
            "internal" => return anyhow::Error::msg(error.message).into(),
            _ => StatusCode::BAD_GATEWAY,
        };
        Self {
            code: error.code,
            next_step: error.next_step,
            field: error.field.map(String::into_boxed_str),
            ..Self::new(status, "", error.message)
        }
    }
}

impl From<std::io::Error> for ApiError {
    fn from(error: std::io::Error) -> Self {
        anyhow::Error::from(error).into()
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        // The texts of the command line have the next step on a line of its own.
        let split = |text: String| match text.split_once("\nhint: ") {
            Some((message, step)) => (message.to_owned(), Some(step.to_owned())),
            None => (text, None),
        };
        let (mut error, step) = match refused {
            Refused::Invalid { text, field } => {
                let (message, step) = split(text);
                let error = Self::invalid(message);
                let field = field.map(String::into_boxed_str);
                (Self { field, ..error }, step)
            }
            Refused::Missing { text, needs } => {
                let error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "missing_values", text);
                (Self { needs, ..error }, None)
            }
            Refused::NotFound(text) => {
                let (message, step) = split(text);
                (Self::not_found(message), step)
            }
            Refused::Changed(text) => (Self::conflict(text), None),
            Refused::Failed(error) => return error.into(),
        };
        error.next_step = error.next_step.or(step);
        error
    }
}
