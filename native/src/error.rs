//! Errors with a class the caller acts on.

use std::error::Error as StdError;
use std::io::{self, ErrorKind};

use serde_json::{Value, json};

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

/// The class of the first error in the chain that says something definite. The
/// outermost variants of Lance often only wrap ("LanceError(IO): ...").
pub fn classify(error: &(dyn StdError + 'static)) -> Class {
    let mut fallback = None;
    let mut current = Some(error);
    while let Some(error) = current {
        match of_one(error) {
            Verdict::Definite(class) => return class,
            Verdict::Perhaps(class) => fallback = fallback.or(Some(class)),
            Verdict::Silent => {}
        }
        current = inner(error);
    }
    fallback.unwrap_or(Class::Internal)
}

enum Verdict {
    Definite(Class),
    /// Holds unless an inner error knows better.
    Perhaps(Class),
    Silent,
}

use Verdict::{Definite, Perhaps, Silent};

fn of_one(error: &(dyn StdError + 'static)) -> Verdict {
    if let Some(error) = error.downcast_ref::<lance::Error>() {
        return of_lance(error);
    }
    if let Some(error) = error.downcast_ref::<object_store::Error>() {
        return of_store(error);
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return of_io(error);
    }
    if error.is::<tokio::time::error::Elapsed>() {
        return Definite(Class::Timeout);
    }
    if error.is::<lance_core::error::CommitStatusUnknownError>() {
        return Definite(Class::Unreachable);
    }
    of_text(&error.to_string())
}

/// `io::Error::source` skips the error it was made from, and a shared error of
/// Lance shows the source of what it wraps: go one step at a time instead.
fn inner<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    if let Some(io) = error.downcast_ref::<io::Error>() {
        return io.get_ref().map(|inner| inner as &(dyn StdError + 'static));
    }
    if let Some(lance::Error::Shared { source }) = error.downcast_ref::<lance::Error>() {
        return Some(source.as_ref());
    }
    if let Some(lance::Error::External { source }) = error.downcast_ref::<lance::Error>() {
        return Some(source.as_ref());
    }
    error.source()
}

fn of_lance(error: &lance::Error) -> Verdict {
    use lance::Error as E;
    match error {
        E::InvalidInput { .. } | E::InvalidRef { .. } | E::InvalidTableLocation { .. } => {
            Perhaps(Class::Invalid)
        }
        E::SchemaMismatch { .. } | E::FieldNotFound { .. } | E::Schema { .. } => {
            Perhaps(Class::Invalid)
        }
        E::DatasetAlreadyExists { .. } => Definite(Class::Exists),
        // The source tells "not there" from "the store does not answer".
        E::DatasetNotFound { .. } => Perhaps(Class::Gone),
        E::NotFound { .. } | E::RefNotFound { .. } | E::VersionNotFound { .. } => {
            Definite(Class::Gone)
        }
        E::CorruptFile { .. } => Perhaps(Class::Corrupt),
        E::NotSupported { .. } | E::VersionConflict { .. } => Definite(Class::Unsupported),
        E::CommitConflict { .. }
        | E::IncompatibleTransaction { .. }
        | E::RetryableCommitConflict { .. }
        | E::TooMuchWriteContention { .. }
        | E::RefConflict { .. }
        | E::Fenced { .. } => Definite(Class::Conflict),
        E::Timeout { .. } => Definite(Class::Timeout),
        E::Backpressure { .. } => Definite(Class::Unreachable),
        E::Arrow { .. } => Perhaps(Class::Corrupt),
        E::Internal { message, .. } | E::Cloned { message, .. } => of_text(message),
        _ => Silent,
    }
}

fn of_store(error: &object_store::Error) -> Verdict {
    use object_store::Error as E;
    match error {
        E::NotFound { .. } => Definite(Class::Gone),
        E::AlreadyExists { .. } => Definite(Class::Exists),
        E::Precondition { .. } | E::NotModified { .. } => Definite(Class::Conflict),
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => Definite(Class::Denied),
        E::InvalidPath { .. } | E::UnknownConfigurationKey { .. } => Definite(Class::Invalid),
        E::NotSupported { .. } | E::NotImplemented { .. } => Definite(Class::Unsupported),
        // Everything an HTTP store has no name for: 5xx, throttling, refused
        // connections, but also odd 4xx, which the inner texts tell.
        E::Generic { store, .. } if *store != "LocalFileSystem" => Perhaps(Class::Unreachable),
        _ => Silent,
    }
}

fn of_io(error: &io::Error) -> Verdict {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Definite(Class::Gone),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Definite(Class::Denied),
        ErrorKind::AlreadyExists => Definite(Class::Exists),
        ErrorKind::TimedOut
        | ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::NotConnected
        | ErrorKind::BrokenPipe
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::StaleNetworkFileHandle => Definite(Class::Unreachable),
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof => Perhaps(Class::Corrupt),
        _ => Silent,
    }
}

/// Errors whose types are private to their crates, by their texts.
fn of_text(text: &str) -> Verdict {
    if let Some(status) = http_status(text) {
        return match status {
            400 if CREDENTIAL_CODES.iter().any(|code| text.contains(code)) => {
                Definite(Class::Denied)
            }
            401 | 403 => Definite(Class::Denied),
            404 => Definite(Class::Gone),
            409 | 412 => Definite(Class::Conflict),
            408 | 429 | 500..=599 => Definite(Class::Unreachable),
            400..=499 => Definite(Class::Invalid),
            _ => Silent,
        };
    }
    let lower = text.to_ascii_lowercase();
    if CORRUPT_TEXTS.iter().any(|mark| lower.contains(mark)) {
        return Perhaps(Class::Corrupt);
    }
    if UNREACHABLE_TEXTS.iter().any(|mark| lower.contains(mark)) {
        return Perhaps(Class::Unreachable);
    }
    if DENIED_TEXTS.iter().any(|mark| lower.contains(mark)) {
        return Perhaps(Class::Denied);
    }
    Silent
}

/// Some stores answer 400 where they mean "these credentials are no good".
const CREDENTIAL_CODES: [&str; 4] = [
    "ExpiredToken",
    "InvalidToken",
    "TokenRefreshRequired",
    "InvalidAccessKeyId",
];
const CORRUPT_TEXTS: [&str; 7] = [
    "failed to decode protobuf",
    "invalid wire type",
    "decodeerror",
    "magic number",
    "buffer underflow",
    "file size is too small",
    "not a lance file",
];
const UNREACHABLE_TEXTS: [&str; 7] = [
    "connection refused",
    "connection reset",
    "connection closed",
    "error sending request",
    "operation timed out",
    "dns error",
    "http error",
];
const DENIED_TEXTS: [&str; 3] = [
    "permission denied",
    "no valid credentials",
    "failed to load credentials",
];

/// The status in "... status code: 503 Service Unavailable ...".
fn http_status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}
