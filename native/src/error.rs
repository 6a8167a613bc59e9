//! Errors with a class the caller acts on.

use std::error::Error as StdError;
use std::io;

use serde_json::{Value, json};

use crate::classify::classify;

/// See the table in README.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Invalid,
    Gone,
    Exists,
    Conflict,
    Corrupt,
    Unsupported,
    Denied,
    Unreachable,
    Timeout,
    Cancelled,
    Closed,
    Panic,
    Internal,
}

impl Class {
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Gone => "gone",
            Self::Exists => "exists",
            Self::Conflict => "conflict",
            Self::Corrupt => "corrupt",
            Self::Unsupported => "unsupported",
            Self::Denied => "denied",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Closed => "closed",
            Self::Panic => "panic",
            Self::Internal => "internal",
        }
    }
}

/// Why an operation, or one item of a batch, gave no answer.
#[derive(Clone, Debug)]
pub struct Fault {
    pub class: Class,
    pub message: String,
    pub uri: Option<String>,
}

impl Fault {
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            uri: None,
        }
    }

    /// Says which uri was asked, unless something more exact is known already.
    pub fn at(mut self, uri: &str) -> Self {
        self.uri.get_or_insert_with(|| uri.to_owned());
        self
    }

    pub fn to_json(&self) -> Value {
        match &self.uri {
            Some(uri) => {
                json!({ "class": self.class.name(), "message": self.message, "uri": uri })
            }
            None => json!({ "class": self.class.name(), "message": self.message }),
        }
    }

    /// A task of ours that did not end by itself.
    pub fn from_join(error: tokio::task::JoinError) -> Self {
        if error.is_panic() {
            return Self::from_panic(error.into_panic().as_ref());
        }
        Self::new(Class::Cancelled, "the task was stopped")
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.class.name(), self.message)
    }
}

impl From<lance::Error> for Fault {
    fn from(error: lance::Error) -> Self {
        Self::new(classify(&error), text(&error))
    }
}

impl From<object_store::Error> for Fault {
    fn from(error: object_store::Error) -> Self {
        Self::new(classify(&error), text(&error))
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::new(classify(&error), text(&error))
    }
}

impl From<arrow_schema::ArrowError> for Fault {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self::new(classify(&error), text(&error))
    }
}

/// The message without Lance's source locations, which are of no use to a
/// reader of a page and differ between versions.
fn text(error: &dyn StdError) -> String {
    strip_locations(&error.to_string())
}

/// Cuts `, .../file.rs:12:34` where Lance put it.
fn strip_locations(message: &str) -> String {
    let mut kept = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(end) = rest.find(".rs:") {
        let digits = rest[end + 4..]
            .find(|c: char| !c.is_ascii_digit() && c != ':')
            .map_or(rest.len(), |n| end + 4 + n);
        let start = rest[..end]
            .rfind(|c: char| c.is_whitespace())
            .map_or(0, |n| n + 1);
        kept.push_str(
            rest[..start]
                .trim_end_matches([' ', ','])
                .trim_end_matches("location:")
                .trim_end_matches([' ', ',']),
        );
        rest = &rest[digits..];
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_no_source_locations() {
        for (message, expected) in [
            (
                "Not found: a/b, /home/someone/lance/src/io.rs:12:34",
                "Not found: a/b",
            ),
            (
                "Outer: inner went wrong, src/deep.rs:1:2, src/outer.rs:3:4",
                "Outer: inner went wrong",
            ),
            ("plain words", "plain words"),
        ] {
            assert_eq!(strip_locations(message), expected);
        }
    }
}
